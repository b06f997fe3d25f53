//! Everything that outlives the process: one SQLite file, one thread that writes it, a few that read.
//!
//! What `append` has answered for is on the disk. Content is stored once, in the journal; all other tables of a
//! session are an index over it, or rows that were committed with it. Knows nothing about sockets, turns or models.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::{
    Actor, Approval, ApprovalId, ApprovalState, DecisionRecord, Message, QuestionId, QuestionRequest, QuestionState,
    Seq, Session, SessionId, Todo, Turn, TurnId, Usage,
};
use rusqlite::Connection;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use backup::restore;
pub use calls::{CallRow, CallState};
pub use check::Verdict;
pub use decisions::DecisionFilter;
pub use error::StoreError;
pub use grants::GrantRow;
pub use journal::{Entry, HistoryPage, NewEvent, StoredEvent};
pub use receipts::ReceiptRow;
pub use rescue::Rescue;
pub use sessions::{SessionFilter, SessionTotals};
pub use workbench::WorkbenchRows;

use error::Fault;
use journal::{Link, Stretch};
use readers::Readers;
use room::Room;
use worker::Writer;

mod asks;
mod attempts;
mod backup;
mod calls;
mod check;
mod columns;
mod decisions;
mod drafts;
mod error;
mod grants;
mod holders;
mod journal;
mod projection;
mod readers;
mod receipts;
mod rescue;
mod room;
mod schema;
mod sessions;
mod turns;
mod workbench;
mod worker;

#[cfg(test)]
mod tests;

/// The daemon's database. Clones are the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    epoch: String,
    readers: Readers,
    writer: Writer,
    room: Room,
    rescue: Option<Rescue>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the database, or makes one that only its owner can read. One of an older agentd is brought up to date,
    /// after a copy of it was made as `<name>.v<version>`. Blocks while it does.
    ///
    /// # Errors
    /// `TooNew` for a database of a newer agentd, which is left as it is. `Busy`, `ReadOnly`, `Corrupt`, `Full`.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_after(path, None)
    }

    fn open_after(path: &Path, rescue: Option<Rescue>) -> Result<Self, StoreError> {
        let (db, file, epoch) = schema::open(path)?;
        let readers = Readers::start(path)?;
        let room = Room::take(path);
        let writer = Writer::start(db, file, room.clone())?;
        Ok(Self { inner: Arc::new(Inner { path: path.to_owned(), epoch, readers, writer, room, rescue }) })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// What was done at this start because the database was damaged.
    #[must_use]
    pub fn rescue(&self) -> Option<&Rescue> {
        self.inner.rescue.as_ref()
    }

    /// How long the file is that holds what is not yet in the database file.
    #[must_use]
    pub fn wal_bytes(&self) -> u64 {
        let mut wal = self.inner.path.as_os_str().to_owned();
        wal.push("-wal");
        std::fs::metadata(PathBuf::from(wal)).map_or(0, |wal| wal.len())
    }

    /// Names this database and no other, for as long as it exists.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.inner.epoch
    }

    /// Whether the disk was found full, and room has not been seen again since. Then nothing new is to be started.
    #[must_use]
    pub fn is_short_of_room(&self) -> bool {
        self.inner.room.is_short()
    }

    /// Changes when room on the disk gets short, and when it is there again.
    #[must_use]
    pub fn watch_room(&self) -> watch::Receiver<bool> {
        self.inner.room.watch()
    }

    /// Looks whether there is room again. Blocks.
    pub fn look_for_room(&self) {
        self.inner.room.look();
    }

    /// Transactions committed since it was opened.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.inner.writer.commits()
    }

    /// Cancelled once nothing will be written any more: the disk failed, or the file was deleted, moved or replaced.
    /// That stays so until the store is opened again.
    #[must_use]
    pub fn broken(&self) -> CancellationToken {
        self.inner.writer.broken()
    }

    /// Whether the store still takes writes: hands in one that changes nothing and waits for its turn.
    ///
    /// # Errors
    /// What an `append` would be answered with now, as far as that does not depend on what it holds. Unlike an
    /// `append`, it does not notice a full disk.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(|_| Ok(()))).await
    }

    /// Commits events and the rows that belong to them. Answers once they are on the disk; a caller that does not wait
    /// for the answer does not undo them.
    ///
    /// # Errors
    /// `Sequence` unless each event is the next of its session, `Refused` for what contradicts the journal, and what
    /// the disk says. Nothing of the entry is stored then.
    pub async fn append(&self, entry: Entry) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| journal::append(tx, &entry))).await
    }

    /// Notes that a session is being taken up, in case that ends the daemon.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn begin_attempt(&self, session: SessionId) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| attempts::begin(tx, session))).await
    }

    /// It did not end the daemon.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn end_attempt(&self, session: SessionId) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| attempts::end(tx, session))).await
    }

    /// Removes a session and all that belongs to it. No error when there is none.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn delete_session(&self, id: SessionId) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| sessions::delete(tx, id))).await
    }

    /// Makes a session's index again from its journal: for a repair by hand, no running daemon needs it. Takes as long as the session is long, and no other write can
    /// happen meanwhile.
    ///
    /// # Errors
    /// `Corrupt` when an event cannot be read; the index is then left as it was.
    pub async fn rebuild(&self, id: SessionId) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| projection::rebuild(tx, id))).await
    }

    /// Checks that no event of a session was changed, lost or cut off since it was stored: the journal's own check, for
    /// tests and for a diagnosis.
    ///
    /// # Errors
    /// `Chain` names the first event that is not what it was.
    pub async fn verify_chain(&self, session: SessionId) -> Result<(), StoreError> {
        let mut link = Link::FIRST;
        loop {
            match self.read(move |db| journal::verify(db, session, link)).await? {
                Stretch::Holds(next) => link = next,
                Stretch::Complete => return Ok(()),
                Stretch::Broken(seq) => {
                    return Err(StoreError::Chain { file: self.inner.path.clone(), session, seq });
                }
            }
        }
    }

    /// Finishes all that was asked before, then lets go of the file. Later requests are answered with `Closed`.
    pub async fn close(&self) {
        // Readers first: an open reader would keep the writer from emptying the WAL.
        self.inner.readers.close().await;
        self.inner.writer.close().await;
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.readers.read(read).await
    }
}

/// Reads. Each sees all that `append` has answered for, and fails only when the database cannot be read (`Corrupt`
/// names what) or was closed.
#[allow(clippy::missing_errors_doc, reason = "said once for all, above")]
impl Store {
    /// A session as it is now; `attached` is 0.
    pub async fn session(&self, id: SessionId) -> Result<Option<Session>, StoreError> {
        self.read(move |db| sessions::get(db, id)).await
    }

    /// A page of sessions, newest change first, and the cursor of the next page. A cursor that is none is `Cursor`.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<(Vec<Session>, Option<String>), StoreError> {
        self.read(move |db| sessions::list(db, &filter)).await
    }

    pub async fn session_counts(&self) -> Result<SessionTotals, StoreError> {
        self.read(sessions::totals).await
    }

    /// At most `limit` events, and about 1 MiB, strictly between `after` and `before`, in order. Given `before` alone
    /// it is the page that ends just before it, else the page that begins just after `after`.
    pub async fn history(
        &self,
        session: SessionId,
        after: Option<Seq>,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<HistoryPage, StoreError> {
        self.read(move |db| journal::history(db, session, after, before, limit)).await
    }

    /// All messages, in order.
    pub async fn transcript(&self, session: SessionId) -> Result<Vec<Message>, StoreError> {
        self.read(move |db| turns::transcript(db, session)).await
    }

    pub async fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError> {
        self.read(move |db| turns::get(db, id)).await
    }

    /// In the order of sending.
    pub async fn turns(&self, session: SessionId) -> Result<Vec<Turn>, StoreError> {
        self.read(move |db| turns::of_session(db, session)).await
    }

    /// Turns of a session that are queued, running or recoverable, each with who handed it in.
    pub async fn open_turns(&self, session: SessionId) -> Result<Vec<(Turn, Option<Actor>)>, StoreError> {
        self.read(move |db| turns::open(db, session)).await
    }

    /// Sessions with a turn that is queued, running or recoverable, as asked for.
    pub async fn sessions_with_turn(&self, state: protocol::TurnState) -> Result<Vec<SessionId>, StoreError> {
        self.read(move |db| turns::sessions_with(db, state)).await
    }

    /// The turn that was handed in last.
    pub async fn last_turn(&self, session: SessionId) -> Result<Option<Turn>, StoreError> {
        self.read(move |db| turns::last(db, session)).await
    }

    /// The newest message.
    pub async fn last_message(&self, session: SessionId) -> Result<Option<Message>, StoreError> {
        self.read(move |db| turns::last_message(db, session)).await
    }

    /// The messages of a turn, in order.
    pub async fn messages_of(&self, turn: TurnId) -> Result<Vec<Message>, StoreError> {
        self.read(move |db| turns::messages(db, turn)).await
    }

    /// What the other turns of a session have used.
    pub async fn usage_without(&self, session: SessionId, turn: TurnId) -> Result<Usage, StoreError> {
        self.read(move |db| turns::usage_without(db, session, turn)).await
    }

    /// How often in a row a session was being taken up, by this version of agentd, when the daemon ended.
    pub async fn attempts(&self, session: SessionId) -> Result<u32, StoreError> {
        self.read(move |db| attempts::count(db, session)).await
    }

    /// What was growing in a session when it was last kept: `message`, or a call's id, and its text.
    pub async fn drafts(&self, session: SessionId) -> Result<Vec<(String, String)>, StoreError> {
        self.read(move |db| drafts::of_session(db, session)).await
    }

    /// Keeps what is growing. It replaces what was kept under the same keys.
    ///
    /// # Errors
    /// What the disk says.
    pub async fn keep_drafts(&self, session: SessionId, drafts: Vec<(String, String)>) -> Result<(), StoreError> {
        self.inner.writer.write(Box::new(move |tx| drafts::put(tx, session, &drafts))).await
    }

    /// In the order of their start.
    pub async fn calls(&self, turn: TurnId) -> Result<Vec<CallRow>, StoreError> {
        self.read(move |db| calls::of_turn(db, turn)).await
    }

    /// Those calls of a turn that were started and have no result.
    pub async fn open_calls(&self, turn: TurnId) -> Result<Vec<CallRow>, StoreError> {
        let mut calls = self.calls(turn).await?;
        calls.retain(|call| call.state == CallState::Started);
        Ok(calls)
    }

    pub async fn approval(&self, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        self.read(move |db| asks::approval(db, id)).await
    }

    /// Oldest first; of all sessions and in any state unless given.
    pub async fn approvals(
        &self,
        session: Option<SessionId>,
        state: Option<ApprovalState>,
    ) -> Result<Vec<Approval>, StoreError> {
        self.read(move |db| asks::approvals(db, session, state)).await
    }

    pub async fn question(&self, id: QuestionId) -> Result<Option<QuestionRequest>, StoreError> {
        self.read(move |db| asks::question(db, id)).await
    }

    /// What was decided about calls, newest first, and the cursor of the next page. A cursor that is none is `Cursor`.
    pub async fn decisions(&self, filter: DecisionFilter) -> Result<(Vec<DecisionRecord>, Option<String>), StoreError> {
        self.read(move |db| decisions::list(db, &filter)).await
    }

    /// Oldest first; of all sessions and in any state unless given.
    pub async fn questions(
        &self,
        session: Option<SessionId>,
        state: Option<QuestionState>,
    ) -> Result<Vec<QuestionRequest>, StoreError> {
        self.read(move |db| asks::questions(db, session, state)).await
    }

    pub async fn todos(&self, session: SessionId) -> Result<Vec<Todo>, StoreError> {
        self.read(move |db| turns::todos(db, session)).await
    }

    /// What the session's tools have seen and where its shell stands.
    pub async fn workbench(&self, session: SessionId) -> Result<WorkbenchRows, StoreError> {
        self.read(move |db| workbench::of_session(db, session)).await
    }

    /// In the order in which they were granted.
    pub async fn grants(&self, session: SessionId) -> Result<Vec<GrantRow>, StoreError> {
        self.read(move |db| grants::of_session(db, session)).await
    }

    /// What a client was told about a message with that id of its own.
    pub async fn receipt(&self, session: SessionId, client_message_id: &str) -> Result<Option<ReceiptRow>, StoreError> {
        let id = client_message_id.to_owned();
        self.read(move |db| receipts::get(db, session, id)).await
    }
}
