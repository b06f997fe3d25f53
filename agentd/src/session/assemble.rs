//! Puts a session's agent together: model, tools, rules and people, from settings and from what the session has become.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, TodoList};
use coding::permissions::{Grants, Protected, Rule, Rules, SharedMode};
use coding::sandbox::ProcessEnv;
use coding::{FileState, Outputs, Place, Setup, ShellDirectory, Standing, Workspace, lead_agent};
use foundation::{FileMark, Model, ToolError};
use jiff::ZonedDateTime;
use protocol::api::{ConfigExplained, ModelInfo, ToolInfo};
use protocol::socket::Homes;
use protocol::{ErrorKind, RpcError, Session, SessionId, TurnId};
use tokio::sync::{mpsc, watch};

use super::feed::{DaemonFeed, Feed};
use super::models::Models;
use super::turn::TurnLink;
use crate::settings::{Loaded, Settings, SettingsSource};
use crate::store::{Store, WorkbenchRows};

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct SessionEnv {
    pub(crate) store: Store,
    /// The events that concern whoever watches the whole daemon.
    pub(crate) everyone: DaemonFeed,
    pub(crate) models: Models,
    source: Arc<SettingsSource>,
    homes: Homes,
    home: Option<PathBuf>,
}

/// What outlives a turn and belongs to one session. A clone shares it.
#[derive(Clone, Debug)]
pub(crate) struct Workbench {
    pub(crate) mode: SharedMode,
    pub(crate) grants: Grants,
    files: Arc<FileState>,
    directory: Arc<ShellDirectory>,
    outputs: Arc<Outputs>,
    todos: TodoList,
}

impl SessionEnv {
    pub(crate) fn new(
        store: Store,
        source: Arc<SettingsSource>,
        user: watch::Receiver<Arc<Loaded>>,
        (homes, home): (Homes, Option<PathBuf>),
    ) -> Self {
        let models = Models::new(Arc::clone(&source), user);
        Self { store, everyone: DaemonFeed::default(), models, source, homes, home }
    }

    /// The settings that are in force in a directory, and what is wrong with them.
    pub(crate) fn load(&self, cwd: &Path) -> Loaded {
        self.source.load(Some(cwd))
    }

    /// The user's own settings.
    pub(crate) fn load_user(&self) -> Settings {
        self.models.user_settings()
    }

    /// # Errors
    /// `not_found` for a key that there is not, with the nearest.
    pub(crate) fn explain(&self, key: Option<&str>, cwd: Option<&Path>) -> Result<ConfigExplained, RpcError> {
        self.source
            .explain(key, cwd)
            .map_err(|error| RpcError::new(ErrorKind::NotFound, error, "config/explain without a key lists all"))
    }

    /// What a session here would be made of: every model that can be named.
    pub(crate) fn list_models(&self) -> Vec<ModelInfo> {
        self.models.list()
    }

    /// The agent for one turn.
    ///
    /// # Errors
    /// `not_found` or `provider_error` for the model, `precondition_failed` for a directory that is gone.
    pub(crate) fn agent(
        &self,
        session: &Session,
        workbench: &Workbench,
        link: &TurnLink,
        max_steps: Option<u32>,
    ) -> Result<Agent, RpcError> {
        let model = self.models.get(&session.model)?;
        let workspace = Workspace::open(&session.cwd).map_err(|error| directory_gone(session, &error))?;
        Ok(lead_agent(self.setup(model, Arc::new(workspace), workbench, (link, max_steps))))
    }

    fn setup(
        &self,
        model: Arc<dyn Model>,
        workspace: Arc<Workspace>,
        workbench: &Workbench,
        (link, max_steps): (&TurnLink, Option<u32>),
    ) -> Setup {
        let settings = self.load(workspace.root()).settings;
        let most_steps = u32::try_from(settings.limits.max_steps).unwrap_or(u32::MAX);
        let limits = agent::Limits {
            max_steps: max_steps.map_or(most_steps, |steps| steps.min(most_steps)),
            parallel_tools: usize::try_from(settings.limits.parallel_tools).unwrap_or(usize::MAX),
        };
        Setup {
            model,
            limits,
            command_timeout: Duration::from_secs(settings.limits.bash_timeout_secs),
            today: ZonedDateTime::now().date(),
            place: Place {
                workspace,
                home: self.home.clone(),
                config_home: Some(self.homes.config.clone()),
                env: self.process_env(&settings),
                web_hosts: settings.web.allow_hosts.clone().into(),
            },
            standing: Standing {
                mode: workbench.mode.clone(),
                rules: Arc::new(self.rules(&settings)),
                grants: workbench.grants.clone(),
                protected: Protected { paths: vec![self.homes.config.clone(), self.homes.state.clone()] },
            },
            files: Arc::clone(&workbench.files),
            directory: Arc::clone(&workbench.directory),
            outputs: Arc::clone(&workbench.outputs),
            todos: workbench.todos.clone(),
            remind_after: u32::try_from(settings.todos.remind_after_steps).unwrap_or(u32::MAX),
            approver: Arc::new(link.clone()),
            asker: Arc::new(link.clone()),
        }
    }

    /// The tools that a session with this workbench is offered.
    pub(crate) fn tools(&self) -> Result<Vec<ToolInfo>, RpcError> {
        let root = self.home.clone().unwrap_or_else(|| self.homes.state.clone());
        let workspace = Workspace::open(&root).map_err(|error| super::internal(error.to_string()))?;
        let workbench = Workbench::fresh(workspace.root(), protocol::Mode::Ask, self, SessionId::new());
        let feed = Arc::new(Feed::new(SessionId::new(), 0, self.everyone.clone()));
        let link = TurnLink::new(TurnId::new(), feed, mpsc::channel(1).0);
        let model = self.models.get("offline/rules")?;
        Ok(coding::tool_infos(&lead_agent(self.setup(model, Arc::new(workspace), &workbench, (&link, None)))))
    }

    /// How long a request for consent stays open, if not for ever.
    pub(crate) fn approvals_last(&self, cwd: &Path) -> Option<Duration> {
        self.load(cwd).settings.approvals.expire_after_secs.map(Duration::from_secs)
    }

    fn process_env(&self, settings: &Settings) -> ProcessEnv {
        let mut env = ProcessEnv::new(self.source.environment().os(), &settings.env.pass).owned_by(self.store.epoch());
        for (name, value) in &settings.env.set {
            env.set(name, value);
        }
        env
    }

    /// The rules of all layers. A rule that cannot be read is left out where it would allow, and closes everything
    /// where it would forbid.
    fn rules(&self, settings: &Settings) -> Rules {
        let parse = |texts: &[String]| -> (Vec<Rule>, bool) {
            let parsed: Vec<_> = texts.iter().map(|text| Rule::parse(text, self.home.as_deref())).collect();
            let is_whole = parsed.iter().all(Result::is_ok);
            for error in parsed.iter().filter_map(|rule| rule.as_ref().err()) {
                tracing::warn!(rule = error.rule, why = error.why, "a permission rule cannot be read");
            }
            (parsed.into_iter().flatten().collect(), is_whole)
        };
        let permissions = &settings.permissions;
        let ((allow, _), (ask, all_ask), (deny, all_deny)) =
            (parse(&permissions.allow), parse(&permissions.ask), parse(&permissions.deny));
        Rules { allow, ask, deny, fail_closed: settings.fail_closed || !all_ask || !all_deny }
    }

    /// Where what a session's commands have said at length is kept.
    pub(crate) fn outputs_of(&self, session: SessionId) -> PathBuf {
        self.homes.state.join("outputs").join(session.to_string())
    }

    /// Where `~` is.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}

impl Workbench {
    /// What the journal says the session has become.
    ///
    /// # Errors
    /// `storage_error`.
    pub(crate) async fn restore(session: &Session, env: &SessionEnv) -> Result<Self, RpcError> {
        let todos = env.store.todos(session.id).await.map_err(|error| super::storage(&error))?;
        let grants = env.store.grants(session.id).await.map_err(|error| super::storage(&error))?;
        let kept = env.store.workbench(session.id).await.map_err(|error| super::storage(&error))?;
        let seen = kept.seen.into_iter().filter_map(|(path, hash)| Some((path, hash?)));
        let workbench = Self {
            todos: TodoList::new(todos),
            files: Arc::new(FileState::restored(seen)),
            directory: Arc::new(ShellDirectory::new(kept.directory.unwrap_or_else(|| session.cwd.clone()))),
            ..Self::fresh(&session.cwd, session.mode, env, session.id)
        };
        for grant in grants {
            workbench.grant(&grant.rule);
        }
        Ok(workbench)
    }

    /// What a call has changed here, to be kept with its end.
    pub(crate) fn take_changes(&self) -> WorkbenchRows {
        WorkbenchRows { seen: self.files.take_changes(), directory: self.directory.take_move() }
    }

    /// Those changes could not be kept yet.
    pub(crate) fn put_back(&self, rows: WorkbenchRows) {
        self.files.put_back(rows.seen);
        if rows.directory.is_some() {
            self.directory.put_back_move();
        }
    }

    /// A call that was cut off has left its files so after all: its session knows them.
    pub(crate) fn has_left(&self, files: &[FileMark]) {
        for file in files {
            match file.after.as_deref().and_then(|hash| blake3::Hash::from_hex(hash).ok()) {
                Some(hash) => self.files.note(&file.path, hash),
                None => self.files.forget(&file.path),
            }
        }
    }

    /// Remembers a rule that a person granted for this session.
    pub(crate) fn grant(&self, rule: &str) {
        if let Err(error) = self.grants.add(rule) {
            // Then the next call asks again, which is the safe side.
            tracing::warn!(rule = error.rule, why = error.why, "a granted rule cannot be read");
        }
    }

    fn fresh(cwd: &Path, mode: protocol::Mode, env: &SessionEnv, session: SessionId) -> Self {
        Self {
            mode: SharedMode::new(mode),
            grants: Grants::new(env.home()),
            files: Arc::new(FileState::new()),
            directory: Arc::new(ShellDirectory::new(cwd.to_owned())),
            outputs: Arc::new(Outputs::new(env.outputs_of(session))),
            todos: TodoList::new(Vec::new()),
        }
    }
}

fn directory_gone(session: &Session, error: &ToolError) -> RpcError {
    RpcError::new(
        ErrorKind::PreconditionFailed,
        format!("session {} cannot work in {}: {}", session.id, session.cwd.display(), error.summary),
        "put the directory back, or start a session where it is now",
    )
}
