//! Whether the state directory is on a disk of this machine: locks and the write-ahead log need one.
//!
//! On a network file system SQLite's shared memory is not shared, and a lock may be nobody's or two's. What would be lost
//! there is what was acknowledged, so the daemon does not start. Looks only, and changes nothing.

use std::path::{Path, PathBuf};

use foundation::failpoint;
use rustix::fs::FsWord;

/// The state directory is where it cannot be.
#[derive(Debug, thiserror::Error)]
#[error(
    "state directory {}: it is on a network file system ({kind}), where locks and the database's log do not hold (hint: \
     set XDG_STATE_HOME, or AGENTD_STATE_HOME, to a directory on a disk of this machine; what is there was not touched)",
    .path.display()
)]
pub struct NetworkDisk {
    pub path: PathBuf,
    /// As people call it, such as `nfs`.
    pub kind: &'static str,
}

/// What the numbers in `statfs(2)` say about locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Disk {
    Local,
    /// A program stands behind it, which may be on this machine or not.
    Unclear,
    Network(&'static str),
}

const NFS: FsWord = 0x6969;
const FUSE: FsWord = 0x6573_5546;

/// From `linux/magic.h` and the kernel's file systems; what is not here is taken for local.
const NETWORK: &[(FsWord, &str)] = &[
    (NFS, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x564c, "ncp"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
];

/// Refuses a state directory on a network file system.
///
/// # Errors
/// `NetworkDisk`. Where the kernel does not say what it is, nothing is refused.
pub(crate) fn check(state: &Path) -> Result<(), NetworkDisk> {
    match look(state).map(disk) {
        Ok(Disk::Local) => Ok(()),
        Ok(Disk::Unclear) => {
            tracing::warn!(path = %state.display(), "the state directory is on a FUSE file system: if another machine \
                is behind it, set XDG_STATE_HOME to a directory on a disk of this one");
            Ok(())
        }
        Ok(Disk::Network(kind)) => Err(NetworkDisk { path: state.to_owned(), kind }),
        Err(error) => {
            tracing::warn!(path = %state.display(), %error, "it cannot be told which file system this is");
            Ok(())
        }
    }
}

fn look(path: &Path) -> std::io::Result<FsWord> {
    if failpoint::check("state.is_nfs").is_err() {
        return Ok(NFS);
    }
    Ok(rustix::fs::statfs(path)?.f_type)
}

fn disk(kind: FsWord) -> Disk {
    let network = NETWORK.iter().find(|(number, _)| *number == kind);
    match network {
        Some((_, name)) => Disk::Network(name),
        None if kind == FUSE => Disk::Unclear,
        None => Disk::Local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_numbers_are_understood() {
        let (ext4, tmpfs, btrfs, xfs, overlay) = (0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x794c_7630);
        for local in [ext4, tmpfs, btrfs, xfs, overlay, 0] {
            assert_eq!(disk(local), Disk::Local, "{local:x}");
        }
        assert_eq!(disk(FUSE), Disk::Unclear);
        for (number, name) in [(0x6969, "nfs"), (0xff53_4d42, "cifs"), (0xfe53_4d42, "smb2"), (0x0102_1997, "9p")] {
            assert_eq!(disk(number), Disk::Network(name));
        }
    }

    #[test]
    fn the_refusal_names_the_place_the_kind_and_the_way_out() {
        let said = NetworkDisk { path: "/home/me/.local/state/agentd".into(), kind: "nfs" }.to_string();
        for words in ["/home/me/.local/state/agentd", "(nfs)", "XDG_STATE_HOME"] {
            assert!(said.contains(words), "{said}");
        }
        check(&std::env::temp_dir()).unwrap();
    }
}
