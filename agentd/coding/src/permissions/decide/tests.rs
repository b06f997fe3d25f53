//! The table of modes, cell by cell, and the order of the rules.

use std::path::Path;

use super::*;
use crate::paths::Target;

const ROOT: &str = "/w";
const MODES: [Mode; 5] = [Mode::Plan, Mode::Ask, Mode::AcceptEdits, Mode::Auto, Mode::Bypass];

fn targets(path: &str) -> Vec<Target> {
    vec![Target { absolute: path.into(), real: path.into(), inside: Path::new(path).starts_with(ROOT) }]
}

fn call(text: &str) -> Call<'static> {
    let (kind, what) = text.split_once(' ').unwrap_or((text, ""));
    let run = |cwd: &str| Touch::Run { command: what.into(), cwd: cwd.into(), inside: cwd == ROOT };
    let (tool, touch) = match kind {
        "nothing" => ("todo_write", Touch::Nothing),
        "read" => ("read", Touch::Read(targets(what))),
        "write" => ("write", Touch::Write(targets(what))),
        "run" => ("bash", run(ROOT)),
        "run-outside" => ("bash", run("/etc")),
        "fetch" => ("web_fetch", Touch::Fetch { host: Some(what.into()) }),
        other => panic!("{other}"),
    };
    Call { tool, touch, root: Path::new(ROOT), protected: what.contains(".git/") }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse(text, None).unwrap()).collect()
}

fn letter(decision: &Decision) -> char {
    match decision {
        Decision::Allow { .. } => 'r',
        Decision::Ask { .. } => 'a',
        Decision::Refuse { .. } => 'x',
    }
}

/// One letter for each mode, in the order of `MODES`: runs, asks, refused (x).
#[track_caller]
fn check(rules: &Rules, grants: &[&str], text: &str, expected: &str) {
    let grants = self::rules(grants);
    let found: String = MODES.iter().map(|mode| letter(&decide(*mode, rules, &grants, &call(text)))).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn the_table_of_modes() {
    let none = Rules::default();
    for (text, expected) in [
        //                     plan, ask, accept-edits, auto, bypass
        ("nothing", "rrrrr"),
        ("read /w/a", "rrrrr"),
        ("read /w", "rrrrr"),
        ("read /etc/a", "xaaar"),
        ("read /w-evil/a", "xaaar"),
        ("write /w/a", "xarrr"),
        ("write /w/.git/config", "xaaaa"),
        ("write /etc/a", "xaaar"),
        ("run ls", "xaaar"),
        ("run-outside ls", "xaaar"),
        ("fetch docs.rs", "xaaar"),
    ] {
        check(&none, &[], text, expected);
    }
}

#[test]
fn an_allow_rule_lifts_a_question_but_never_a_refusal() {
    let allow = Rules { allow: rules(&["bash(ls *)", "edit(src/**)", "read(/etc/**)"]), ..Rules::default() };
    check(&allow, &[], "run ls -l", "xrrrr");
    check(&allow, &[], "run ls; rm x", "xaaar");
    check(&allow, &[], "run-outside ls", "xaaar");
    check(&allow, &[], "write /w/src/a", "xrrrr");
    check(&allow, &[], "write /w/a", "xarrr");
    check(&allow, &[], "write /w/src/.git/hooks", "xaaaa");
    check(&allow, &[], "read /etc/a", "xrrrr");
    check(&Rules::default(), &["bash(ls)"], "run ls", "xrrrr");
}

#[test]
fn deny_is_stronger_than_ask_and_ask_than_allow() {
    let all = Rules {
        allow: rules(&["bash", "read"]),
        ask: rules(&["bash(git *)", "bash(rm *)", "read(/w/a)"]),
        deny: rules(&["bash(rm *)", "read(secret/**)"]),
        fail_closed: false,
    };
    check(&all, &["bash(rm x)", "bash(git log)"], "run rm x", "xxxxx");
    check(&all, &["bash(rm x)", "bash(git log)"], "run git log", "xaaaa");
    check(&all, &[], "run ls && sudo rm x", "xxxxx");
    check(&all, &[], "run ls && make", "xrrrr");
    check(&all, &[], "read /w/a", "aaaaa");
    check(&all, &[], "read /w/secret/a", "xxxxx");
}

#[test]
fn settings_that_cannot_be_read_make_everything_ask() {
    let closed =
        Rules { allow: rules(&["bash", "edit"]), deny: rules(&["bash(rm *)"]), fail_closed: true, ..Rules::default() };
    check(&closed, &["bash(ls)"], "run ls", "xaaaa");
    check(&closed, &[], "run rm x", "xxxxx");
    check(&closed, &[], "write /w/a", "xaaaa");
    check(&closed, &[], "read /etc/a", "xaaaa");
    check(&closed, &[], "read /w/a", "rrrrr");
    check(&closed, &[], "nothing", "rrrrr");
}

#[track_caller]
fn check_offer(text: &str, rule: Option<&str>) {
    let Decision::Ask { options, .. } = decide(Mode::Ask, &Rules::default(), &[], &call(text)) else {
        panic!("{text} does not ask");
    };
    let offered: Vec<_> =
        options.iter().map(|option| (option.decision, option.scope, option.rule.as_deref())).collect();
    let mut expected = vec![(protocol::Decision::Allow, Scope::Once, None)];
    expected.extend(rule.map(|rule| (protocol::Decision::Allow, Scope::Session, Some(rule))));
    expected.push((protocol::Decision::Deny, Scope::Once, None));
    assert_eq!(offered, expected, "{text}");
    if let Some(rule) = rule {
        check(&Rules::default(), &[rule], text, "xrrrr");
    }
}

#[test]
fn what_is_offered_is_the_narrowest_rule_and_covers_the_call() {
    check_offer("run git log -p", Some("bash(git log -p)"));
    check_offer("run git commit -m 'a b'", Some("bash(git commit -m 'a b')"));
    check_offer("write /w/src/a", Some("edit(src/a)"));
    check_offer("write /w/a[1]*", Some("edit(a[[]1[]][*])"));
    check_offer("write /etc/a", Some("edit(/etc/a)"));
    check_offer("read /etc/a", Some("read(/etc/a)"));
    check_offer("fetch docs.rs", Some("web_fetch(domain:docs.rs)"));
}

#[test]
fn no_rule_is_offered_for_what_is_not_plainly_one_thing() {
    for text in [
        "run ls; rm x",
        "run ls > x",
        "run sh -c whoami",
        "run env X=1 ls",
        "run flock f true",
        "run python3 -c 1",
        "run ./build.sh",
        "run sudo ls",
        "run-outside ls",
        "write /w/.git/config",
        "run",
    ] {
        check_offer(text, None);
    }
}

#[test]
fn a_question_says_what_to_look_at() {
    let risks = |text: &str| match decide(Mode::Ask, &Rules::default(), &[], &call(text)) {
        Decision::Ask { risks, .. } => risks.join("|"),
        other => panic!("{other:?}"),
    };
    assert_eq!(risks("run ls"), "");
    assert_eq!(risks("run-outside ls"), "runs in /etc, outside the workspace");
    assert_eq!(risks("write /etc/a"), "/etc/a is outside the workspace");
    assert!(risks("write /w/.git/a").starts_with("changes what governs"));
}
