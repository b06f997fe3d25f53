//! Requests for consent: how one is shown, and what a typed line means as an answer. Pure.
//!
//! Only a clear yes is a yes. A command is shown as one contiguous text, exactly as it would run.

use protocol::approval::{Approval, ApprovalOption, ApprovalState, DecidedBy, Decision, Scope};

use crate::render::{Paint, diff};
use crate::untrusted::Untrusted;

/// What a line means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    Allow {
        scope: Scope,
        rule: Option<String>,
    },
    Deny {
        message: Option<String>,
    },
    /// No answer; the text says what would be one.
    Unclear(String),
}

/// The scopes beyond "once", with the key that chooses each.
const KEYS: [(&str, Scope, &str); 3] = [
    ("s", Scope::Session, "yes, for the rest of this session"),
    ("p", Scope::Project, "yes, always in this project"),
    ("u", Scope::User, "yes, always"),
];

/// Understands a line that was typed as an answer. Nothing typed means no.
pub(crate) fn reply(line: &str, approval: &Approval) -> Reply {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.to_lowercase();
    match word.as_str() {
        "" => Reply::Deny { message: None },
        "n" | "no" => Reply::Deny { message: (!rest.is_empty()).then(|| rest.trim().to_owned()) },
        _ if !rest.is_empty() => Reply::Unclear(choices(approval)),
        "y" | "yes" => Reply::Allow { scope: Scope::Once, rule: None },
        key => {
            let scope = KEYS.iter().find(|(name, ..)| *name == key).map(|(_, scope, _)| *scope);
            match scope.and_then(|scope| offered(approval, scope)) {
                Some(option) => Reply::Allow { scope: option.scope, rule: option.rule.clone() },
                None => Reply::Unclear(choices(approval)),
            }
        }
    }
}

/// The request whole, with its title and its risks. Ends in a newline.
pub(crate) fn request(approval: &Approval, paint: Paint) -> String {
    let title = Untrusted::new(&approval.title).one_line(200);
    let tool = Untrusted::new(&approval.tool).one_line(60);
    let mut text = format!("{}\n", paint.bold(&format!("? {tool} wants your yes [{}]  {title}", approval.short_id)));
    text.push_str(&diff(&approval.detail, paint, None));
    for risk in &approval.risks {
        text.push_str(&format!("{}\n", paint.yellow(&format!("! {}", Untrusted::new(risk).one_line(300)))));
    }
    text
}

/// The request, and what can be typed as an answer. Ends in a newline.
pub(crate) fn show(approval: &Approval, paint: Paint) -> String {
    let mut text = request(approval, paint);
    text.push_str("  y       yes, this once\n");
    for (key, scope, words) in KEYS {
        if let Some(option) = offered(approval, scope) {
            let rule = option.rule.as_deref().map(|rule| format!(": {}", Untrusted::new(rule).one_line(300)));
            text.push_str(&format!("  {key}       {words}{}\n", rule.unwrap_or_default()));
        }
    }
    text.push_str("  n       no (also just Enter)\n  n TEXT  no, and tell the model why\n");
    text
}

/// Who ended the wait, in one line without a newline.
pub(crate) fn settled(approval: &Approval) -> String {
    format!("[{}] {}", approval.short_id, outcome(approval))
}

/// The same for somebody who comes too late.
pub(crate) fn settled_before(approval: &Approval) -> String {
    format!("[{}] already {}", approval.short_id, outcome(approval))
}

pub(crate) fn outcome(approval: &Approval) -> String {
    let what = match approval.state {
        ApprovalState::Pending => "waits",
        ApprovalState::Allowed => "allowed",
        ApprovalState::Denied => "denied",
        ApprovalState::Expired => "expired",
        ApprovalState::Cancelled => "cancelled",
        ApprovalState::Superseded => "replaced by another",
    };
    let Some(resolution) = &approval.resolution else {
        return what.to_owned();
    };
    let far = match resolution.scope {
        Scope::Once => "",
        Scope::Session => " for this session",
        Scope::Project => " for this project",
        Scope::User => " for always",
    };
    let words = resolution.message.as_deref().map(|text| format!(": {}", Untrusted::new(text).one_line(200)));
    let by = match &resolution.by {
        DecidedBy::Policy { policy } if policy.contains(' ') => format!(": {}", decided_by(&resolution.by)),
        by => format!(" by {}", decided_by(by)),
    };
    format!("{what}{far}{by}{}", words.unwrap_or_default())
}

/// A person's client with its process, or what decided instead.
pub(crate) fn decided_by(by: &DecidedBy) -> String {
    match by {
        // So that an answer that was typed here is not taken for somebody else's.
        DecidedBy::Client { pid, .. } if u32::try_from(*pid) == Ok(std::process::id()) => "you".to_owned(),
        DecidedBy::Client { client, pid, tty, .. } => {
            let place = tty.as_deref().map(|tty| format!(" on {}", Untrusted::new(tty).one_line(40)));
            format!("{} (pid {pid}{})", Untrusted::new(client).one_line(40), place.unwrap_or_default())
        }
        DecidedBy::Rule { rule } => format!("the rule {}", Untrusted::new(rule).one_line(200)),
        // One word names a policy; more words say what happened.
        DecidedBy::Policy { policy } if policy.contains(' ') => Untrusted::new(policy).one_line(200),
        DecidedBy::Policy { policy } => format!("the policy {}", Untrusted::new(policy).one_line(80)),
    }
}

fn offered(approval: &Approval, scope: Scope) -> Option<&ApprovalOption> {
    approval.options.iter().find(|option| option.decision == Decision::Allow && option.scope == scope)
}

fn choices(approval: &Approval) -> String {
    let keys: String = KEYS
        .iter()
        .filter(|(_, scope, _)| offered(approval, *scope).is_some())
        .map(|(key, ..)| format!("{key}, "))
        .collect();
    format!("no answer: type y, {keys}n, or n and a reason; Enter alone means no")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::fake;

    #[track_caller]
    fn check(line: &str, expected: &Reply) {
        assert_eq!(&reply(line, &fake::approval("k3")), expected, "{line:?}");
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let no = Reply::Deny { message: None };
        let unclear = Reply::Unclear("no answer: type y, s, n, or n and a reason; Enter alone means no".into());
        check("", &no);
        check("  ", &no);
        check("n", &no);
        check("NO", &no);
        check("n use the test database", &Reply::Deny { message: Some("use the test database".into()) });
        check("y", &Reply::Allow { scope: Scope::Once, rule: None });
        check(" Yes ", &Reply::Allow { scope: Scope::Once, rule: None });
        check("s", &Reply::Allow { scope: Scope::Session, rule: Some("bash(rm *)".into()) });
        check("p", &unclear);
        check("yes please", &unclear);
        check("yep", &unclear);
        check("why?", &unclear);
    }

    #[test]
    fn the_whole_command_stands_there_uncut_with_its_hidden_characters_spelt_out() {
        let mut approval = fake::approval("k3");
        approval.detail = "rm -rf build \u{202e}\u{1b}[2K && echo done\n(in /home/me/project)".into();
        assert_snapshot!(show(&approval, Paint::Plain), @r"
        ? bash wants your yes [k3]  clean the build
        rm -rf build <U+202E><U+001B>[2K && echo done
        (in /home/me/project)
        ! deletes files
          y       yes, this once
          s       yes, for the rest of this session: bash(rm *)
          n       no (also just Enter)
          n TEXT  no, and tell the model why
        ");
    }

    #[test]
    fn who_decided_is_said_in_one_line() {
        let mut approval = fake::approval("k3");
        approval.state = ApprovalState::Allowed;
        approval.resolution = Some(protocol::approval::Resolution {
            decision: Decision::Allow,
            scope: Scope::Session,
            rule: None,
            message: None,
            by: DecidedBy::Client { client: "agentctl".into(), pid: 42, uid: 1, tty: Some("/dev/pts/3".into()) },
            at: "2026-12-01T03:00:00Z".parse().unwrap(),
        });
        assert_eq!(settled(&approval), "[k3] allowed for this session by agentctl (pid 42 on /dev/pts/3)");
        let Some(resolution) = &mut approval.resolution else { panic!() };
        let DecidedBy::Client { pid, .. } = &mut resolution.by else { panic!() };
        *pid = std::process::id().cast_signed();
        assert_eq!(settled(&approval), "[k3] allowed for this session by you");
    }
}
