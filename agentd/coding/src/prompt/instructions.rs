//! The standing instructions that people keep in files: `AGENTS.md`, or `CLAUDE.md` where a folder has none.
//!
//! The user's own come first, then the project's from the repository's root down to the session's folder, so that the
//! nearest has the last word. Never above the home folder. They are read as text and marked with where they came from.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// More of one file than this is not read.
const MAX_BYTES: usize = 64 * 1024;

const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// One file's instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub path: PathBuf,
    pub kind: InstructionKind,
    /// At most 64 KiB, with plain line ends.
    pub content: String,
    /// The file is longer than what was read.
    pub cut: bool,
}

/// Whose they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InstructionKind {
    User,
    Project,
}

impl Instruction {
    pub(super) fn text(&self) -> String {
        let whose = match self.kind {
            InstructionKind::User => "the user's own instructions",
            InstructionKind::Project => "project instructions",
        };
        let cut = if self.cut { "\n[the file is longer than 64 KiB; the rest was not read]" } else { "" };
        format!("from {} ({whose})\n\n{}{cut}", self.path.display(), self.content.trim())
    }
}

/// Reads the instructions for a session in `cwd`. Files that cannot be read are passed over.
///
/// `home` is never gone above; `config_home` is the folder of the user's own settings.
#[must_use]
pub fn instructions(cwd: &Path, home: Option<&Path>, config_home: Option<&Path>) -> Vec<Instruction> {
    let user = config_home.and_then(|folder| read(&folder.join(NAMES[0]), folder, InstructionKind::User));
    let root = project_root(cwd, home);
    let mut folders: Vec<_> = cwd.ancestors().take_while(|folder| folder.starts_with(root)).collect();
    folders.reverse();
    let project = folders
        .into_iter()
        .filter_map(|folder| NAMES.iter().find_map(|name| read(&folder.join(name), root, InstructionKind::Project)));
    user.into_iter().chain(project).collect()
}

/// The nearest folder upward that holds `.git`, else `cwd`.
fn project_root<'a>(cwd: &'a Path, home: Option<&Path>) -> &'a Path {
    let below_home = |folder: &Path| home.is_none_or(|home| !home.starts_with(folder) || folder == home);
    let mut folders = cwd.ancestors().take_while(|folder| below_home(folder));
    folders.find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

/// Reads one file. A link may lead to another place in the same project, but not out of it.
fn read(path: &Path, root: &Path, kind: InstructionKind) -> Option<Instruction> {
    let real = path.canonicalize().ok()?;
    // A project could otherwise show the model any file of the user's by way of a link. Pipes would block.
    let from_here = kind == InstructionKind::User || real.starts_with(root.canonicalize().ok()?);
    if !from_here || !real.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&real).ok()?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let cut = bytes.len() > MAX_BYTES;
    bytes.truncate(MAX_BYTES);
    let text = String::from_utf8_lossy(&bytes);
    let text = if cut { text.trim_end_matches('\u{fffd}') } else { &text };
    let content = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    (!content.trim().is_empty()).then(|| Instruction { path: path.to_path_buf(), kind, content, cut })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &[u8])]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (path, content) in files {
                let path = tree.path(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            tree
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        #[track_caller]
        fn check(&self, cwd: &str, expected: &[(&str, &str)]) {
            let found = instructions(&self.path(cwd), Some(&self.path("home")), Some(&self.path("config")));
            let found: Vec<_> = found
                .iter()
                .map(|found| {
                    (found.path.strip_prefix(self.0.path()).unwrap().to_str().unwrap(), found.content.as_str())
                })
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn they_come_from_the_root_down_with_the_users_first() {
        let tree = Tree::new(&[
            ("AGENTS.md", b"above"),
            ("home/AGENTS.md", b"home"),
            ("home/p/.git/HEAD", b""),
            ("home/p/AGENTS.md", b"root"),
            ("home/p/a/CLAUDE.md", b"claude"),
            ("home/p/a/b/AGENTS.md", b"near"),
            ("home/p/a/b/CLAUDE.md", b"not read"),
            ("home/p/z/AGENTS.md", b"elsewhere"),
            ("config/AGENTS.md", b"mine"),
        ]);
        let expected = [
            ("config/AGENTS.md", "mine"),
            ("home/p/AGENTS.md", "root"),
            ("home/p/a/CLAUDE.md", "claude"),
            ("home/p/a/b/AGENTS.md", "near"),
        ];
        tree.check("home/p/a/b", &expected);
        tree.check("home/p/a", &expected[..3]);
    }

    #[test]
    fn without_a_repository_only_the_folder_itself_counts() {
        let tree = Tree::new(&[("home/AGENTS.md", b"home"), ("home/a/AGENTS.md", b"a"), (".git/HEAD", b"")]);
        tree.check("home/a", &[("home/a/AGENTS.md", "a")]);
    }

    #[test]
    fn marks_line_ends_and_empty_files_do_no_harm() {
        let tree = Tree::new(&[("home/a/AGENTS.md", b"\xef\xbb\xbfone\r\ntwo\r\n"), ("config/AGENTS.md", b" \n")]);
        tree.check("home/a", &[("home/a/AGENTS.md", "one\ntwo\n")]);
    }

    #[test]
    fn a_link_out_of_the_project_is_not_followed() {
        let tree = Tree::new(&[("home/secret", b"secret"), ("home/a/other.md", b"inside"), ("home/b/x", b"")]);
        std::os::unix::fs::symlink("../secret", tree.path("home/a/AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("other.md", tree.path("home/a/CLAUDE.md")).unwrap();
        tree.check("home/a", &[("home/a/CLAUDE.md", "inside")]);
    }

    #[test]
    fn a_long_file_is_cut_and_says_so() {
        let long = "é".repeat(MAX_BYTES);
        let tree = Tree::new(&[("home/a/AGENTS.md", format!("x{long}").as_bytes())]);
        let [found] = &instructions(&tree.path("home/a"), None, None)[..] else { panic!("one file") };
        assert!(found.cut && found.content.len() <= MAX_BYTES && found.content.ends_with('é'));
        assert!(found.text().ends_with("the rest was not read]"));
    }
}
