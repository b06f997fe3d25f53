//! What became of a call that was changing files when agentd was cut off: told by looking at the files.

use std::io;
use std::path::Path;

use foundation::FileMark;

use crate::atomic;

/// What the files of a call say about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OnDisk {
    /// All are as they were before it.
    NotApplied,
    /// All are as it was to leave them.
    Applied,
    /// Neither; what each of them holds, a line for a file.
    Unknown(String),
}

/// Looks at the files, and takes away the temporary files that the call has left beside them. Blocks.
#[must_use]
pub fn settle(marks: &[FileMark]) -> OnDisk {
    let mut directories: Vec<&Path> = marks.iter().filter_map(|mark| mark.path.parent()).collect();
    directories.sort_unstable();
    directories.dedup();
    directories.into_iter().for_each(atomic::sweep);
    let found: Vec<_> = marks.iter().map(|mark| (mark, content(&mark.path))).collect();
    let all = |is: fn(&FileMark) -> &Option<String>| found.iter().all(|(mark, now)| now.as_ref() == Ok(is(mark)));
    match () {
        // Nothing is known of it, so nothing is said of it.
        () if marks.is_empty() => OnDisk::Unknown(String::new()),
        () if all(|mark| &mark.after) => OnDisk::Applied,
        () if all(|mark| &mark.before) => OnDisk::NotApplied,
        () => OnDisk::Unknown(found.iter().map(|(mark, now)| said(mark, now)).collect::<Vec<_>>().join("\n")),
    }
}

/// What stands in a mark for a folder, whose content is not looked at.
pub(crate) fn folder() -> String {
    "folder".to_owned()
}

/// The hash of a file's content, `None` for no file, or why it cannot be read.
pub(crate) fn content(path: &Path) -> Result<Option<String>, String> {
    let hash = || -> io::Result<Option<String>> {
        let meta = path.symlink_metadata()?;
        if meta.is_dir() {
            return Ok(Some(folder()));
        }
        // What stands there may be anything by now; a pipe would never end.
        if !meta.is_file() {
            return Err(io::Error::other("not a file any more"));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(path)?)?;
        Ok(Some(hasher.finalize().to_hex().to_string()))
    };
    match hash() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        known => known.map_err(|error| error.to_string()),
    }
}

fn said(mark: &FileMark, now: &Result<Option<String>, String>) -> String {
    let short = |hash: &Option<String>| {
        hash.as_deref().map_or("absent".to_owned(), |hash| format!("blake3 {}", hash.get(..12).unwrap_or(hash)))
    };
    let what = match now {
        Ok(now) if *now == mark.after => "as the call was to leave it".to_owned(),
        Ok(now) if *now == mark.before => "as it was before the call".to_owned(),
        Ok(now) => {
            format!("now {}; before the call {}, after it {}", short(now), short(&mark.before), short(&mark.after))
        }
        Err(error) => format!("cannot be read: {error}"),
    };
    format!("{}: {what}", mark.path.display())
}

#[cfg(test)]
mod tests;
