//! Writing whole or not at all, on real directories.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    (dir, path)
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn mode_bits_are_kept() {
    let (_guard, dir) = folder();
    for mode in [0o755, 0o600, 0o664, 0o4711, 0o400] {
        let path = dir.join(format!("{mode:o}"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let meta = path.metadata().unwrap();
        replace(&path, b"new", Some(&meta), Expect::Same(&meta)).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}

#[test]
fn a_new_file_gets_the_mode_of_the_umask() {
    let (_guard, dir) = folder();
    std::fs::write(dir.join("plain"), "").unwrap();
    replace(&dir.join("new"), b"x", None, Expect::Nothing).unwrap();
    assert_eq!(dir.join("new").metadata().unwrap().mode(), dir.join("plain").metadata().unwrap().mode());
    assert_eq!(names(&dir), ["new", "plain"]);
}

#[test]
fn what_appeared_or_changed_meanwhile_is_left_alone() {
    let (_guard, dir) = folder();
    let path = dir.join("a");
    std::fs::write(&path, "old").unwrap();
    let meta = path.metadata().unwrap();
    assert!(matches!(replace(&path, b"new", None, Expect::Nothing), Err(WriteError::Changed)));
    std::fs::write(&path, "other").unwrap();
    assert!(matches!(replace(&path, b"new", Some(&meta), Expect::Same(&meta)), Err(WriteError::Changed)));
    assert!(matches!(remove(&path, Expect::Same(&meta)), Err(WriteError::Changed)));
    assert_eq!(std::fs::read(&path).unwrap(), b"other");
    assert_eq!(names(&dir), ["a"]);
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let (_guard, dir) = folder();
    std::fs::create_dir_all(dir.join("taken/inner")).unwrap();
    assert!(replace(&dir.join("taken"), b"x", None, Expect::Anything).is_err());
    assert_eq!(names(&dir), ["taken"]);
}

#[test]
fn a_directory_that_became_a_link_is_not_written_through() {
    let (_guard, dir) = folder();
    std::fs::create_dir(dir.join("real")).unwrap();
    symlink("real", dir.join("link")).unwrap();
    assert!(replace(&dir.join("link/x"), b"x", None, Expect::Nothing).is_err());
    assert!(names(&dir.join("real")).is_empty());
}

#[test]
fn created_parents_can_be_taken_away_again() {
    let (_guard, dir) = folder();
    let created = create_parents(&dir.join("a/b/c")).unwrap();
    assert_eq!(created, [dir.join("a"), dir.join("a/b")]);
    assert!(create_parents(&dir.join("a/b/c")).unwrap().is_empty());
    remove_created(&created);
    assert!(names(&dir).is_empty());
}
