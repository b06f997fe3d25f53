//! Whether this program and the daemon understand each other, and if they do not, which of the two is the old one.
//!
//! Only looks and says. Nothing is ended for somebody's being old: turns may be running.

use std::cmp::Ordering;

use protocol::PROTOCOL_VERSION;
use protocol::error::ErrorKind;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::exit::Failure;
use crate::untrusted::Untrusted;

/// Version of this program, to be told to the daemon and compared with its own.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is looked for in an answer of which nothing else is sure.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Hello {
    protocol: Option<String>,
}

/// Checks that an answer to `initialize` is of our major version, before more of it is read.
///
/// # Errors
/// `Version`, which says who is old.
pub(super) fn check(answer: &RawValue, pid: Option<i32>) -> Result<(), Failure> {
    let hello: Hello = serde_json::from_str(answer.get()).unwrap_or_default();
    let age = hello.protocol.as_deref().map_or(Ordering::Less, compare_protocol);
    match (age, &hello.protocol) {
        (Ordering::Equal, _) => Ok(()),
        (age, Some(theirs)) => Err(differ(age, &format!("speaks protocol {}", shown(theirs)), pid)),
        (age, None) => Err(differ(age, "does not say which protocol it speaks", pid)),
    }
}

/// A refused `initialize`, in words that say who is old where that was the reason.
pub(super) fn refused(failure: Failure, pid: Option<i32>) -> Failure {
    let Failure::Rpc { code, data, .. } = &failure else { return failure };
    let is = |kind: ErrorKind| data.as_ref().map_or(*code == kind.code(), |data| data.kind == kind.as_str());
    if is(ErrorKind::MethodNotFound) {
        return differ(Ordering::Less, "knows no `initialize`", pid);
    }
    let supported = data.as_ref().and_then(|data| data.more.get("supported")?.as_str());
    match supported.filter(|_| is(ErrorKind::UnsupportedVersion)) {
        Some(theirs) => differ(compare_protocol(theirs), &format!("speaks protocol {}", shown(theirs)), pid),
        None => failure,
    }
}

/// For two that understand each other and are not of the same version.
pub(super) fn warning(theirs: &str) -> Option<String> {
    let hint = match compare(theirs, VERSION) {
        _ if theirs == VERSION => return None,
        Ordering::Less => {
            "the daemon is the older one: `agentctl daemon stop` ends it, the next command starts the new one"
        }
        Ordering::Greater => "agentctl is the older one: update it",
        Ordering::Equal => "`agentctl daemon stop` ends the daemon, the next command starts the one beside agentctl",
    };
    Some(format!("warning: agentctl {VERSION} talks to agentd {} (hint: {hint})", shown(theirs)))
}

fn differ(age: Ordering, what: &str, pid: Option<i32>) -> Failure {
    let who = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
    let (which, hint) = match age {
        Ordering::Greater => {
            ("agentctl is the older one", "update agentctl; the daemon and its sessions stay as they are".into())
        }
        Ordering::Less | Ordering::Equal => {
            let end = pid.map_or_else(|| "end it".to_owned(), |pid| format!("`kill {pid}` ends it"));
            let then = "which interrupts its turns and keeps its sessions; the next command starts the new one";
            ("the daemon is the older one", format!("{end}, {then}"))
        }
    };
    let message = format!("agentd{who} {what}, this agentctl {VERSION} speaks {PROTOCOL_VERSION}: {which}");
    Failure::Version { message, hint }
}

/// Theirs against ours. A minor version only adds, so the major one decides; what cannot be read is of an older age.
fn compare_protocol(theirs: &str) -> Ordering {
    let major = |version: &str| numbers(version).first().copied();
    major(theirs).cmp(&major(PROTOCOL_VERSION))
}

fn compare(left: &str, right: &str) -> Ordering {
    numbers(left).cmp(&numbers(right))
}

/// The numbers at the beginning of a version: `1.2.3-rc.1` is 1, 2, 3.
fn numbers(version: &str) -> Vec<u32> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map_while(|part| part.parse().ok()).collect()
}

fn shown(version: &str) -> String {
    Untrusted::new(version).one_line(40)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_hello(answer: &serde_json::Value, told: Option<&str>) {
        let raw = serde_json::value::to_raw_value(answer).unwrap();
        let said = check(&raw, Some(7)).err().map(|failure| (failure.sentence(), failure.exit().code()));
        match (said, told) {
            (None, None) => {}
            (Some((said, 9)), Some(told)) => assert!(said.contains(told) && said.contains("(pid 7)"), "{said}"),
            (said, told) => panic!("{answer}: {said:?} instead of {told:?}"),
        }
    }

    #[test]
    fn an_answer_says_which_side_is_old() {
        check_hello(&json!({"protocol": "1.0"}), None);
        check_hello(&json!({"protocol": "1.7", "more": 1}), None);
        check_hello(&json!({"protocol": "0.9"}), Some("speaks protocol 0.9, "));
        check_hello(&json!({"protocol": "0.9"}), Some("the daemon is the older one (hint: `kill 7`"));
        check_hello(&json!({"protocol": "2.0"}), Some("agentctl is the older one (hint: update agentctl"));
        check_hello(&json!({"protocol": 3}), Some("the daemon is the older one"));
        check_hello(&json!({"protocol": "\u{1b}[2J"}), Some("the daemon is the older one"));
        check_hello(&json!({"daemon": {"version": "0.0.1"}}), Some("does not say which protocol it speaks"));
        check_hello(&json!("hello"), Some("does not say which protocol it speaks"));
    }

    #[test]
    fn a_warning_says_it_too() {
        assert_eq!(warning(VERSION), None);
        for (theirs, told) in [
            ("0.0.1", "the daemon is the older one"),
            ("0.0.99-rc.1", "the daemon is the older one"),
            ("99.0.0", "agentctl is the older one"),
            ("", "the daemon is the older one"),
        ] {
            assert!(warning(theirs).unwrap().contains(told), "{theirs}");
        }
        assert!(warning(&format!("{VERSION}+local")).is_some());
    }
}
