//! What a call would touch, looked up once, so that deciding is pure.

use std::path::{Path, PathBuf};

use foundation::Access;

use crate::paths::{Target, Workspace};

/// One call as the rules see it.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub touch: Touch,
    /// Canonical root of the workspace.
    pub root: &'a Path,
    /// The call would change what governs the agent itself.
    pub protected: bool,
}

/// What it would touch, links followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Touch {
    Nothing,
    Read(Vec<Target>),
    Write(Vec<Target>),
    Run {
        command: String,
        cwd: PathBuf,
        inside: bool,
    },
    /// No host: the URL could not be read.
    Fetch {
        host: Option<String>,
    },
}

/// Places that tools write only after a person said yes, in every mode: what could give the agent more rights.
#[derive(Clone, Default, Debug)]
pub struct Protected {
    /// Absolute folders and files: the daemon's settings and state.
    pub paths: Vec<PathBuf>,
}

/// Folders that hold settings, hooks and instructions for agents, and git's own, wherever they stand.
const PROTECTED_FOLDERS: &[&str] = &[".agentd", ".agents", ".claude", ".git"];

impl<'a> Call<'a> {
    /// Looks up what `access` leads to at this moment.
    #[must_use]
    pub fn new(tool: &'a str, access: Access, workspace: &'a Workspace, protected: &Protected) -> Self {
        let touch = match access {
            Access::Nothing => Touch::Nothing,
            Access::Read(paths) => Touch::Read(located(&paths, workspace)),
            Access::Write(paths) => Touch::Write(located(&paths, workspace)),
            Access::Run { command, cwd } => {
                let Target { real, inside, .. } = locate(&cwd, workspace);
                Touch::Run { command, cwd: real, inside }
            }
            Access::Fetch { url } => Touch::Fetch { host: host_of(&url) },
        };
        let protected =
            matches!(&touch, Touch::Write(targets) if targets.iter().any(|target| protected.covers(target)));
        Self { tool, touch, root: workspace.root(), protected }
    }
}

impl Protected {
    fn covers(&self, target: &Target) -> bool {
        [&target.real, &target.absolute].into_iter().any(|path| {
            let in_folder = path.components().any(|part| {
                // Case does not count: on some file systems `.GIT` is `.git`.
                PROTECTED_FOLDERS.iter().any(|folder| part.as_os_str().eq_ignore_ascii_case(folder))
            });
            in_folder || self.paths.iter().any(|place| path.starts_with(place))
        })
    }
}

fn located(paths: &[PathBuf], workspace: &Workspace) -> Vec<Target> {
    paths.iter().map(|path| locate(path, workspace)).collect()
}

/// A path that cannot be followed counts as outside; the tool itself will say what is wrong with it.
fn locate(path: &Path, workspace: &Workspace) -> Target {
    let unknown = || Target { absolute: path.into(), real: path.into(), inside: false };
    workspace.locate(path).unwrap_or_else(|_| unknown())
}

pub(crate) fn host_of(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    // `https://docs.rs@evil.example/` leads to the second.
    let host = authority.rsplit('@').next()?;
    let host = if host.starts_with('[') { host } else { host.split(':').next()? };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_governs_the_agent_is_protected_by_whatever_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        std::fs::create_dir_all(at("w")).unwrap();
        std::fs::create_dir_all(at("state")).unwrap();
        std::os::unix::fs::symlink(at("state"), at("w/link")).unwrap();
        let workspace = Workspace::open(&at("w")).unwrap();
        let protected = Protected { paths: vec![at("state")] };
        for (path, expected) in [
            ("w/.agentd/settings.json", true),
            ("w/.git/hooks/pre-commit", true),
            ("w/a/.GIT/config", true),
            ("w/.claude/settings.json", true),
            ("w/.agents/skills/x/SKILL.md", true),
            ("state/agentd.db", true),
            ("w/link/agentd.db", true),
            ("w/.gitignore", false),
            ("w/agentd/src/a.rs", false),
            ("stateless", false),
        ] {
            let write = Call::new("write", Access::Write(vec![at(path)]), &workspace, &protected);
            assert_eq!(write.protected, expected, "{path}");
            let read = Call::new("read", Access::Read(vec![at(path)]), &workspace, &protected);
            assert!(!read.protected, "{path}");
        }
    }
}
