//! Where a path leads: links, dots, neighbours with the same prefix.

use std::os::unix::fs::symlink;

use super::*;

struct Place {
    _dir: tempfile::TempDir,
    outside: PathBuf,
    workspace: Workspace,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (root, outside) = (base.join("work"), base.join("work-evil"));
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(root.join("sub/real.txt"), "x").unwrap();
    std::fs::write(outside.join("secret"), "x").unwrap();
    symlink("sub/real.txt", root.join("link")).unwrap();
    symlink("link", root.join("chain")).unwrap();
    symlink("loop-b", root.join("loop-a")).unwrap();
    symlink("loop-a", root.join("loop-b")).unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("../work-evil/new", root.join("dangling")).unwrap();
    symlink("sub/new", root.join("dangling-inside")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    Place { _dir: dir, outside, workspace }
}

#[track_caller]
fn check(place: &Place, text: &str, real: &str, inside: bool) {
    let target = place.workspace.resolve(text).unwrap();
    assert_eq!(target.real, normalised(&place.workspace.root().join(real)), "{text}");
    assert_eq!(target.inside, inside, "{text}");
}

#[test]
fn links_are_followed_before_inside_is_decided() {
    let place = place();
    check(&place, "sub/real.txt", "sub/real.txt", true);
    check(&place, ".", "", true);
    check(&place, "sub/../sub/./real.txt", "sub/real.txt", true);
    check(&place, "chain", "sub/real.txt", true);
    check(&place, "out/secret", "../work-evil/secret", false);
    check(&place, "../work-evil/secret", "../work-evil/secret", false);
    check(&place, "sub/../../work-evil", "../work-evil", false);
    check(&place, place.outside.to_str().unwrap(), "../work-evil", false);
}

#[test]
fn what_does_not_exist_yet_is_placed_where_it_would_be_created() {
    let place = place();
    check(&place, "a/b/c", "a/b/c", true);
    check(&place, "out/a/b", "../work-evil/a/b", false);
    check(&place, "dangling", "../work-evil/new", false);
    check(&place, "dangling/x", "../work-evil/new/x", false);
    check(&place, "dangling-inside", "sub/new", true);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let place = place();
    for (text, code) in [
        ("", ErrorCode::InvalidPath),
        ("~", ErrorCode::InvalidPath),
        ("~/x", ErrorCode::InvalidPath),
        ("a\0b", ErrorCode::InvalidPath),
        ("loop-a", ErrorCode::InvalidPath),
        ("loop-a/x", ErrorCode::InvalidPath),
        ("sub/real.txt/x", ErrorCode::NotADirectory),
        (&"n".repeat(300), ErrorCode::InvalidPath),
    ] {
        let error = place.workspace.resolve(text).unwrap_err();
        assert_eq!(error.code, code, "{text}: {error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn paths_are_shown_relative_to_the_root_where_they_are_inside() {
    let place = place();
    let root = place.workspace.root();
    assert_eq!(place.workspace.show(&root.join("sub/x")), "sub/x");
    assert_eq!(place.workspace.show(root), ".");
    assert_eq!(place.workspace.show(&place.outside), place.outside.display().to_string());
}

#[test]
fn only_a_directory_can_be_a_workspace() {
    let place = place();
    let error = Workspace::open(&place.workspace.root().join("link")).unwrap_err();
    assert_eq!(error.code, ErrorCode::NotADirectory);
    assert_eq!(Workspace::open(&place.outside.join("none")).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn a_link_put_in_place_after_resolving_is_not_followed() {
    let place = place();
    let target = place.workspace.resolve("sub/real.txt").unwrap();
    std::fs::rename(place.workspace.root().join("sub"), place.workspace.root().join("sub2")).unwrap();
    std::fs::write(place.outside.join("real.txt"), "stolen").unwrap();
    symlink(&place.outside, place.workspace.root().join("sub")).unwrap();
    assert_eq!(open_file(&target, "sub/real.txt").unwrap_err().code, ErrorCode::InvalidPath);
}

#[test]
fn a_missing_file_names_the_nearest_one() {
    let place = place();
    for (text, near) in [("sub/reel.txt", "sub/real.txt"), ("SUB/x", "sub/"), ("sub/Real.TXT", "sub/real.txt")] {
        let target = place.workspace.resolve(text).unwrap();
        let error = open_file(&target, text).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        assert!(error.hint.contains(near), "{text}: {}", error.hint);
    }
}
