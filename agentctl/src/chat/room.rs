//! One session on the screen: its events as they come, and what a person says to it.

mod commands;

use std::sync::Arc;

use protocol::api::{self, ApprovalRole, From};
use protocol::approval::Decision;
use protocol::error::ErrorKind;
use protocol::event::{Event, EventBody};
use protocol::method;
use protocol::session::{Session, SessionStatus};

use crate::approve::Reply;
use crate::chat::asks::{Asks, Outcome};
use crate::chat::console::{Console, Typed};
use crate::chat::slash;
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::render::Renderer;
use crate::transcript;
use crate::untrusted::Untrusted;
use crate::view::View;
use crate::watch::{Feed, News, STOPPED, Target};
use crate::world::{World, terminal_columns};

/// What a chat is doing.
pub(super) struct Room {
    world: Arc<World>,
    feed: Feed,
    view: View,
    renderer: Renderer,
    asks: Asks,
    /// The input has ended; a pipe's last turn is still waited for.
    is_over: bool,
}

/// Whether the chat goes on.
enum Flow {
    On,
    Leave,
}

impl Room {
    /// Shows what was said, follows what is being said, and asks what waits.
    pub(super) async fn enter(
        world: Arc<World>,
        connection: Arc<Connection>,
        session: Session,
        console: &Console,
        events: u32,
    ) -> Result<Self, Failure> {
        let mut renderer = Renderer::new(world.paint, console.is_terminal().then(columns).flatten());
        let mut view = View::new(session);
        console.print(commands::banner(&view.session, world.paint))?;
        let id = view.session.id;
        let (past, is_cut) = transcript::newest(&connection, id, view.session.last_seq, events).await?;
        if is_cut {
            console.print(world.paint.dim(&format!("… what was said before: agentctl history {id}")))?;
        }
        for event in &past {
            view.apply(event);
            console.print(renderer.event(event, &view))?;
        }
        if view.session.status == SessionStatus::Interrupted {
            console.print(world.paint.yellow(commands::CUT_OFF))?;
        }
        let from = view.cursor.clone().map_or(From::Live, |cursor| From::Cursor { cursor });
        // What waits may have been asked long before the events that were shown.
        let ask = api::ApprovalList { session_id: Some(id), state: None };
        view.approvals = connection.call::<method::ApprovalList>(ask).await?.approvals;
        let ask = api::QuestionList { session_id: Some(id), state: None };
        view.questions = connection.call::<method::QuestionList>(ask).await?.questions;
        let role = ApprovalRole::Answer;
        let feed = Feed::open(Arc::clone(&world), connection, role, Target::Session(id), from).await?;
        Ok(Self { world, feed, view, renderer, asks: Asks::default(), is_over: false })
    }

    /// The loop: until the person leaves.
    pub(super) async fn talk(&mut self, console: &mut Console) -> Result<Exit, Failure> {
        self.ask(console)?;
        loop {
            // A pipe's next line is read when the one before is dealt with; a person may type at any time.
            let may_read = console.is_terminal() || !self.view.is_busy() || self.asks.is_asking();
            if self.is_over && !self.view.is_busy() {
                return Ok(Exit::Done);
            }
            if may_read && !self.is_over {
                console.read_on();
            }
            let flow = tokio::select! {
                typed = console.next(), if !self.is_over => self.typed(typed, console).await?,
                news = self.feed.next() => self.news(news, console)?,
            };
            if matches!(flow, Flow::Leave) {
                return Ok(Exit::Done);
            }
        }
    }

    fn news(&mut self, news: Option<News>, console: &Console) -> Result<Flow, Failure> {
        match news {
            None => return Err(Failure::other("the stream of events ended")),
            Some(News::Gone(failure)) => return Err(failure),
            Some(News::Lost(reason)) => console.print(self.world.paint.yellow(&format!("! {reason}; reconnecting")))?,
            Some(News::Stopped) => {
                let stopped = format!("! {STOPPED} (or type a message to start it)");
                console.print(self.world.paint.yellow(&stopped))?;
            }
            Some(News::Back(notes)) => {
                notes.into_iter().try_for_each(|note| console.print(note))?;
                console.print(self.world.paint.dim("connected again"))?;
            }
            Some(News::Event(_, Some(event))) => self.event(&event, console)?,
            Some(News::Event(_, None)) => {}
        }
        Ok(Flow::On)
    }

    fn event(&mut self, event: &Event, console: &Console) -> Result<(), Failure> {
        self.view.apply(event);
        if console.is_terminal() {
            self.renderer.set_columns(columns());
        }
        if let EventBody::ApprovalRequested { approval } = &event.body {
            self.renderer.was_asked(&approval.tool_use_id, &approval.detail);
        }
        console.print(self.renderer.event(event, &self.view))?;
        if matches!(event.body, EventBody::SessionStatus { status: SessionStatus::Interrupted }) {
            console.print(self.world.paint.yellow(commands::CUT_OFF))?;
        }
        self.ask(console)
    }

    /// Draws what is to be asked now, if that is something new.
    fn ask(&mut self, console: &Console) -> Result<(), Failure> {
        let was_asking = self.asks.is_asking();
        match self.asks.follow(&self.view, self.world.paint) {
            Some(text) if self.is_over => {
                console.print(format!("{text}(nobody is left to answer here: agentctl approvals)"))
            }
            Some(text) => console.ask(text, self.asks.number()),
            None if was_asking && !self.asks.is_asking() => console.nothing_asked(),
            None => Ok(()),
        }
    }

    async fn typed(&mut self, typed: Typed, console: &mut Console) -> Result<Flow, Failure> {
        match typed {
            Typed::Line { text, begun_after } => self.line(text, begun_after, console).await,
            Typed::Cleared => Ok(Flow::On),
            Typed::Interrupt if self.view.is_busy() => {
                console.read_on();
                self.interrupt(console).await.map(|()| Flow::On)
            }
            Typed::End if !console.is_terminal() => {
                self.is_over = true;
                if self.asks.is_asking() {
                    console.print("(nobody is left to answer here: agentctl approvals)".into())?;
                    return Ok(Flow::Leave);
                }
                Ok(Flow::On)
            }
            Typed::Interrupt | Typed::End => {
                if self.view.is_busy() {
                    console.print(format!("detached; the turn goes on (agentctl attach {})", self.view.session.id))?;
                }
                Ok(Flow::Leave)
            }
            Typed::Broken(why) => Err(Failure::other(format!("the terminal cannot be read: {why}"))),
        }
    }

    async fn line(&mut self, text: String, begun_after: u64, console: &mut Console) -> Result<Flow, Failure> {
        if text.starts_with('/') {
            return match slash::parse(&text) {
                Ok(slash::Slash::Quit) => Ok(Flow::Leave),
                Ok(command) => {
                    console.read_on();
                    self.command(command, console).await.map(|()| Flow::On)
                }
                Err(why) => console.print(Untrusted::new(&why).escaped()).map(|()| Flow::On),
            };
        }
        // The next line may be typed while this one is being dealt with.
        if console.is_terminal() {
            console.read_on();
        }
        match self.asks.take(&text, begun_after, self.world.paint) {
            Some(outcome) => {
                if !self.asks.is_asking() {
                    console.nothing_asked()?;
                }
                self.answer(outcome, console).await?;
                self.ask(console)?;
            }
            None if text.trim().is_empty() => {}
            None => self.say(text, console).await?,
        }
        Ok(Flow::On)
    }

    /// Hands a message in. What could not be sent stays in the input history.
    async fn say(&mut self, text: String, console: &Console) -> Result<(), Failure> {
        if console.is_terminal() {
            self.renderer.was_typed(&text);
        }
        let ask = api::TurnStart {
            session_id: self.view.session.id,
            input: api::Input::Text(text.clone()),
            client_message_id: Some(uuid::Uuid::now_v7().to_string()),
            // What is said while a turn runs is for that turn.
            delivery: if self.view.is_busy() { api::Delivery::Steer } else { api::Delivery::Start },
            expected_turn_id: None,
            max_steps: None,
        };
        match self.start(ask, console).await {
            Ok(started) => self.view.turn = self.view.turn.or(Some(started.turn_id)),
            Err(failure) => {
                self.renderer.was_not_sent(&text);
                let why = format!("not sent: {} (arrow up brings your words back)", failure.sentence());
                console.print(self.world.paint.yellow(&why))?;
            }
        }
        Ok(())
    }

    /// Begins a turn, and a daemon first if there is none: somebody wants it now.
    async fn start(&self, ask: api::TurnStart, console: &Console) -> Result<api::TurnStarted, Failure> {
        let connection = self.feed.connection();
        if connection.is_connected() {
            return connection.call::<method::TurnStart>(ask).await;
        }
        let fresh = Connection::open(&self.world, ApprovalRole::Answer).await?;
        if fresh.is_first {
            fresh.notes.iter().try_for_each(|note| console.print(note.clone()))?;
        }
        // Who follows the session is the one who is asked, so the turn begins where it is followed.
        match self.feed.reconnected().await {
            Some(connection) => connection.call::<method::TurnStart>(ask).await,
            None => fresh.call::<method::TurnStart>(ask).await,
        }
    }

    async fn answer(&mut self, outcome: Outcome, console: &Console) -> Result<(), Failure> {
        let connection = self.feed.connection();
        let failed = match outcome {
            Outcome::Not(why) => return console.print(self.world.paint.yellow(&why)),
            Outcome::Next(text) => return console.ask(text, self.asks.number()),
            Outcome::Approval(approval, reply) => {
                let (decision, scope, rule, message) = match reply {
                    Reply::Allow { scope, rule } => (Decision::Allow, scope, rule, None),
                    Reply::Deny { message } => (Decision::Deny, protocol::approval::Scope::Once, None, message),
                    Reply::Unclear(why) => return console.print(why),
                };
                let (approval_id, revision) = (approval.id, Some(approval.revision));
                let ask = api::ApprovalRespond { approval_id, revision, decision, scope, rule, message };
                connection.call::<method::ApprovalRespond>(ask).await.err()
            }
            Outcome::Answers(request, answers) => {
                let ask = api::QuestionRespond { question_id: request.id, answers };
                connection.call::<method::QuestionRespond>(ask).await.err()
            }
        };
        match failed {
            None => Ok(()),
            Some(failure) => {
                // Somebody else was first: the event that says who is on its way, or was seen.
                if !failure.is(ErrorKind::ApprovalResolved) && !failure.is(ErrorKind::ApprovalExpired) {
                    self.asks.take_back();
                }
                console.print(self.world.paint.yellow(&format!("not counted: {}", failure.sentence())))
            }
        }
    }

    async fn interrupt(&mut self, console: &Console) -> Result<(), Failure> {
        console.print(self.world.paint.dim("interrupting"))?;
        let ask = api::TurnInterrupt { session_id: self.view.session.id, turn_id: None };
        match self.feed.connection().call::<method::TurnInterrupt>(ask).await {
            Ok(_) => Ok(()),
            Err(failure) => console.print(self.world.paint.yellow(&failure.sentence())),
        }
    }
}

/// Where prose is broken: one column short of the edge, so that no terminal adds a line of its own.
fn columns() -> Option<usize> {
    terminal_columns().map(|columns| columns.saturating_sub(1).max(20))
}
