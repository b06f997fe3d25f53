//! Every way in which editors and people change a file.

use std::fs;
use std::os::unix::fs::symlink;

use protocol::session::Mode;
use protocol::socket::Homes;

use super::*;

/// Long enough for a machine that is busy with something else; a test that passes never waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

struct Desk {
    dir: tempfile::TempDir,
    seen: watch::Receiver<Arc<Loaded>>,
    watch: SettingsWatch,
    cancel: CancellationToken,
}

impl Desk {
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let homes = Homes { config: dir.path().join("config/agentd"), ..Homes::default() };
        let source = Arc::new(SettingsSource::new(homes, None, std::collections::BTreeMap::new()));
        let cancel = CancellationToken::new();
        let watch = SettingsWatch::start(source, cancel.clone());
        Self { dir, seen: watch.receiver(), watch, cancel }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until the published settings are as `wanted` says.
    async fn sees(&mut self, what: &str, wanted: impl Fn(&Loaded) -> bool) {
        let found = tokio::time::timeout(PATIENCE, self.seen.wait_for(|loaded| wanted(loaded))).await;
        assert!(found.is_ok_and(|found| found.is_ok()), "never saw {what}");
    }

    async fn sees_mode(&mut self, mode: Mode) {
        self.sees(&format!("{mode:?}"), |loaded| loaded.settings.mode == mode).await;
    }
}

fn folder(dir: &Path) {
    fs::create_dir_all(dir.join("config/agentd")).unwrap();
}

const FILE: &str = "config/agentd/settings.json";
const PLAN: &str = r#"{"mode": "plan"}"#;
const AUTO: &str = r#"{"mode": "auto"}"#;

#[tokio::test]
async fn a_save_is_seen_in_place_by_rename_and_by_delete_and_create() {
    let mut desk = Desk::new(folder);
    let (file, draft) = (desk.path(FILE), desk.path("config/agentd/.settings.json.swp"));
    for _ in 0..2 {
        fs::write(&file, PLAN).unwrap();
        desk.sees_mode(Mode::Plan).await;
        fs::write(&draft, AUTO).unwrap();
        fs::rename(&draft, &file).unwrap();
        desk.sees_mode(Mode::Auto).await;
        fs::remove_file(&file).unwrap();
        desk.sees_mode(Mode::Ask).await;
    }
}

#[tokio::test]
async fn a_folder_that_comes_later_or_is_replaced_is_seen() {
    let mut desk = Desk::new(|_| ());
    for _ in 0..2 {
        fs::create_dir_all(desk.path("config/agentd")).unwrap();
        fs::write(desk.path(FILE), PLAN).unwrap();
        desk.sees_mode(Mode::Plan).await;
        fs::create_dir_all(desk.path("next")).unwrap();
        fs::write(desk.path("next/settings.json"), AUTO).unwrap();
        fs::rename(desk.path("config/agentd"), desk.path("old")).unwrap();
        fs::rename(desk.path("next"), desk.path("config/agentd")).unwrap();
        desk.sees_mode(Mode::Auto).await;
        fs::write(desk.path(FILE), PLAN).unwrap();
        desk.sees_mode(Mode::Plan).await;
        fs::remove_dir_all(desk.path("old")).unwrap();
        fs::remove_dir_all(desk.path("config")).unwrap();
        desk.sees_mode(Mode::Ask).await;
    }
}

#[tokio::test]
async fn a_change_behind_a_link_and_of_the_link_is_seen() {
    let mut desk = Desk::new(|dir| {
        folder(dir);
        for name in ["one", "two"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        fs::write(dir.join("one/s.json"), PLAN).unwrap();
        symlink(dir.join("one/s.json"), dir.join(FILE)).unwrap();
    });
    desk.sees_mode(Mode::Plan).await;
    fs::write(desk.path("one/s.json"), AUTO).unwrap();
    desk.sees_mode(Mode::Auto).await;
    fs::write(desk.path("two/s.json"), PLAN).unwrap();
    symlink(desk.path("two/s.json"), desk.path("fresh")).unwrap();
    fs::rename(desk.path("fresh"), desk.path(FILE)).unwrap();
    desk.sees_mode(Mode::Plan).await;
    fs::write(desk.path("two/s.json"), AUTO).unwrap();
    desk.sees_mode(Mode::Auto).await;
}

#[tokio::test]
async fn a_folder_that_is_a_link_and_leads_elsewhere_later_is_seen() {
    let mut desk = Desk::new(|dir| {
        for (name, text) in [("one", PLAN), ("two", AUTO)] {
            fs::create_dir(dir.join(name)).unwrap();
            fs::write(dir.join(name).join("settings.json"), text).unwrap();
        }
        fs::create_dir(dir.join("config")).unwrap();
        symlink(dir.join("one"), dir.join("config/agentd")).unwrap();
    });
    for (name, mode) in [("two", Mode::Auto), ("one", Mode::Plan)] {
        symlink(desk.path(name), desk.path("fresh")).unwrap();
        fs::rename(desk.path("fresh"), desk.path("config/agentd")).unwrap();
        desk.sees_mode(mode).await;
    }
}

#[tokio::test]
async fn a_bad_save_keeps_the_last_good_settings_and_says_so() {
    let mut desk = Desk::new(folder);
    fs::write(desk.path(FILE), PLAN).unwrap();
    desk.sees_mode(Mode::Plan).await;
    fs::write(desk.path(FILE), "{\"mode\": ").unwrap();
    desk.sees("the notice", |loaded| loaded.notices.iter().any(|notice| notice.contains("last good"))).await;
    assert_eq!(desk.seen.borrow().settings.mode, Mode::Plan);
    fs::write(desk.path(FILE), AUTO).unwrap();
    desk.sees("the repair", |loaded| loaded.settings.mode == Mode::Auto && loaded.notices.is_empty()).await;
}

#[tokio::test]
async fn the_task_ends_with_its_token() {
    let desk = Desk::new(folder);
    desk.cancel.cancel();
    tokio::time::timeout(PATIENCE, desk.watch.stopped()).await.unwrap();
}
