//! Who else has the database open, as the kernel shows it: to name the program that is in the way.

use std::fs;
use std::path::Path;

/// The other processes of this user that have the file open, as `sqlite3 (pid 123)`; empty where that cannot be told.
pub(super) fn of(file: &Path) -> String {
    let Ok(file) = file.canonicalize() else { return String::new() };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = processes.filter_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut open = fs::read_dir(process.path().join("fd")).ok()?.flatten();
        let holds = pid != std::process::id() && open.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == file));
        let name = || fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        holds.then(|| format!("{} (pid {pid})", name().trim()))
    });
    named.collect::<Vec<_>>().join(", ")
}
