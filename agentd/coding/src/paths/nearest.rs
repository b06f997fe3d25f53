//! Names the nearest path that does exist, because a wrong path is most often a slip.
//!
//! Looks into one directory only, and never at more names than a reader would: it must stay cheap.

use std::path::Path;

use foundation::{ErrorCode, ToolError};

use super::Target;

const MAX_NAMES: usize = 5_000;

/// The error for a file that is not there.
pub(crate) fn not_found(target: &Target, shown: &str) -> ToolError {
    let near = nearest(&target.real);
    let hint = if near.is_empty() {
        "Look for it by name first, then use the path that was found.".to_owned()
    } else {
        let dir = shown.rsplit_once('/').map_or("", |(dir, _)| dir);
        let paths: Vec<_> = near
            .iter()
            // Only the last part may differ from what was written; a missing folder is named alone.
            .map(|near| {
                if near.same_directory && !dir.is_empty() { format!("{dir}/{}", near.name) } else { near.name.clone() }
            })
            .collect();
        format!("Nearest existing: {}. Use one of them, or look for it by name.", paths.join(", "))
    };
    ToolError::new(ErrorCode::NotFound, format!("{shown} does not exist"), hint)
}

struct Near {
    name: String,
    same_directory: bool,
}

fn nearest(real: &Path) -> Vec<Near> {
    let mut missing = real;
    while let Some(parent) = missing.parent() {
        if parent.is_dir() {
            let Some(name) = missing.file_name() else { break };
            let same_directory = missing == real;
            let found = similar_names(parent, &name.to_string_lossy());
            return found.into_iter().map(|name| Near { name, same_directory }).collect();
        }
        missing = parent;
    }
    Vec::new()
}

fn similar_names(dir: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let mut names: Vec<String> = entries
        .take(MAX_NAMES)
        .filter_map(Result::ok)
        .map(|entry| {
            let mark = if entry.path().is_dir() { "/" } else { "" };
            format!("{}{mark}", entry.file_name().to_string_lossy())
        })
        .collect();
    names.sort();
    let wanted = name.to_lowercase();
    let lower: Vec<_> = names.iter().map(|name| name.trim_end_matches('/').to_lowercase()).collect();
    let known: Vec<&str> = lower.iter().map(String::as_str).collect();
    let close = similar::get_close_matches(wanted.as_str(), &known, 3, 0.6);
    let mut found: Vec<String> = Vec::new();
    for close in close {
        for (name, lower) in names.iter().zip(&lower) {
            if lower == close && !found.contains(name) {
                found.push(name.clone());
            }
        }
    }
    found.truncate(3);
    found
}
