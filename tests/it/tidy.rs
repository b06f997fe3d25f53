//! The rules of the house, checked by a test: a wrong edge, a file that grew too large, a document that lies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use protocol::error::ErrorKind;
use protocol::socket::PROVIDER_VARIABLES;
use protocol::{METHODS, event};

/// Who may depend on whom. A new edge is a change of the architecture: change ARCHITECTURE.md in the same commit.
const EDGES: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("agentd/foundation", &["protocol"]),
    ("agentd/agent", &["foundation", "protocol"]),
    ("agentd/coding", &["agent", "foundation", "protocol"]),
    ("agentd/community", &["foundation", "protocol"]),
    ("agentd", &["agent", "coding", "community", "foundation", "protocol"]),
    ("agentctl", &["protocol"]),
    ("tests", &["agentctl", "community", "foundation", "protocol"]),
];

/// Production lines that a file may have. What is longer holds a second idea.
const MAX_LINES: usize = 400;

/// Files that are longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files, as paths from the root.
fn rust_files() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if path.is_dir() && !name.starts_with("target") && !name.starts_with('.') {
                walk(&path, found);
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    found.iter().map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// Files that only tests see.
fn is_test(path: &Path) -> bool {
    let names = ["tests", "tests.rs", "scripted.rs", "testing.rs", "fake.rs", "conformance", "conformance.rs"];
    path.iter().any(|part| names.iter().any(|name| part == *name))
}

#[test]
fn layers_depend_downward_only() {
    let house: Vec<&str> = EDGES.iter().map(|(path, _)| path.rsplit('/').next().unwrap()).collect();
    for (path, allowed) in EDGES {
        let manifest = read(format!("{path}/Cargo.toml"));
        let named = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for name in named.filter(|name| house.contains(name)) {
            assert!(
                allowed.contains(&name),
                "{path} depends on {name}: a type that both need belongs in a layer below both, behaviour comes in \
                 through a trait that the lower one owns"
            );
        }
    }
}

#[test]
fn every_package_is_in_the_table_and_takes_the_workspace_lints() {
    let manifest = read("Cargo.toml");
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(members.len(), EDGES.len());
    for member in members {
        assert!(EDGES.iter().any(|(path, _)| *path == member), "{member} is not in the table of edges");
        assert!(
            read(format!("{member}/Cargo.toml")).contains("[lints]\nworkspace = true"),
            "{member} has its own lints"
        );
    }
}

#[test]
fn every_file_says_what_it_is_for_and_stays_small() {
    for path in rust_files() {
        let text = read(&path);
        assert!(text.starts_with("//! "), "{} does not begin with what it is for", path.display());
        let lines = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().count();
        let is_known = LONGER.iter().any(|(longer, _)| path == Path::new(longer));
        assert!(
            is_test(&path) || is_known || lines <= MAX_LINES,
            "{} has {lines} lines, more than {MAX_LINES}: give its second idea a file of its own",
            path.display()
        );
        assert!(!path.ends_with("mod.rs"), "{}: foo.rs stands beside foo/", path.display());
    }
}

#[test]
fn no_layer_below_the_tools_names_a_tool() {
    let named = ["\"read\"", "\"bash\"", "\"edit\"", "\"grep\"", "\"apply_patch\"", "\"ask_user_question\""];
    let generic = ["agentd/foundation/src", "agentd/agent/src", "agentd/src", "agentctl/src"];
    for path in rust_files().iter().filter(|path| generic.iter().any(|dir| path.starts_with(dir))) {
        let text = read(path);
        let production = text.split("#[cfg(test)]").next().unwrap_or_default();
        let name = named.iter().find(|name| !is_test(path) && production.contains(**name));
        assert!(
            name.is_none(),
            "{} names the tool {name:?}: let the tool declare what others need to know of it",
            path.display()
        );
    }
}

#[test]
fn the_protocol_document_names_everything_once() {
    let document = read("protocol/PROTOCOL.md");
    let headings = |name: &str| {
        document.lines().filter(|line| line.starts_with('#') && line.contains(&format!("`{name}`"))).count()
    };
    let methods = METHODS.iter().map(|method| method.name);
    let names = methods.chain(event::TYPES.iter().copied());
    let wrong: BTreeMap<&str, usize> =
        names.map(|name| (name, headings(name))).filter(|(_, count)| *count != 1).collect();
    assert!(wrong.is_empty(), "headings in PROTOCOL.md, by name: {wrong:?}");
    for kind in ErrorKind::ALL {
        let row = format!("| {} | `{}` |", kind.code(), kind.as_str());
        assert_eq!(document.matches(&row).count(), 1, "PROTOCOL.md should have the row {row}");
    }
}

#[test]
fn a_daemon_that_a_client_starts_gets_the_variables_of_every_preset() {
    let presets = community::presets();
    let variables = presets.iter().flat_map(|preset| preset.key_env.iter().chain(&preset.base_url_env));
    let named: BTreeSet<&str> = variables.map(String::as_str).collect();
    let passed: BTreeSet<&str> = PROVIDER_VARIABLES.iter().copied().collect();
    assert_eq!(passed, named, "PROVIDER_VARIABLES in protocol/src/socket.rs against the presets");
    assert_eq!(passed.len(), PROVIDER_VARIABLES.len(), "each once");
}

#[test]
fn every_test_file_is_part_of_the_one_test_binary() {
    let main = read("tests/it/main.rs");
    for path in rust_files().iter().filter(|path| path.parent() == Some(Path::new("tests/it"))) {
        let name = path.file_stem().unwrap().to_string_lossy();
        assert!(name == "main" || main.contains(&format!("mod {name};")), "tests/it/{name}.rs is in no binary");
    }
}

#[test]
fn a_build_without_debug_assertions_has_no_fail_points() {
    let file = root().join("agentd/foundation/src/failpoint.rs");
    let out = tempfile::NamedTempFile::new().unwrap();
    let mut rustc = e2e::command("rustc");
    rustc.args(["--edition=2024", "--crate-type=lib", "--emit=obj", "-Cdebug-assertions=off", "-o"]);
    // Alone, without the library that kills: it compiles only when nothing that needs it is there.
    let built = rustc.arg(out.path()).arg(&file).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let object = fs::read(out.path()).unwrap();
    assert!(!object.windows(9).any(|bytes| bytes == b"FAILPOINT"), "the variable's name is in the program");
}
