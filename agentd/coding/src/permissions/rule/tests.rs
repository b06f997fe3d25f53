//! What each rule matches, and above all what it must not.

use super::*;
use crate::paths::Workspace;
use crate::permissions::facts::Protected;
use foundation::Access;

fn run<'a>(command: &str) -> Call<'a> {
    let touch = Touch::Run { command: command.into(), cwd: "/w".into(), inside: true };
    Call { tool: "bash", touch, root: Path::new("/w"), protected: false }
}

fn write<'a>(tool: &'a str, paths: &[&str]) -> Call<'a> {
    let target =
        |path: &&str| Target { absolute: path.into(), real: path.into(), inside: Path::new(path).starts_with("/w") };
    let touch = Touch::Write(paths.iter().map(target).collect());
    Call { tool, touch, root: Path::new("/w"), protected: false }
}

fn parse(rule: &str) -> Rule {
    Rule::parse(rule, Some(Path::new("/home/u"))).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn check_allows(rule: &str, calls: &[Call<'_>], expected: bool) {
    for call in calls {
        assert_eq!(parse(rule).allows(call), expected, "{rule} allows {call:?}");
    }
}

#[track_caller]
fn check_concerns(rule: &str, calls: &[Call<'_>], expected: bool) {
    for call in calls {
        assert_eq!(parse(rule).concerns(call), expected, "{rule} concerns {call:?}");
    }
}

#[test]
fn a_rule_prints_as_it_was_written() {
    for text in
        ["bash", "bash(git log *)", "edit(src/**)", "read(~/notes/**)", "web_fetch(domain:docs.rs)", "bash(echo ')')"]
    {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn what_is_no_rule_says_why() {
    let cases = [
        ("", "it must begin with a tool's name"),
        ("bash(ls", "the closing `)` is missing"),
        ("bash()", "the pattern is empty"),
        ("ba sh(ls)", "it must begin with a tool's name"),
        ("bash(git * push)", "is not one plain command"),
        ("bash(a && b)", "is not one plain command"),
        ("bash(git*)", "is not one plain command"),
        ("edit(src/[)", "see the glob syntax"),
    ];
    for (text, why) in cases {
        let error = Rule::parse(text, None).expect_err(text);
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
    assert!(Rule::parse("read(~/x)", None).is_err());
}

#[test]
fn a_command_rule_is_exact_unless_it_ends_in_a_star() {
    check_allows("bash(git log)", &[run("git log"), run(" git  log ")], true);
    check_allows("bash(git log)", &[run("git log -p"), run("git"), run("git logs"), run("git log; ls")], false);
    check_allows("bash(git log *)", &[run("git log"), run("git log -p"), run("git log 'a b' \"c\"")], true);
    check_allows("bash(git log *)", &[run("git push"), run("git"), run("git logs"), run("gitlog")], false);
    check_allows("bash(*)", &[run("ls"), run("make test")], true);
    check_allows("bash", &[run("ls | head > x"), run("$X")], true);
    check_allows("read(x)", &[run("ls")], false);
}

#[test]
fn an_open_rule_allows_only_one_plain_command() {
    let tricks = [
        "echo a; touch M",
        "echo a && touch M",
        "echo a || touch M",
        "echo a | tee M",
        "echo a & touch M",
        "echo a\ntouch M",
        "(echo a)",
        "{ echo a; }",
        "echo $(touch M)",
        "echo `touch M`",
        "echo \"$(touch M)\"",
        "echo a > M",
        "echo a >> M",
        "echo a >| M",
        "echo a &> M",
        "echo a 2> M",
        "echo < M",
        "echo <(touch M)",
        "echo $HOME",
        "echo ${IFS}",
        "echo *",
        "echo a?",
        "echo [a]",
        "echo {a,b}",
        "echo ~",
        "A=1 echo a",
        "PATH=./x:$PATH echo a",
        "e''cho a",
        "'echo' a",
        "\\echo a",
        "! echo a",
        "time echo a",
        "env echo a",
        "if true; then echo a; fi",
        "echo a # b",
        "echo a \\\ntouch M",
        "echo\u{a0}a",
        "echo a\u{2028}touch M",
        "echo a\u{202e}",
        "echo a\u{200b}",
        "echo a\r",
        "echo 'a",
        "echo \"a",
        "echo !!",
        "echo a\u{0}b",
        "/tmp/echo a",
        "./echo a",
    ];
    for trick in tricks {
        check_allows("bash(echo *)", &[run(trick)], false);
    }
}

#[test]
fn an_open_rule_never_allows_what_runs_its_arguments() {
    for program in ["sh", "bash", "env", "nice", "timeout", "xargs", "sudo", "python3", "node", "time", "nohup"] {
        check_allows(&format!("bash({program} *)"), &[run(&format!("{program} 5 touch M"))], false);
        check_allows("bash(*)", &[run(&format!("{program} touch M"))], false);
    }
    check_allows("bash(python3 x.py)", &[run("python3 x.py")], true);
}

#[test]
fn a_deny_rule_sees_the_command_wherever_it_stands() {
    let forms = [
        "rm x",
        "rm",
        "ls; rm x",
        "ls | rm x",
        "ls\nrm x",
        "(rm x)",
        "{ rm x; }",
        "$(rm x)",
        "echo \"$(rm x)\"",
        "A=1 rm x",
        "timeout 5 rm x",
        "nohup rm x",
        "command rm x",
        "\\rm x",
        "env A=1 rm x",
        "nice -n 5 rm x",
        "/bin/rm x",
        "sudo rm x",
        "bash -c 'rm x'",
        "r''m x",
        "if true; then rm x; fi",
        "find . -exec rm {} +",
        "x <(rm y)",
        "rm $X",
    ];
    for form in forms {
        check_concerns("bash(rm *)", &[run(form)], true);
    }
    check_concerns("bash(rm *)", &[run("ls"), run("rmdir x"), run("echo 'rm x'"), run("git commit -m 'rm x'")], false);
    check_concerns("bash(git push *)", &[run("ls && CI=1 git push -f")], true);
    check_concerns("bash(git push)", &[run("git push"), run("x; git push")], true);
    check_concerns("bash(git push)", &[run("git push -f")], false);
}

#[test]
fn a_path_rule_counts_from_the_root_and_needs_every_path() {
    check_allows("edit(src/**)", &[write("edit", &["/w/src/a/b.rs"]), write("write", &["/w/src/a"])], true);
    check_allows("edit(src/*)", &[write("edit", &["/w/src/a"])], true);
    check_allows("edit(./src/*)", &[write("edit", &["/w/src/a"])], true);
    check_allows("edit(src/*)", &[write("edit", &["/w/src/a/b"]), write("edit", &["/w/srcx"])], false);
    check_allows("edit(src/**)", &[write("edit", &["/w/src/a", "/w/b"]), write("edit", &[])], false);
    check_allows("edit(**)", &[write("edit", &["/etc/x"])], false);
    check_allows("edit(/etc/*)", &[write("edit", &["/etc/x"])], true);
    check_allows("edit(~/n/**)", &[write("edit", &["/home/u/n/a"])], true);
    check_allows("write(src/**)", &[write("edit", &["/w/src/a"])], false);
    check_allows("write(src/**)", &[write("write", &["/w/src/a"])], true);
}

#[test]
fn a_denied_path_is_denied_if_any_of_the_paths_is_it_or_in_it() {
    check_concerns("edit(src/**)", &[write("apply_patch", &["/w/a", "/w/src/b"])], true);
    check_concerns("edit(secret)", &[write("edit", &["/w/secret/a/b"])], true);
    check_concerns("edit(secret)", &[write("edit", &["/w/secrets"]), write("edit", &["/w/a/secret"])], false);
    check_concerns("edit(~/.ssh/**)", &[write("write", &["/home/u/.ssh/config"])], true);
}

#[test]
fn a_link_is_judged_by_where_it_leads_and_denied_by_both_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("w")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("w/out")).unwrap();
    let workspace = Workspace::open(&folder.path().join("w")).unwrap();
    let access = Access::Write(vec![workspace.root().join("out/f")]);
    let call = Call::new("write", access, &workspace, &Protected::default());
    check_allows("edit(out/**)", std::slice::from_ref(&call), false);
    check_concerns("edit(out/**)", std::slice::from_ref(&call), true);
    let real = format!("edit({}/f)", folder.path().canonicalize().unwrap().display());
    check_allows(&real, std::slice::from_ref(&call), true);
}

#[test]
fn a_domain_rule_covers_the_hosts_below_it() {
    let workspace = Workspace::open(Path::new("/")).unwrap();
    let fetch =
        |url: &str| Call::new("web_fetch", Access::Fetch { url: url.into() }, &workspace, &Protected::default());
    let rule = "web_fetch(domain:docs.rs)";
    check_allows(rule, &[fetch("https://docs.rs/x"), fetch("https://a.DOCS.rs:443/"), fetch("http://u@docs.rs")], true);
    check_allows(
        rule,
        &[
            fetch("https://docs.rs@evil.example/"),
            fetch("https://evildocs.rs"),
            fetch("https://docs.rs.evil/"),
            fetch("x"),
        ],
        false,
    );
    check_concerns(rule, &[fetch("not a url")], true);
}
