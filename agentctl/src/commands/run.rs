//! `run`: one turn for a script. The answer goes to stdout, all else to stderr, and the exit code tells how it ended.
//!
//! It only observes: nobody sits here to say yes, so the session's policy decides, or another client.

mod screen;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::api::{self, ApprovalRole, From};
use protocol::error::ErrorKind;
use protocol::event::{Event, EventBody};
use protocol::ids::TurnId;
use protocol::method;
use protocol::session::{Session, SessionStatus};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::Run;
use crate::commands::run::screen::Screen;
use crate::commands::{open, turn};
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::naming;
use crate::output;
use crate::transcript;
use crate::view::View;
use crate::watch::{Feed, News, STOPPED, Target};
use crate::world::World;

/// How much of what a new session begins with is shown, in events.
const MOST_NOTICES: u32 = 20;

/// Runs one turn to its end.
pub(super) async fn run(world: &Arc<World>, mut args: Run) -> Result<Exit, Failure> {
    let prompt = turn::message(std::mem::take(&mut args.prompt))?;
    let connection = Arc::new(open(world, ApprovalRole::Observe).await?);
    let session = session(world, &connection, &args).await?;
    if let Some(note) = offline_note(&session.model) {
        output::note(note);
    }
    let mut screen = if args.json { Screen::Json } else { Screen::text(world) };
    let view = View::new(session);
    let session = &view.session;
    if args.session.is_none() && session.last_seq > 1 {
        // What is wrong with the settings stands in a new session from the beginning.
        let (past, _) = transcript::newest(&connection, session.id, session.last_seq, MOST_NOTICES).await?;
        past.iter().try_for_each(|event| screen.recall(event, &view))?;
    }
    let target = Target::Session(session.id);
    let role = ApprovalRole::Observe;
    let feed = Feed::open(Arc::clone(world), Arc::clone(&connection), role, target, From::Live).await?;
    let ask = api::TurnStart {
        session_id: session.id,
        input: api::Input::Text(prompt),
        client_message_id: Some(uuid::Uuid::now_v7().to_string()),
        delivery: api::Delivery::Start,
        expected_turn_id: None,
        max_steps: args.max_steps,
    };
    let started = connection.call::<method::TurnStart>(ask).await.map_err(busy_hint)?;
    Following { feed, view, screen, turn: started.turn_id, was_denied: false }.until_the_end(args.timeout).await
}

/// The session that was named, or a new one, in the model and mode that were asked for.
async fn session(world: &World, connection: &Connection, args: &Run) -> Result<Session, Failure> {
    let Some(name) = &args.session else {
        let cwd = directory(world, args.cwd.as_ref())?;
        let ask = api::SessionNew {
            session_id: None,
            cwd,
            model: args.model.clone(),
            mode: args.mode.map(Into::into),
            title: None,
            no_client_policy: None,
            resume_policy: None,
        };
        return Ok(connection.call::<method::SessionNew>(ask).await?.session);
    };
    let session = naming::session(connection, &world.cwd, name).await?;
    connection.choose(session, args.model.clone(), args.mode.map(Into::into)).await
}

fn directory(world: &World, typed: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    let Some(typed) = typed else { return Ok(world.cwd.clone()) };
    let path = world.cwd.join(typed);
    path.canonicalize().map_err(|error| Failure::usage(format!("--cwd {}: {error}", path.display())))
}

/// Says that nobody thought, if nobody did.
pub(crate) fn offline_note(model: &str) -> Option<&'static str> {
    model.starts_with("offline/").then_some(
        "offline model answers (no key set): everything but the thinking is real. \
         Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a real one.",
    )
}

fn busy_hint(failure: Failure) -> Failure {
    match failure {
        Failure::Rpc { code, message, data: Some(mut data) } if data.kind == ErrorKind::SessionBusy.as_str() => {
            if data.hint.is_empty() {
                data.hint = "`agentctl wait` first, or leave out -s for a session of its own".into();
            }
            Failure::Rpc { code, message, data: Some(data) }
        }
        other => other,
    }
}

/// One turn that is being watched.
struct Following {
    feed: Feed,
    view: View,
    screen: Screen,
    turn: TurnId,
    /// Policy said no to something in this turn.
    was_denied: bool,
}

impl Following {
    async fn until_the_end(mut self, timeout: Option<u64>) -> Result<Exit, Failure> {
        let trouble = |error: std::io::Error| Failure::other(format!("no signal handler: {error}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(trouble)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(trouble)?;
        // Without a limit: a century.
        let timeout = tokio::time::sleep(Duration::from_secs(timeout.unwrap_or(60 * 60 * 24 * 365 * 100)));
        tokio::pin!(timeout);
        loop {
            tokio::select! {
                biased;
                _ = interrupt.recv() => self.interrupt(&mut interrupt).await?,
                _ = terminate.recv() => self.interrupt(&mut terminate).await?,
                () = &mut timeout => return self.timed_out(),
                news = self.feed.next() => {
                    if let Some(exit) = self.take(news)? {
                        return Ok(exit);
                    }
                }
            }
        }
    }

    /// Takes one thing in; gives the exit code when the turn is over.
    fn take(&mut self, news: Option<News>) -> Result<Option<Exit>, Failure> {
        match news {
            None => return Err(Failure::other("the stream of events ended")),
            Some(News::Gone(failure)) => return Err(failure),
            Some(News::Lost(reason)) => output::note(&format!("{reason}; reconnecting")),
            Some(News::Stopped) => output::note(STOPPED),
            Some(News::Back(notes)) => {
                notes.iter().for_each(|note| output::note(note));
                output::note("connected again");
            }
            Some(News::Event(raw, event)) => {
                let waits = event.as_ref().and_then(|event| screen::waits_for(event, &self.view));
                if let Some(event) = &event {
                    self.view.apply(event);
                }
                self.screen.show(&raw, event.as_deref(), &self.view)?;
                waits.iter().for_each(|note| output::note(note));
                return Ok(event.and_then(|event| self.end(&event)));
            }
        }
        Ok(None)
    }

    fn end(&mut self, event: &Event) -> Option<Exit> {
        let is_ours = event.turn_id == Some(self.turn);
        match &event.body {
            EventBody::ApprovalResolved { approval } if is_ours || approval.turn_id == self.turn => {
                self.was_denied |= screen::is_denied_by_policy(approval);
                None
            }
            EventBody::TurnEnded { state, error, .. } if is_ours => {
                let exit = Exit::of_turn(*state, error.as_ref());
                Some(if exit == Exit::Done && self.was_denied { Exit::Denied } else { exit })
            }
            // After a crash of the daemon the turn waits for somebody to decide; a script cannot.
            EventBody::SessionStatus { status: SessionStatus::Interrupted } => {
                output::note(&format!(
                    "the daemon was cut off in this turn (hint: `agentctl resume {}` lets it go on)",
                    self.view.session.id
                ));
                Some(Exit::Interrupted)
            }
            _ => None,
        }
    }

    /// Stops the turn. A second signal stops the waiting too.
    async fn interrupt(&mut self, again: &mut Signal) -> Result<(), Failure> {
        output::note("interrupting (once more to leave at once)");
        let ask = api::TurnInterrupt { session_id: self.view.session.id, turn_id: Some(self.turn) };
        let connection = self.feed.connection();
        tokio::select! {
            stopped = connection.call::<method::TurnInterrupt>(ask) => stopped.map(|_| ()),
            _ = again.recv() => Err(Failure::Left),
        }
    }

    fn timed_out(&self) -> Result<Exit, Failure> {
        let id = self.view.session.id;
        let cursor = self.view.cursor.as_ref().map_or("none yet", |cursor| &cursor.0);
        output::note(&format!(
            "time is up; the turn goes on (cursor {cursor}; `agentctl wait {id}`, `agentctl attach {id}`)"
        ));
        Ok(Exit::TimedOut)
    }
}

#[cfg(test)]
mod tests;
