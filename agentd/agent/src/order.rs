//! Which calls of one answer must wait for which. Pure.
//!
//! A call waits for each earlier call that touches the same path, if one of the two writes; and for an earlier call of
//! the same tool, if both only touch the session itself, where the last one's word counts. Nothing ever waits for a
//! later call, so nothing waits for ever.

use std::path::{Component, Path, PathBuf};

use foundation::{Access, ToolClass};

/// What the order of a call depends on.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Touch<'a> {
    pub(crate) tool: &'a str,
    pub(crate) class: ToolClass,
    pub(crate) access: Access,
}

/// For each call the earlier ones that it waits for. A call that will not run touches nothing.
pub(crate) fn waits_for(calls: &[Option<Touch<'_>>]) -> Vec<Vec<usize>> {
    let earlier = |later: usize| {
        let touch = calls[later].as_ref();
        (0..later).filter(move |earlier| {
            touch.zip(calls[*earlier].as_ref()).is_some_and(|(later, earlier)| conflict(earlier, later))
        })
    };
    (0..calls.len()).map(|later| earlier(later).collect()).collect()
}

fn conflict(earlier: &Touch<'_>, later: &Touch<'_>) -> bool {
    match (&earlier.access, &later.access) {
        (Access::Write(a), Access::Write(b) | Access::Read(b)) | (Access::Read(a), Access::Write(b)) => {
            a.iter().any(|a| b.iter().any(|b| overlap(a, b)))
        }
        // A sub-agent also touches nothing by itself, and several are meant to run at once.
        (Access::Nothing, Access::Nothing) => earlier.tool == later.tool && later.class != ToolClass::Effect,
        (Access::Read(_), Access::Read(_))
        | (Access::Nothing | Access::Run { .. } | Access::Fetch { .. }, _)
        | (_, Access::Nothing | Access::Run { .. } | Access::Fetch { .. }) => false,
    }
}

/// Whether one is the other, or holds it.
fn overlap(a: &Path, b: &Path) -> bool {
    let (a, b) = (plain(a), plain(b));
    a.starts_with(&b) || b.starts_with(&a)
}

/// Without `.` and `..`. Links are not followed: a path written under two names is the tools' own check to make.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(calls: &[Option<Touch<'_>>], expected: &[&[usize]]) {
        assert_eq!(waits_for(calls), expected);
    }

    fn touch(class: ToolClass, access: Access) -> Option<Touch<'static>> {
        Some(Touch { tool: "t", class, access })
    }

    fn write(path: &str) -> Option<Touch<'static>> {
        touch(ToolClass::File, Access::Write(vec![path.into()]))
    }

    fn read(path: &str) -> Option<Touch<'static>> {
        touch(ToolClass::Read, Access::Read(vec![path.into()]))
    }

    fn run() -> Option<Touch<'static>> {
        touch(ToolClass::Effect, Access::Run { command: "ls".into(), cwd: "/a".into() })
    }

    fn nothing(tool: &'static str, class: ToolClass) -> Option<Touch<'static>> {
        Some(Touch { tool, class, access: Access::Nothing })
    }

    #[test]
    fn calls_of_one_path_keep_their_order_when_one_writes() {
        check(&[write("/a"), write("/a"), write("/b"), write("/a")], &[&[], &[0], &[], &[0, 1]]);
        check(&[write("/a"), read("/a"), read("/b")], &[&[], &[0], &[]]);
        check(&[read("/a"), write("/a"), read("/a")], &[&[], &[0], &[1]]);
        check(&[read("/a"), read("/a")], &[&[], &[]]);
    }

    #[test]
    fn a_folder_holds_its_files_and_dots_do_not_hide_a_path() {
        check(&[write("/w/a/b"), read("/w/a"), write("/w/ab")], &[&[], &[0], &[]]);
        check(&[write("/w/x/../a"), write("/w/./a")], &[&[], &[0]]);
    }

    #[test]
    fn commands_and_calls_that_do_not_run_wait_for_nothing() {
        check(&[run(), run(), None, write("/a"), None, run()], &[&[], &[], &[], &[], &[], &[]]);
    }

    #[test]
    fn calls_on_the_session_keep_their_order_within_one_tool() {
        let (read, effect) = (ToolClass::Read, ToolClass::Effect);
        check(&[nothing("todo", read), nothing("ask", read), nothing("todo", read)], &[&[], &[], &[0]]);
        check(&[nothing("task", effect), nothing("task", effect)], &[&[], &[]]);
    }
}
