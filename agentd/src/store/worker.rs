//! The one thread that writes: it takes all writes that wait and commits them together.
//!
//! A write is answered after the commit that holds it, never before. One that fails or panics is undone alone; the
//! others of its group are committed. A write whose caller has gone is done all the same.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use foundation::failpoint;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::error::{Fault, StoreError, of_sqlite};
use super::room::Room;
use super::schema::DatabaseFile;

#[cfg(test)]
mod tests;

/// Writes in one transaction at most.
const GROUP: usize = 64;
/// Writes that may wait. When there are more, callers wait to hand theirs in.
const QUEUE: usize = 256;

/// May be run again: after a full disk was given some room.
pub(super) type Write = Box<dyn Fn(&Connection) -> Result<(), Fault> + Send>;
type Reply = oneshot::Sender<Result<(), StoreError>>;

enum Message {
    Write(Write, Reply),
    Close,
}

/// Where writes are handed in.
#[derive(Debug)]
pub(super) struct Writer {
    file: PathBuf,
    sender: mpsc::Sender<Message>,
    commits: Arc<AtomicU64>,
    broken: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(db: Connection, file: DatabaseFile, room: Room) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (path, commits) = (file.path.clone(), Arc::new(AtomicU64::new(0)));
        let broken = CancellationToken::new();
        let committer =
            Committer { db, file, commits: Arc::clone(&commits), broken: None, alarm: broken.clone(), room };
        let thread = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || committer.run(receiver))
            .map_err(|error| StoreError::Other { file: path.clone(), detail: error.to_string() })?;
        Ok(Self { file: path, sender, commits, broken, thread: Mutex::new(Some(thread)) })
    }

    /// Answers once the write is on disk or undone.
    pub(super) async fn write(&self, write: Write) -> Result<(), StoreError> {
        let closed = || StoreError::Closed { file: self.file.clone() };
        let (reply, answer) = oneshot::channel();
        self.sender.send(Message::Write(write, reply)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Cancelled once nothing may be written any more.
    pub(super) fn broken(&self) -> CancellationToken {
        self.broken.clone()
    }

    /// Finishes what was handed in before, then ends the thread.
    pub(super) async fn close(&self) {
        // It fails when the thread has ended already.
        let _already_closed = self.sender.send(Message::Close).await;
        self.sender.closed().await;
        join(&self.thread);
    }
}

/// Waits for a thread that has let go of its channel, which is the last thing it does.
pub(super) fn join(thread: &Mutex<Option<JoinHandle<()>>>) {
    let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
    if thread.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!("a thread of the store had panicked");
    }
}

struct Committer {
    db: Connection,
    file: DatabaseFile,
    commits: Arc<AtomicU64>,
    /// Set once nothing may be written any more.
    broken: Option<StoreError>,
    /// Cancelled at that moment.
    alarm: CancellationToken,
    room: Room,
}

impl Committer {
    fn run(mut self, mut receiver: mpsc::Receiver<Message>) {
        let mut open = true;
        while open {
            let (mut writes, mut replies) = (Vec::new(), Vec::new());
            let mut next = receiver.blocking_recv();
            open = next.is_some();
            while let Some(message) = next {
                match message {
                    Message::Write(write, reply) => {
                        writes.push(write);
                        replies.push(reply);
                    }
                    Message::Close => {
                        open = false;
                        break;
                    }
                }
                // Nobody is waited for: a write that is alone is committed alone.
                next = if writes.len() < GROUP { receiver.try_recv().ok() } else { None };
            }
            if !writes.is_empty() {
                self.answer(&writes, replies);
            }
        }
        self.finish();
        drop(receiver);
    }

    fn answer(&mut self, writes: &[Write], replies: Vec<Reply>) {
        let count = replies.len();
        let mut done = self.commit(writes);
        if matches!(done, Err(StoreError::Full { .. })) && self.room.give_up() {
            done = self.commit(writes);
        }
        let answers = done.unwrap_or_else(|error| {
            // A full disk was told when it was found full.
            if !matches!(error, StoreError::Full { .. }) {
                tracing::error!(%error, writes = count, "a commit failed; nothing of it was stored");
            }
            if error.is_final() {
                self.broken = Some(error.clone());
                self.alarm.cancel();
            }
            vec![Err(error); count]
        });
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A caller that has gone misses nothing but the news.
            let _gone = reply.send(answer);
        }
    }

    /// What became of each write, or why all of them are undone.
    fn commit(&mut self, writes: &[Write]) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        self.sql("BEGIN IMMEDIATE")?;
        let done = writes.iter().map(|write| self.one(write)).collect::<Result<Vec<_>, _>>();
        let done = done.and_then(|answers| {
            self.file.check()?;
            failpoint::check("commit").map_err(|error| self.of_io(&error))?;
            self.sql("COMMIT")?;
            Ok(answers)
        });
        match &done {
            Ok(_) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
            }
            // A full or failing disk makes SQLite roll back by itself.
            Err(_) if self.db.is_autocommit() => {}
            Err(_) => {
                // What is still open would become part of the next commit, and nobody was promised it.
                if let Err(error) = self.sql("ROLLBACK") {
                    tracing::error!(%error, "a rollback failed: nothing more is written until the next start");
                    self.broken = Some(error);
                    self.alarm.cancel();
                }
            }
        }
        done
    }

    /// Runs one write in its own savepoint. The outer error is the end of the whole transaction.
    fn one(&self, write: &Write) -> Result<Result<(), StoreError>, StoreError> {
        self.sql("SAVEPOINT write")?;
        let answer = match catch_unwind(AssertUnwindSafe(|| write(&self.db))) {
            Ok(answer) => answer.map_err(|fault| fault.of(&self.file.path)),
            Err(_) => {
                let detail = "a write stopped with a panic and was undone".into();
                Err(StoreError::Other { file: self.file.path.clone(), detail })
            }
        };
        if let Err(error) = &answer {
            // A full disk concerns all of them, and they are tried again together.
            if self.db.is_autocommit() || matches!(error, StoreError::Full { .. }) {
                return Err(error.clone());
            }
            self.sql("ROLLBACK TO write")?;
        }
        self.sql("RELEASE write")?;
        Ok(answer)
    }

    fn of_io(&self, error: &std::io::Error) -> StoreError {
        let file = self.file.path.clone();
        match error.kind() {
            std::io::ErrorKind::StorageFull => StoreError::Full { file },
            _ => StoreError::Io { file, detail: error.to_string() },
        }
    }

    fn sql(&self, sql: &str) -> Result<(), StoreError> {
        let run = || self.db.prepare_cached(sql)?.execute([]).map(drop);
        run().map_err(|error| of_sqlite(&self.file.path, &error))
    }

    /// Leaves one tidy file behind. Nothing is lost when it fails: the next start does it.
    fn finish(self) {
        let tidy = || {
            self.db.execute_batch("PRAGMA optimize")?;
            self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        if self.broken.is_none()
            && let Err(error) = tidy()
        {
            tracing::warn!(%error, "the database was closed without a checkpoint");
        }
    }
}
