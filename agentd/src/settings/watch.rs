//! Follows the user's settings file and publishes what it says.
//!
//! The kernel's events are only a hint to look: what the file holds decides whether anything is published. The folders
//! are watched and not the file, so that a save by rename, a moved symlink or a folder that is replaced are all seen;
//! where no watch can be had, the file is looked at every two seconds. A broken file never ends the watching.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::source::{Loaded, SettingsSource};

/// An editor's save is several events; they count as one when they come within this time.
const SETTLE: Duration = Duration::from_millis(100);
/// How often to look where the kernel does not tell.
const POLL: Duration = Duration::from_secs(2);

/// The running watch; it ends with its token, or when this is dropped.
#[derive(Debug)]
pub struct SettingsWatch {
    receiver: watch::Receiver<Arc<Loaded>>,
    tasks: JoinSet<()>,
}

impl SettingsWatch {
    /// Reads the settings once, then follows them until `cancel`. Needs a tokio runtime.
    #[must_use]
    pub fn start(source: Arc<SettingsSource>, cancel: CancellationToken) -> Self {
        // Armed before the first look, so that no change falls between the two.
        let eyes = Eyes::open(source.user_file());
        let loaded = source.load(None);
        warn(&loaded);
        let (sender, receiver) = watch::channel(Arc::new(loaded));
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(source, eyes, sender, cancel));
        Self { receiver, tasks }
    }

    /// The user's settings as they are now, and each change of them.
    #[must_use]
    pub fn receiver(&self) -> watch::Receiver<Arc<Loaded>> {
        self.receiver.clone()
    }

    /// Waits for the end that the token asks for.
    pub async fn stopped(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn follow(
    source: Arc<SettingsSource>,
    mut eyes: Eyes,
    sender: watch::Sender<Arc<Loaded>>,
    cancel: CancellationToken,
) {
    while cancel.run_until_cancelled(eyes.wait()).await.is_some() {
        let reader = Arc::clone(&source);
        let look = tokio::task::spawn_blocking(move || {
            eyes.aim();
            (eyes, reader.load(None))
        });
        // A panic in there is a defect; without eyes nothing is left to do, and the last settings stay.
        let Ok((back, loaded)) = look.await else { return };
        eyes = back;
        let changed = sender.send_if_modified(|current| {
            let changed = **current != loaded;
            if changed {
                *current = Arc::new(loaded);
            }
            changed
        });
        if changed {
            warn(&sender.borrow());
        }
    }
}

/// Tells the log what a person should know.
fn warn(loaded: &Loaded) {
    for notice in &loaded.notices {
        tracing::warn!(notice, "settings");
    }
}

/// The watched folders.
struct Eyes {
    file: PathBuf,
    watcher: Option<RecommendedWatcher>,
    watched: Vec<PathBuf>,
    /// False while some folder could not be watched.
    complete: bool,
    events: mpsc::Receiver<()>,
}

impl Eyes {
    fn open(file: PathBuf) -> Self {
        // One place: an event that finds it taken changes nothing, somebody is about to look anyway.
        let (sender, events) = mpsc::channel(1);
        let on_event = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| !event.kind.is_access()) {
                sender.try_send(()).ok();
            }
        };
        let watcher = notify::recommended_watcher(on_event)
            .inspect_err(|error| tracing::warn!(%error, "settings are not watched, looking every 2 s instead"))
            .ok();
        let mut eyes = Self { file, watcher, watched: vec![], complete: false, events };
        eyes.aim();
        eyes
    }

    /// Waits for a reason to look at the file.
    async fn wait(&mut self) {
        if self.complete {
            // The sender lives in the watcher, which lives in `self`.
            self.events.recv().await;
        } else {
            // Without a watcher there is nobody who could send, and that must not make this a busy loop.
            tokio::select! {
                Some(()) = self.events.recv() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
        tokio::time::sleep(SETTLE).await;
        self.events.try_recv().ok();
    }

    /// Watches the folders that matter now: where the file is, what that folder lies in, and where a link leads.
    fn aim(&mut self) {
        let wanted = folders(&self.file);
        let Some(watcher) = &mut self.watcher else { return };
        // All of them anew: a folder of the same name may be another folder by now.
        for folder in self.watched.drain(..) {
            watcher.unwatch(&folder).ok();
        }
        self.complete = true;
        for folder in wanted {
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched.push(folder),
                Err(error) => {
                    tracing::debug!(%error, folder = %folder.display(), "cannot be watched");
                    self.complete = false;
                }
            }
        }
    }
}

fn folders(file: &Path) -> Vec<PathBuf> {
    let existing = |path: &Path| path.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned);
    let near = existing(file);
    let above = near.as_deref().and_then(existing);
    let behind_link = file.canonicalize().ok().and_then(|real| existing(&real));
    let mut all: Vec<_> = [near, above, behind_link].into_iter().flatten().collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
