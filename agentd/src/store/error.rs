//! What can go wrong with the database, told so that a person knows what to do.
//!
//! A write that answers with an error left nothing behind.

use std::path::{Path, PathBuf};

use protocol::{Seq, SessionId};
use rusqlite::ErrorCode;

use super::holders;

/// A failure of the store: which file, what happened, the next step.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} (hint: {})", self.fact(), self.hint())]
pub enum StoreError {
    /// Another program held the database for more than 5 seconds.
    Busy {
        file: PathBuf,
        /// Who has it open too, with their process ids; empty if that is not known.
        by: String,
    },
    /// The disk is full.
    Full { file: PathBuf },
    /// The file or its file system cannot be written.
    ReadOnly { file: PathBuf },
    /// Something in the file is not what was written there.
    Corrupt { file: PathBuf, detail: String },
    /// The chain of hashes of a session's journal does not hold from this event on.
    Chain { file: PathBuf, session: SessionId, seq: Seq },
    /// The disk failed. After a failed commit nothing more is written until the next start.
    Io { file: PathBuf, detail: String },
    /// The database was made by a newer agentd.
    TooNew { file: PathBuf, found: i32, supported: i32 },
    /// The file was deleted, moved or replaced while it was open. Nothing more is written to it.
    Unlinked { file: PathBuf },
    /// An event that is not the next one of its session.
    Sequence { session: SessionId, expected: Seq, found: Option<Seq> },
    /// Something that must not be stored.
    Refused { what: String, hint: &'static str },
    /// A place in a listing that no listing has given.
    Cursor { text: String },
    /// The store was closed before this could be done.
    Closed { file: PathBuf },
    /// Anything else.
    Other { file: PathBuf, detail: String },
}

impl StoreError {
    /// A stable name of the kind of failure, for programs and logs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "busy",
            Self::Full { .. } => "full",
            Self::ReadOnly { .. } => "read_only",
            Self::Corrupt { .. } => "corrupt",
            Self::Chain { .. } => "chain",
            Self::Io { .. } => "io",
            Self::TooNew { .. } => "too_new",
            Self::Unlinked { .. } => "unlinked",
            Self::Sequence { .. } => "sequence",
            Self::Refused { .. } => "refused",
            Self::Cursor { .. } => "cursor",
            Self::Closed { .. } => "closed",
            Self::Other { .. } => "other",
        }
    }

    /// What happened to what.
    #[must_use]
    pub fn fact(&self) -> String {
        match self {
            Self::Busy { file, by } => {
                let by = if by.is_empty() { "another program" } else { by };
                format!("{}: locked for more than 5 seconds by {by}", file.display())
            }
            Self::Full { file } => format!("{}: no space is left on its disk", file.display()),
            Self::ReadOnly { file } => format!("{}: cannot be written", file.display()),
            Self::Corrupt { file, detail } => format!("{}: damaged: {detail}", file.display()),
            Self::Chain { file, session, seq } => {
                format!("{}: session {session} is damaged at event {seq}", file.display())
            }
            Self::Io { file, detail } => format!("{}: the disk failed: {detail}", file.display()),
            Self::TooNew { file, found, supported } => {
                format!("{}: has schema version {found}, this agentd knows versions up to {supported}", file.display())
            }
            Self::Unlinked { file } => {
                format!("{}: was deleted, moved or replaced while agentd had it open", file.display())
            }
            Self::Sequence { session, expected, found } => {
                let found = found.map_or_else(|| "none".to_owned(), |seq| seq.to_string());
                format!("session {session}: the next event has number {expected}, this one has {found}")
            }
            Self::Refused { what, .. } => what.clone(),
            Self::Cursor { text } => format!("`{text}` is not a cursor of this list"),
            Self::Closed { file } => format!("{}: agentd has closed it", file.display()),
            Self::Other { file, detail } => format!("{}: {detail}", file.display()),
        }
    }

    /// The next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "stop that program (`fuser` on the file finds it too), then try again",
            Self::Full { .. } => "free some space, then try again; nothing was stored",
            Self::ReadOnly { .. } => "check the owner and mode of the file and whether its file system is read-only",
            Self::Corrupt { .. } | Self::Chain { .. } => {
                "stop agentd, then `agentd restore`: it moves the file aside and puts the newest copy in its place"
            }
            Self::Io { .. } => "check the disk and the kernel log, then restart agentd",
            Self::TooNew { .. } => "update agentd, or use the copy that was made before the update",
            Self::Unlinked { .. } => "put the file back if you moved it, then restart agentd",
            Self::Sequence { .. } => "read the session's last event again, then go on after it",
            Self::Refused { hint, .. } => hint,
            Self::Cursor { .. } => "send `nextCursor` of the page before as it came, or none",
            Self::Closed { .. } => "try again once agentd runs again",
            Self::Other { .. } => "look at the lines before this one in agentd's log",
        }
    }

    /// True when nothing may be written after it: what the disk holds is no longer known.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Unlinked { .. })
    }
}

/// A failure inside one read or write, before it is known of which file.
#[derive(Debug)]
pub(super) enum Fault {
    Sql(rusqlite::Error),
    Refused(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Fault {
    pub(super) fn of(self, file: &Path) -> StoreError {
        match self {
            Self::Sql(error) => of_sqlite(file, &error),
            Self::Refused(error) => error,
        }
    }
}

/// SQLite's own code, put into our words.
pub(super) fn of_sqlite(file: &Path, error: &rusqlite::Error) -> StoreError {
    let (file, detail) = (file.to_owned(), error.to_string());
    let moved = error.sqlite_error().is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_READONLY_DBMOVED);
    match error.sqlite_error_code() {
        _ if moved => StoreError::Unlinked { file },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { by: holders::of(&file), file },
        Some(ErrorCode::DiskFull) => StoreError::Full { file },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { file },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt { file, detail },
        Some(ErrorCode::SystemIoFailure) => StoreError::Io { file, detail },
        Some(_) => StoreError::Other { file, detail },
        // Not SQLite's but a column that does not hold what its type says.
        None => match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Corrupt { file, detail },
            _ => StoreError::Other { file, detail },
        },
    }
}
