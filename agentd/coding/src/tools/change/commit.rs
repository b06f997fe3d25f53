//! Writes checked changes in order and takes back what was written when one of them fails.
//!
//! What cannot be taken back is named in the error: a half-done change is never reported as nothing.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use foundation::{ErrorCode, ToolError};

use super::{After, Before, Change};
use crate::atomic::{self, Expect, WriteError};
use crate::file_state::{FileState, stale};
use crate::paths::io_error;

/// How to take one step back.
enum Undo<'a> {
    Restore(&'a Before),
    Remove(&'a After),
    Directories(Vec<PathBuf>),
}

pub(super) fn commit(changes: &[Change], files: &FileState) -> Result<(), ToolError> {
    let mut done = Vec::new();
    for change in changes {
        if let Err(error) = write(change, &mut done) {
            return Err(taken_back(error, done));
        }
    }
    for change in changes {
        if let Some(before) = &change.before {
            files.forget(&before.target.real);
        }
        if let Some(after) = &change.after {
            files.note(&after.target.real, blake3::hash(&after.bytes));
        }
    }
    Ok(())
}

fn write<'a>(change: &'a Change, done: &mut Vec<Undo<'a>>) -> Result<(), ToolError> {
    let before = change.before.as_ref();
    if let Some(after) = &change.after {
        let stays = before.is_some_and(|before| before.target.real == after.target.real);
        let like = before.map(|before| &before.meta);
        if !stays {
            let created = atomic::create_parents(&after.target.real).map_err(|error| io_error(&after.shown, &error))?;
            done.push(Undo::Directories(created));
        }
        let expect = match before {
            Some(before) if stays => Expect::Same(&before.meta),
            Some(_) | None => Expect::Nothing,
        };
        put(after, like, expect)?;
        match before {
            Some(before) if stays => done.push(Undo::Restore(before)),
            Some(_) | None => done.push(Undo::Remove(after)),
        }
        if stays {
            return Ok(());
        }
    }
    if let Some(before) = before {
        let removed = atomic::remove(&before.target.real, Expect::Same(&before.meta));
        removed.map_err(|error| named(&before.shown, error))?;
        done.push(Undo::Restore(before));
    }
    Ok(())
}

fn put(after: &After, like: Option<&Metadata>, expect: Expect<'_>) -> Result<(), ToolError> {
    let written = atomic::replace(&after.target.real, &after.bytes, like, expect);
    written.map_err(|error| match (error, expect) {
        (WriteError::Changed, Expect::Nothing) => exists(&after.shown),
        (error, _) => named(&after.shown, error),
    })
}

fn named(shown: &str, error: WriteError) -> ToolError {
    match error {
        WriteError::Changed => stale(shown),
        WriteError::Io(error) => io_error(shown, &error),
    }
}

/// The error for a file that was to be new.
pub(in crate::tools) fn exists(shown: &str) -> ToolError {
    ToolError::new(
        ErrorCode::AlreadyExists,
        format!("{shown} exists already; nothing was written"),
        "Read it and change it, or choose another name.",
    )
}

fn taken_back(mut error: ToolError, done: Vec<Undo<'_>>) -> ToolError {
    let mut stuck = Vec::new();
    let steps = done.iter().filter(|undo| !matches!(undo, Undo::Directories(_))).count();
    for undo in done.into_iter().rev() {
        let (shown, result) = match undo {
            Undo::Restore(before) => (&before.shown, restored(&before.target.real, before)),
            Undo::Remove(after) => (&after.shown, atomic::remove(&after.target.real, Expect::Anything)),
            Undo::Directories(created) => {
                atomic::remove_created(&created);
                continue;
            }
        };
        if let Err(error) = result {
            stuck.push(format!("{shown} ({error})"));
        }
    }
    if !stuck.is_empty() {
        error.summary = format!("{}; changed and not taken back: {}", error.summary, stuck.join(", "));
        error.hint = format!("Read these files to see what they hold now. {}", error.hint);
    } else if steps > 0 {
        error.summary = format!("{}; the other files were put back as they were", error.summary);
    }
    error
}

fn restored(real: &Path, before: &Before) -> Result<(), WriteError> {
    atomic::replace(real, &before.bytes, Some(&before.meta), Expect::Anything)
}
