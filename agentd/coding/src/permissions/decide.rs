//! Allow, ask or refuse: a pure function of the mode, the rules and what the call would touch.
//!
//! Deny is stronger than ask, ask than allow, whichever layer a rule came from. Until commands run in a sandbox there
//! is none that may run unasked in `auto`, and none that `plan` may run at all.

use protocol::{ApprovalOption, Ground, Mode, Scope};

use super::facts::{Call, Touch};
use super::rule::{Rule, Rules};
use super::shell::{is_runner, plain_words};

/// The answer for one call.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    Allow {
        why: Why,
    },
    Ask {
        /// Beside those that the tool itself knows.
        risks: Vec<String>,
        options: Vec<ApprovalOption>,
    },
    Refuse {
        /// What stands in the way.
        text: String,
        /// The model's next step.
        hint: &'static str,
        why: Why,
    },
}

/// What allowed or refused a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    Mode(Mode),
    /// The rule, as it is written.
    Rule(String),
}

impl From<Why> for Ground {
    fn from(why: Why) -> Self {
        match why {
            Why::Mode(mode) => Self::Policy { policy: format!("mode {}", mode.name()) },
            Why::Rule(rule) => Self::Rule { rule },
        }
    }
}

const OTHER_WAY: &str = "Do not try to get round this. Find another way, or ask the person.";
const PLAN_WAY: &str = "Go on reading, then tell the person your plan; they can change the mode.";

/// What a mode says of a call on which no rule speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Run,
    Ask,
    Refused,
}

/// Decides on `call`. `grants` are allow rules that people added while the session was running.
#[must_use]
pub fn decide(mode: Mode, rules: &Rules, grants: &[Rule], call: &Call<'_>) -> Decision {
    if let Some(rule) = rules.deny.iter().find(|rule| rule.concerns(call)) {
        let why = Why::Rule(rule.to_string());
        return Decision::Refuse { text: format!("the rule `{rule}` forbids this call"), hint: OTHER_WAY, why };
    }
    let standing = standing(mode, call);
    if standing == Standing::Refused {
        let text = "mode `plan` allows nothing but reading in the workspace".into();
        return Decision::Refuse { text, hint: PLAN_WAY, why: Why::Mode(mode) };
    }
    if let Some(rule) = rules.ask.iter().find(|rule| rule.concerns(call)) {
        return ask(call, vec![format!("the rule `{rule}` says that this asks every time")], Remember::No);
    }
    if rules.fail_closed && !is_harmless(call) {
        return ask(call, vec!["the settings could not be read, so everything asks".into()], Remember::No);
    }
    if call.protected {
        let risk = "changes what governs the agent or git: settings, hooks, instructions or state";
        return ask(call, vec![risk.into()], Remember::No);
    }
    if standing == Standing::Run {
        return Decision::Allow { why: Why::Mode(mode) };
    }
    let allowing = grants.iter().chain(&rules.allow).find(|rule| rule.allows(call));
    match allowing {
        // A rule speaks of commands in this workspace; the same words elsewhere are another matter.
        Some(rule) if !runs_outside(call) => Decision::Allow { why: Why::Rule(rule.to_string()) },
        _ => ask(call, outside_risks(call), Remember::Offered),
    }
}

/// The table of modes, cell by cell.
fn standing(mode: Mode, call: &Call<'_>) -> Standing {
    use Standing::{Ask, Refused, Run};
    match &call.touch {
        Touch::Nothing => Run,
        Touch::Read(targets) if targets.iter().all(|target| target.inside) => Run,
        Touch::Write(targets) if targets.iter().all(|target| target.inside) => match mode {
            Mode::Plan => Refused,
            Mode::Ask => Ask,
            Mode::AcceptEdits | Mode::Auto | Mode::Bypass => Run,
        },
        Touch::Read(_) | Touch::Write(_) | Touch::Run { .. } | Touch::Fetch { .. } => match mode {
            Mode::Plan => Refused,
            Mode::Ask | Mode::AcceptEdits | Mode::Auto => Ask,
            Mode::Bypass => Run,
        },
    }
}

fn is_harmless(call: &Call<'_>) -> bool {
    match &call.touch {
        Touch::Nothing => true,
        Touch::Read(targets) => targets.iter().all(|target| target.inside),
        Touch::Write(_) | Touch::Run { .. } | Touch::Fetch { .. } => false,
    }
}

fn runs_outside(call: &Call<'_>) -> bool {
    matches!(call.touch, Touch::Run { inside: false, .. })
}

fn outside_risks(call: &Call<'_>) -> Vec<String> {
    match &call.touch {
        Touch::Nothing | Touch::Fetch { .. } => Vec::new(),
        Touch::Run { inside: true, .. } => Vec::new(),
        Touch::Run { cwd, .. } => vec![format!("runs in {}, outside the workspace", cwd.display())],
        Touch::Read(targets) | Touch::Write(targets) => targets
            .iter()
            .filter(|target| !target.inside)
            .map(|target| match target.is_linked() {
                true => {
                    format!("{} leads to {}, outside the workspace", target.absolute.display(), target.real.display())
                }
                false => format!("{} is outside the workspace", target.real.display()),
            })
            .collect(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Remember {
    No,
    Offered,
}

fn ask(call: &Call<'_>, risks: Vec<String>, remember: Remember) -> Decision {
    let option = |decision, scope, rule| ApprovalOption { decision, scope, rule };
    let mut options = vec![option(protocol::Decision::Allow, Scope::Once, None)];
    if remember == Remember::Offered
        && let Some(rule) = rule_for(call)
    {
        options.push(option(protocol::Decision::Allow, Scope::Session, Some(rule)));
    }
    options.push(option(protocol::Decision::Deny, Scope::Once, None));
    Decision::Ask { risks, options }
}

/// The narrowest rule that covers this call again, if there is one worth remembering.
fn rule_for(call: &Call<'_>) -> Option<String> {
    let rule = match &call.touch {
        Touch::Run { command, inside: true, .. } => {
            let words = plain_words(command)?;
            let program = words.first()?;
            // A script can be another one tomorrow, and a runner runs anything: neither is the thing that was shown.
            if is_runner(program) || program.contains('/') {
                return None;
            }
            format!("{}({})", call.tool, command.trim())
        }
        Touch::Read(targets) => format!("read({})", path_pattern(targets, call)?),
        Touch::Write(targets) => format!("edit({})", path_pattern(targets, call)?),
        Touch::Fetch { host: Some(host) } => format!("{}(domain:{host})", call.tool),
        Touch::Nothing | Touch::Run { inside: false, .. } | Touch::Fetch { host: None } => return None,
    };
    // What would be shown must be what would be remembered, and must cover what was asked.
    Rule::parse(&rule, None).is_ok_and(|parsed| parsed.allows(call)).then_some(rule)
}

fn path_pattern(targets: &[crate::paths::Target], call: &Call<'_>) -> Option<String> {
    let [target] = targets else { return None };
    let path = target.real.strip_prefix(call.root).unwrap_or(&target.real);
    path.to_str().filter(|path| !path.is_empty()).map(globset::escape)
}

#[cfg(test)]
mod tests;
