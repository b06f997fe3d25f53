//! Migrations, the file's mode, and files that must not be opened.

use super::*;

/// The hash of every released migration. A new file adds a line; a line never changes.
const RELEASED: &[(&str, &str)] = &[
    ("0001_journal.sql", "e5a9c3cb39e605859f97a2faf62d320179fcfa70b5c411f1669c01895400712d"),
    ("0002_recovery.sql", "6cf4823b9f7dc660994fd1d30506a6d67eab5654e60e745d6dd6de8ebf245719"),
    ("0003_files_and_decisions.sql", "9ae92fda3527365d9db620afcb66d2ed8971fed3a341830a48b2d0abf491a5af"),
    ("0004_attempts.sql", "461b2a9c7ad0e63606c79109cfeafa254feee89fa5b9477c4416509fde31518d"),
];

#[test]
fn released_migrations_are_never_edited() {
    let hashes: Vec<_> = FILES.iter().map(|(name, sql)| (*name, blake3::hash(sql.as_bytes()).to_string())).collect();
    let hashes: Vec<_> = hashes.iter().map(|(name, hash)| (*name, hash.as_str())).collect();
    assert_eq!(hashes, RELEASED, "mend a released migration with a new file");
}

#[test]
fn migrations_are_numbered_without_gaps_and_all_of_them_are_applied() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut found: Vec<_> =
        fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (number, (name, _)) in (1..).zip(FILES) {
        assert!(name.starts_with(&format!("{number:04}_")), "{name} is number {number}");
    }
    let steps = FILES.iter().map(|(_, sql)| M::up(sql)).collect();
    Migrations::new(steps).validate().unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_any_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentd.db");
    let (db, ..) = open(&path).unwrap();
    for file in ["agentd.db", "agentd.db-wal", "agentd.db-shm"] {
        assert_eq!(mode(&dir.path().join(file)), 0o600, "{file}");
    }
    drop(db);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let _again = open(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn what_was_acknowledged_is_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let (db, ..) = open(&dir.path().join("agentd.db")).unwrap();
    let table = [
        ("journal_mode", "wal"),
        ("synchronous", "2"),
        ("foreign_keys", "1"),
        ("journal_size_limit", "67108864"),
        ("busy_timeout", "5000"),
    ];
    for (pragma, expected) in table {
        let found = db.pragma_query_value(None, pragma, |row| {
            let value: rusqlite::types::Value = row.get(0)?;
            Ok(match value {
                rusqlite::types::Value::Integer(number) => number.to_string(),
                rusqlite::types::Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        });
        assert_eq!(found.unwrap(), expected, "{pragma}");
    }
}

#[test]
fn a_database_of_a_newer_agentd_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentd.db");
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let supported = i32::try_from(FILES.len()).unwrap();
    let refused = open(&path).unwrap_err();
    assert_eq!(refused, StoreError::TooNew { file: path.clone(), found: 99, supported });
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_older_database_is_copied_before_it_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentd.db");
    let (first, second) = ("CREATE TABLE meta (key PRIMARY KEY, value)", "CREATE TABLE later (x)");
    let has_later = |path: &Path| Connection::open(path).unwrap().prepare("SELECT * FROM later").is_ok();
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.join(" ")
    };
    drop(open_with(&path, vec![M::up(first)]).unwrap());
    drop(open_with(&path, vec![M::up(first)]).unwrap());
    assert_eq!(names(), "agentd.db");

    // What a copy that was cut off left behind is no hindrance.
    fs::write(dir.path().join("agentd.db.v1.partial"), "half").unwrap();
    drop(open_with(&path, vec![M::up(first), M::up(second)]).unwrap());
    assert_eq!(names(), "agentd.db agentd.db.v1");
    let copy = dir.path().join("agentd.db.v1");
    assert_eq!(mode(&copy), 0o600);
    assert!(has_later(&path) && !has_later(&copy));
}

#[test]
fn what_is_no_database_is_refused_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agentd.db");
    fs::write(&path, "my diary, and not a database at all".repeat(100)).unwrap();
    assert_eq!(open(&path).unwrap_err().kind(), "corrupt");
    assert!(fs::read_to_string(&path).unwrap().starts_with("my diary"));
    let nowhere = open(&dir.path().join("no/such/agentd.db")).unwrap_err();
    assert!(nowhere.to_string().contains("no/such/agentd.db: No such file"), "{nowhere}");
}
