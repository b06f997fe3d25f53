//! What the slash commands of a chat do.

use std::sync::Arc;

use protocol::api;
use protocol::method;
use protocol::session::Session;

use crate::chat::console::Console;
use crate::chat::room::Room;
use crate::chat::slash::{self, Slash};
use crate::commands::{offline_note, queue, short_id, table};
use crate::exit::Failure;
use crate::naming;
use crate::render::{Paint, mode_name, wire_name};
use crate::untrusted::Untrusted;

/// What is said of a session whose last turn was cut off.
pub(super) const CUT_OFF: &str = "! the last turn was cut off when the daemon was stopped: /resume lets it go on, /discard ends it, \
                                  and so does a new message";

/// How many sessions `/sessions` shows, and how many past events a session shows that is gone to.
const SESSIONS_SHOWN: usize = 20;
const EVENTS_SHOWN: u32 = 100;

impl Room {
    /// Does what a slash command asks for; what goes wrong is said and ends nothing.
    pub(super) async fn command(&mut self, command: Slash, console: &Console) -> Result<(), Failure> {
        match self.try_command(command, console).await {
            Err(failure @ (Failure::Output(_) | Failure::Left)) => Err(failure),
            Err(failure) => console.print(self.world.paint.yellow(&failure.sentence())),
            Ok(()) => Ok(()),
        }
    }

    async fn try_command(&mut self, command: Slash, console: &Console) -> Result<(), Failure> {
        let connection = self.feed.connection();
        match command {
            Slash::Help => console.print(slash::help()),
            Slash::Sessions => console.print(self.sessions().await?),
            Slash::Attach(name) => {
                let session = naming::session(&connection, &self.world.cwd, &name).await?;
                self.go(session, console).await
            }
            Slash::New => {
                let session = &self.view.session;
                let ask = api::SessionNew {
                    session_id: None,
                    cwd: session.cwd.clone(),
                    model: Some(session.model.clone()),
                    mode: None,
                    title: None,
                    no_client_policy: None,
                    resume_policy: None,
                };
                let session = connection.call::<method::SessionNew>(ask).await?.session;
                self.go(session, console).await
            }
            Slash::Model(None) => console.print(Untrusted::new(&self.view.session.model).one_line(80)),
            Slash::Mode(None) => console.print(mode_name(self.view.session.mode)),
            Slash::Model(model) => self.update(model, None).await,
            Slash::Mode(mode) => self.update(None, mode).await,
            Slash::Approvals => match self.asks.again(self.world.paint) {
                Some(text) => console.ask(text, self.asks.number()),
                None => console.print("nothing waits for you in this session".into()),
            },
            Slash::Interrupt => self.interrupt(console).await,
            Slash::Resume(action) => match queue::cut_off(&connection, &self.view.session).await? {
                Some(turn_id) => {
                    connection.call::<method::TurnResume>(api::TurnResume { turn_id, action }).await.map(|_| ())
                }
                None => console.print("nothing was cut off in this session".into()),
            },
            Slash::Queue(drop) => self.queue(drop, console).await,
            Slash::Status => console.print(self.status()),
            Slash::Quit => Ok(()),
        }
    }

    /// Another session takes this one's place on the screen.
    async fn go(&mut self, session: Session, console: &Console) -> Result<(), Failure> {
        let world = Arc::clone(&self.world);
        *self = Self::enter(world, self.feed.connection(), session, console, EVENTS_SHOWN).await?;
        console.nothing_asked()?;
        self.ask(console)
    }

    async fn queue(&mut self, drop: Option<String>, console: &Console) -> Result<(), Failure> {
        let connection = self.feed.connection();
        let turns = queue::waiting(&connection, &self.view.session).await?;
        match drop {
            Some(name) => {
                let turn_id = queue::named(&turns, &name)?.id;
                connection.call::<method::QueueDelete>(api::QueueDelete { turn_id }).await.map(|_| ())
            }
            None if turns.is_empty() => console.print("no message waits in this session".into()),
            None => console.print(queue::listing(&turns)),
        }
    }

    /// The event that follows says what is in force.
    async fn update(&mut self, model: Option<String>, mode: Option<protocol::session::Mode>) -> Result<(), Failure> {
        let session_id = self.view.session.id;
        let ask =
            api::SessionUpdate { session_id, title: None, model, mode, no_client_policy: None, resume_policy: None };
        self.feed.connection().call::<method::SessionUpdate>(ask).await.map(|_| ())
    }

    async fn sessions(&self) -> Result<String, Failure> {
        let nothing = api::SessionList { cwd: None, archived: None, query: None, cursor: None, limit: None };
        let mut sessions = naming::all(&self.feed.connection(), nothing).await?;
        sessions.sort_by_key(|session| std::cmp::Reverse((session.updated_at, session.id)));
        let rows = sessions.iter().take(SESSIONS_SHOWN).map(|session| {
            let here = if session.id == self.view.session.id { "*" } else { "" };
            let cwd = session.cwd.display().to_string();
            let title = Untrusted::new(&session.title).one_line(50);
            vec![here.into(), short_id(session.id), wire_name(&session.status), cwd, title]
        });
        Ok(table(&[], rows))
    }

    fn status(&self) -> String {
        let session = &self.view.session;
        let context = self.view.context_percent().map(|percent| format!(" · context {percent} %")).unwrap_or_default();
        let waits = self.view.approvals.len() + self.view.questions.len();
        format!(
            "{} · {} · {} · {}{context} · {waits} waiting for you\n",
            session.id,
            Untrusted::new(&session.model).one_line(80),
            mode_name(session.mode),
            wire_name(&session.status),
        )
    }
}

/// What stands at the top of a session.
pub(super) fn banner(session: &Session, paint: Paint) -> String {
    let head = format!(
        "session {} · {} · {} · {}",
        short_id(session.id),
        Untrusted::new(&session.model).one_line(80),
        mode_name(session.mode),
        Untrusted::new(&session.cwd.display().to_string()).one_line(200),
    );
    let offline = offline_note(&session.model).map(|note| format!("\n{}", paint.yellow(note))).unwrap_or_default();
    format!(
        "{}{offline}\n{}\n",
        paint.bold(&head),
        paint.dim("/help lists commands; Ctrl-D leaves, and what runs goes on")
    )
}
