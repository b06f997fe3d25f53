//! The store looked at from outside: is the file whole, do the chains hold, does the index say what the journal says.
//!
//! It only reads, and it reports rather than fails: what is damaged in one session is the verdict on that session.

use std::panic::{AssertUnwindSafe, catch_unwind};

use protocol::{Seq, SessionId};
use rusqlite::Connection;

use super::error::{Fault, StoreError};
use super::journal::{self, Link, Stretch};
use super::{Store, projection};

#[cfg(test)]
mod tests;

/// What was found of one session.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Verdict {
    /// As the journal has it; after a damage it may be no id at all.
    pub session: String,
    /// Events whose place in the chain holds.
    pub events: u64,
    /// The first event that is not what was stored, or that is missing.
    pub broken_at: Option<Seq>,
    /// What else is wrong, in words.
    pub fault: Option<String>,
}

impl Verdict {
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.broken_at.is_none() && self.fault.is_none()
    }
}

impl Store {
    /// What SQLite itself finds wrong with the file; `None` when that is nothing. Reads all of the file.
    ///
    /// # Errors
    /// When the store was closed.
    pub async fn check_file(&self) -> Result<Option<String>, StoreError> {
        self.read(|db| Ok(file(db))).await
    }

    /// All sessions that the journal or the index knows of, by name.
    ///
    /// # Errors
    /// `Corrupt` when not even that can be read.
    pub async fn check_names(&self) -> Result<Vec<String>, StoreError> {
        self.read(|db| Ok(names(db)?)).await
    }

    /// Checks one session: its chain, and with `rebuild` its index against one made anew. `None` when it was deleted
    /// meanwhile.
    ///
    /// # Errors
    /// When the store was closed.
    pub async fn check_session(&self, name: String, rebuild: bool) -> Result<Option<Verdict>, StoreError> {
        self.read(move |db| Ok(session(db, &name, rebuild))).await
    }
}

fn file(db: &Connection) -> Option<String> {
    let check = || -> rusqlite::Result<Vec<String>> {
        db.prepare("PRAGMA integrity_check(5)")?.query_map([], |row| row.get(0))?.collect()
    };
    match check() {
        Ok(lines) if lines == ["ok"] => None,
        Ok(lines) => Some(lines.join("; ")),
        Err(error) => Some(error.to_string()),
    }
}

/// The first thing that is wrong with a file or with a session in it; `None` for a sound one.
pub(super) fn first_fault(db: &Connection) -> Option<String> {
    if let Some(what) = file(db) {
        return Some(what);
    }
    let names = match names(db) {
        Ok(names) => names,
        Err(error) => return Some(error.to_string()),
    };
    let verdicts = names.iter().filter_map(|name| session(db, name, false));
    verdicts
        .filter(|verdict| !verdict.is_sound())
        .map(|verdict| format!("session {} is damaged", verdict.session))
        .next()
}

const NAMES: &str = "SELECT session_id FROM event UNION SELECT id FROM session";

/// The names of all sessions in a file.
pub(super) fn names(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let name = |row: &rusqlite::Row<'_>| Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned());
    db.prepare(NAMES)?.query_map([], name)?.collect()
}

fn session(db: &Connection, name: &str, rebuild: bool) -> Option<Verdict> {
    let mut verdict = Verdict { session: name.to_owned(), ..Verdict::default() };
    let Some(id) = name.parse::<SessionId>().ok().filter(|id| id.to_string() == name) else {
        verdict.broken_at = Some(1);
        verdict.fault = Some("these events stand under a name that is no session's".to_owned());
        return Some(verdict);
    };
    // What a damage makes of a row is nobody's promise: a panic over it is one more verdict.
    let checked = catch_unwind(AssertUnwindSafe(|| inspect(db, id, rebuild, &mut verdict)));
    let fault = match checked {
        Ok(Ok(())) => None,
        Ok(Err(Fault::Sql(error))) => Some(error.to_string()),
        Ok(Err(Fault::Refused(error))) => Some(error.fact()),
        Err(_) => Some("reading it stopped with a panic".to_owned()),
    };
    verdict.fault = verdict.fault.or(fault);
    (verdict.is_sound() || exists(db, name)).then_some(verdict)
}

fn inspect(db: &Connection, id: SessionId, rebuild: bool, verdict: &mut Verdict) -> Result<(), Fault> {
    let mut link = Link::FIRST;
    loop {
        match journal::verify(db, id, link)? {
            Stretch::Holds(next) => link = next,
            Stretch::Complete => break,
            Stretch::Broken(seq) => {
                verdict.events = seq.saturating_sub(1);
                verdict.broken_at = Some(seq);
                return Ok(());
            }
        }
        verdict.events = link.seq();
    }
    if rebuild && let Some(table) = projection::differs(db, id)? {
        verdict.fault = Some(format!("the index `{table}` does not say what the journal says"));
    }
    Ok(())
}

/// When that cannot be told, it is there: a verdict is not to be lost.
fn exists(db: &Connection, name: &str) -> bool {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM event WHERE session_id = ?1) OR EXISTS (SELECT 1 FROM session WHERE id = ?1)";
    db.query_row(sql, [name], |row| row.get(0)).unwrap_or(true)
}
