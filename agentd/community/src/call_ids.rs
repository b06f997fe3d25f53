//! One id for each tool call, whatever the provider sent: none, an empty one, or one it has used before.
//!
//! The provider's own id is kept where that is safe, because some servers look at its form when it comes back.

use std::collections::HashSet;

use foundation::{CallId, Message};

/// The ids already taken in a transcript and in the answer that grows.
#[derive(Default, Debug)]
pub(crate) struct CallIds {
    used: HashSet<CallId>,
}

impl CallIds {
    pub(crate) fn of(messages: &[Message]) -> Self {
        Self { used: messages.iter().flat_map(Message::tool_uses).map(|(id, ..)| id.clone()).collect() }
    }

    /// The provider's id if it is new and made of characters that every provider accepts, else a fresh one.
    pub(crate) fn take(&mut self, wanted: Option<&str>) -> CallId {
        let id = match wanted {
            Some(id) if is_portable(id) && !self.used.contains(&CallId(id.into())) => CallId(id.into()),
            _ => CallId::new(),
        };
        self.used.insert(id.clone());
        id
    }
}

fn is_portable(id: &str) -> bool {
    (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use foundation::{Part, Role};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(wanted: Option<&str>, kept: bool) {
        let call = Part::ToolUse { id: CallId("old".into()), name: "read".into(), input: json!({}), raw_input: None };
        let mut message = Message::user(vec![call]);
        message.role = Role::Assistant;
        let mut ids = CallIds::of(&[message]);
        let id = ids.take(wanted);
        assert_eq!(Some(id.0.as_str()) == wanted, kept, "{wanted:?} became {id}");
        assert!(is_portable(&id.0), "{id}");
        assert_ne!(ids.take(wanted), id, "an id is given once");
    }

    #[test]
    fn a_safe_new_id_is_kept_and_any_other_replaced() {
        check(Some("toolu_01-A"), true);
        check(Some("old"), false);
        check(Some(""), false);
        check(Some("bash:0"), false);
        check(Some("ид"), false);
        check(Some(&"a".repeat(65)), false);
        check(None, false);
    }
}
