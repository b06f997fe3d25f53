//! Where a path that somebody wrote really leads, and whether that is inside the session's folder.
//!
//! The permission engine and the tools both ask here, so that they can never differ. Every link is followed before
//! anything is decided, and what cannot be followed is refused: the raw string is never an answer. Containment is by
//! component, so `/work-evil` is not inside `/work`.

mod nearest;
mod open;

use std::io;
use std::path::{Component, Path, PathBuf};

use foundation::{ErrorCode, ToolError};

pub(crate) use nearest::not_found;
pub(crate) use open::{io_error, open_directory, open_file};

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// The folder that a session works in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Workspace {
    /// Canonical.
    root: PathBuf,
}

/// A path that has been followed to its end. The file itself need not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Absolute, without `.` and `..`; links not yet followed. What results speak of.
    pub absolute: PathBuf,
    /// Every link followed. What is opened.
    pub real: PathBuf,
    /// Whether `real` is the workspace's root or below it.
    pub inside: bool,
}

impl Target {
    /// Whether a link stands between what was written and what would be touched.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.absolute != self.real
    }
}

impl Workspace {
    /// Takes the folder that `root` leads to now. A link put in its place later is outside.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory` or `InvalidPath` when there is no such folder.
    pub fn open(root: &Path) -> Result<Self, ToolError> {
        let shown = root.display().to_string();
        let real = root.canonicalize().map_err(|error| io_error(&shown, &error))?;
        if !real.is_dir() {
            return Err(ToolError::new(
                ErrorCode::NotADirectory,
                format!("{shown} is not a directory"),
                "Name the folder that the session should work in.",
            ));
        }
        Ok(Self { root: real })
    }

    /// The canonical root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute path that `text` names, links not yet followed. Relative text counts from the root.
    ///
    /// # Errors
    /// `InvalidPath` for empty text, a zero byte, or a leading `~`, which is not expanded.
    pub fn absolute(&self, text: &str) -> Result<PathBuf, ToolError> {
        let refused = |fact: &str, hint: &str| Err(ToolError::new(ErrorCode::InvalidPath, fact, hint));
        if text.is_empty() {
            return refused("the path is empty", "Name a path relative to the workspace; `.` is its root.");
        }
        if text.contains('\0') {
            return refused("the path contains a zero byte", "Send the path without it.");
        }
        if text == "~" || text.starts_with("~/") {
            let fact = format!("{text}: `~` is not expanded");
            return refused(&fact, "Write the path out in full, or relative to the workspace.");
        }
        Ok(normalised(&self.root.join(text)))
    }

    /// Follows `text` to its end.
    ///
    /// # Errors
    /// As [`Workspace::absolute`] and [`Workspace::locate`].
    pub fn resolve(&self, text: &str) -> Result<Target, ToolError> {
        self.locate(&self.absolute(text)?)
    }

    /// Follows an absolute path to its end; a missing end is kept as it is written.
    ///
    /// # Errors
    /// `InvalidPath` for a loop of links or a name too long, `NotADirectory` for a path through a file,
    /// `PermissionDenied` where a folder on the way cannot be entered.
    pub fn locate(&self, path: &Path) -> Result<Target, ToolError> {
        let absolute = normalised(&self.root.join(path));
        let mut links = 0;
        let real = followed(&absolute, &mut links).map_err(|error| io_error(&self.show(&absolute), &error))?;
        let inside = real.starts_with(&self.root);
        Ok(Target { absolute, real, inside })
    }

    /// How results speak of a path: relative to the root where it is inside, absolute elsewhere.
    #[must_use]
    pub fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(own) if own.as_os_str().is_empty() => ".".to_owned(),
            Ok(own) => own.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// Takes `.` and `..` out by name alone: what a person reads is what is meant, also behind a link.
fn normalised(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

/// The canonical form of the longest part that exists, with the missing rest behind it.
fn followed(path: &Path, links: &mut usize) -> io::Result<PathBuf> {
    let missing = match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => error,
        Err(error) => return Err(error),
    };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(missing);
    };
    let parent = followed(parent, links)?;
    let whole = parent.join(name);
    match whole.symlink_metadata() {
        // A link to nowhere: writing through it would create its target, so that is where it leads.
        Ok(meta) if meta.is_symlink() => {
            *links += 1;
            if *links > MAX_LINKS {
                return Err(io::Error::from_raw_os_error(rustix::io::Errno::LOOP.raw_os_error()));
            }
            let target = whole.read_link()?;
            followed(&through(&parent, &target)?, links)
        }
        Ok(_) => Err(missing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(whole),
        Err(error) => Err(error),
    }
}

/// Where a link's text leads. Its `..` are the kernel's: they count from the folder the link really stands in.
fn through(parent: &Path, target: &Path) -> io::Result<PathBuf> {
    let mut at = parent.to_path_buf();
    for component in target.components() {
        match component {
            Component::ParentDir => {
                at = at.canonicalize()?;
                at.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => at.push(component),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
