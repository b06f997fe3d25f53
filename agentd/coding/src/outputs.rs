//! What commands have said beyond what the model gets: kept whole in files of the session's own, to be read in pieces.
//!
//! The model names a file by a short id that is no path, so nothing else can be read this way.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use foundation::{ErrorCode, ToolError};
use tokio::io::AsyncWriteExt as _;

/// Output up to here is kept in memory alone: the model gets all of it.
pub(crate) const SHORT_BYTES: usize = 12_000;
/// As much of one output as is kept.
const MOST_BYTES: u64 = 64 << 20;
/// As many outputs as a session keeps; the oldest go first.
const MOST_OUTPUTS: usize = 50;

/// The outputs of one session.
#[derive(Debug)]
pub struct Outputs {
    dir: PathBuf,
}

/// An output that was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) id: String,
    /// Fewer than there were when the output was longer than what is kept.
    pub(crate) bytes: u64,
}

/// A part of an output.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
    /// Of the whole output.
    pub(crate) total: u64,
}

impl Outputs {
    /// Keeps them in a directory that is made with the first.
    #[must_use]
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Reads from `start` on, at most `most` bytes.
    ///
    /// # Errors
    /// `NotFound` for an id that names nothing here, `InvalidInput` for a start behind the end.
    pub(crate) fn read(&self, id: &str, start: u64, most: usize) -> Result<Piece, ToolError> {
        let number = id.strip_prefix('o').and_then(|number| number.parse::<u32>().ok());
        let unknown = || {
            let fact = format!("there is no output `{id}` in this session (any more)");
            ToolError::new(
                ErrorCode::NotFound,
                fact,
                "Use the id as the result of the command gave it, or run it again.",
            )
        };
        let path = self.dir.join(format!("o{}", number.ok_or_else(unknown)?));
        let read = || -> io::Result<Piece> {
            let mut file = File::open(&path)?;
            let total = file.metadata()?.len();
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            file.take(most as u64).read_to_end(&mut bytes)?;
            Ok(Piece { start, bytes, total })
        };
        let piece = read().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unknown(),
            _ => ToolError::new(ErrorCode::IoError, format!("output `{id}`: {error}"), "Run the command again."),
        })?;
        if piece.bytes.is_empty() && start > 0 {
            let fact = format!("output `{id}` has {} bytes, so nothing begins at {start}", piece.total);
            return Err(ToolError::new(ErrorCode::InvalidInput, fact, "Send a smaller `startByte`."));
        }
        Ok(piece)
    }

    /// A new file under the next id, after the oldest were let go of. Blocks.
    fn create(&self) -> io::Result<(String, File)> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let mut numbers: Vec<u32> = fs::read_dir(&self.dir)?
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix('o')?.parse().ok())
            .collect();
        numbers.sort_unstable();
        for old in numbers.iter().take((numbers.len() + 1).saturating_sub(MOST_OUTPUTS)) {
            fs::remove_file(self.dir.join(format!("o{old}")))?;
        }
        let mut number = numbers.last().copied().unwrap_or(0);
        loop {
            number += 1;
            let id = format!("o{number}");
            // Two commands may end their short beginnings at once.
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.dir.join(&id)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok((id, opened?)),
            }
        }
    }
}

/// An output that comes in: in memory while it is short, then in a file.
#[derive(Debug)]
pub(crate) struct Spill {
    outputs: Arc<Outputs>,
    short: Vec<u8>,
    file: Option<(String, tokio::fs::File)>,
    written: u64,
    /// The disk did not take it: what the capture has is all there is.
    failed: bool,
}

impl Spill {
    pub(crate) fn new(outputs: Arc<Outputs>) -> Self {
        Self { outputs, short: Vec::new(), file: None, written: 0, failed: false }
    }

    /// Takes more output. What the disk does not take is not worth a command's life.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        if self.failed {
            return;
        }
        if self.file.is_none() && self.short.len() + bytes.len() <= SHORT_BYTES {
            return self.short.extend_from_slice(bytes);
        }
        if let Err(error) = self.write(bytes).await {
            tracing::warn!(%error, "a command's output is not kept whole");
            self.failed = true;
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let outputs = Arc::clone(&self.outputs);
            let (id, file) = tokio::task::spawn_blocking(move || outputs.create()).await??;
            self.file = Some((id, tokio::fs::File::from_std(file)));
        }
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        for part in [&std::mem::take(&mut self.short)[..], bytes] {
            let room = usize::try_from(MOST_BYTES - self.written).unwrap_or(usize::MAX);
            let part = part.get(..part.len().min(room)).unwrap_or_default();
            file.write_all(part).await?;
            self.written += part.len() as u64;
        }
        Ok(())
    }

    /// What was kept, if the output was long.
    pub(crate) async fn finish(self) -> Option<Kept> {
        let (id, mut file) = self.file.filter(|_| !self.failed)?;
        match file.flush().await {
            Ok(()) => Some(Kept { id, bytes: self.written }),
            Err(error) => {
                tracing::warn!(%error, "a command's output is not kept whole");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn short_output_leaves_no_file_and_long_output_is_all_there() {
        let dir = tempfile::tempdir().unwrap();
        let outputs = Arc::new(Outputs::new(dir.path().join("out")));
        let mut short = Spill::new(Arc::clone(&outputs));
        short.push(&vec![b'x'; SHORT_BYTES]).await;
        assert_eq!(short.finish().await, None);
        assert!(!dir.path().join("out").exists());

        let mut long = Spill::new(Arc::clone(&outputs));
        let all: Vec<u8> = (0..30_000_u32).flat_map(u32::to_le_bytes).collect();
        for part in all.chunks(777) {
            long.push(part).await;
        }
        let kept = long.finish().await.unwrap();
        assert_eq!(kept, Kept { id: "o1".into(), bytes: all.len() as u64 });
        let piece = outputs.read("o1", 1000, 500).unwrap();
        assert_eq!((piece.bytes.as_slice(), piece.total), (&all[1000..1500], all.len() as u64));
        assert_eq!(outputs.read("o1", u64::MAX, 1).unwrap_err().code, ErrorCode::IoError);
        assert_eq!(outputs.read("o1", 1 << 30, 1).unwrap_err().code, ErrorCode::InvalidInput);
        for unknown in ["o2", "../o1", "o01x", ""] {
            assert_eq!(outputs.read(unknown, 0, 1).unwrap_err().code, ErrorCode::NotFound, "{unknown}");
        }
    }

    #[tokio::test]
    async fn only_the_newest_are_kept_and_only_their_owner_can_read_them() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let outputs = Arc::new(Outputs::new(dir.path().join("out")));
        for _ in 0..MOST_OUTPUTS + 2 {
            let mut spill = Spill::new(Arc::clone(&outputs));
            spill.push(&vec![b'x'; SHORT_BYTES + 1]).await;
            spill.finish().await.unwrap();
        }
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(fs::read_dir(dir.path().join("out")).unwrap().count(), MOST_OUTPUTS);
        assert_eq!((mode(dir.path().join("out")), mode(dir.path().join("out/o52"))), (0o700, 0o600));
        assert_eq!(outputs.read("o2", 0, 1).unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(outputs.read("o3", 0, 1).unwrap().bytes, b"x");
    }
}
