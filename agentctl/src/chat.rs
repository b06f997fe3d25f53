//! `chat` and `attach`: a conversation with a session in line mode, while it goes on.
//!
//! One loop over three sources: the session's events, what a person does, and nothing else. The session lives in the
//! daemon: leaving never stops it.

mod asks;
mod console;
mod room;
mod slash;

use std::sync::Arc;

use protocol::api::{self, ApprovalRole};
use protocol::method;
use protocol::session::Session;

use crate::args::Chat;
use crate::chat::console::Console;
use crate::chat::room::Room;
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::naming;
use crate::output;
use crate::world::World;

/// How many past events are shown on entering: all that a screen's history can use, or enough to remember.
const ATTACH_EVENTS: u32 = 1000;
const CHAT_EVENTS: u32 = 100;

/// Goes on where this directory's newest session ended, or begins one.
pub(crate) async fn chat(world: &Arc<World>, args: &Chat) -> Result<Exit, Failure> {
    let connection = open(world).await?;
    let session = match &args.session {
        Some(name) => Some(naming::session(&connection, &world.cwd, name).await?),
        None if args.new => None,
        None => {
            let here = Some(world.cwd.clone());
            let ask = api::SessionList { cwd: here, archived: None, query: None, cursor: None, limit: None };
            let sessions = naming::all(&connection, ask).await?;
            naming::newest(&sessions, Some(&world.cwd)).cloned()
        }
    };
    let session = match session {
        Some(session) => connection.choose(session, args.model.clone(), args.mode.map(Into::into)).await?,
        None => begin(&connection, world, args).await?,
    };
    talk(world, connection, session, CHAT_EVENTS).await
}

/// Joins a session, and shows what was said.
pub(crate) async fn attach(world: &Arc<World>, name: &str) -> Result<Exit, Failure> {
    let connection = open(world).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    talk(world, connection, session, ATTACH_EVENTS).await
}

async fn open(world: &World) -> Result<Connection, Failure> {
    let connection = Connection::open(world, ApprovalRole::Answer).await?;
    connection.notes.iter().for_each(|note| output::note(note));
    Ok(connection)
}

async fn begin(connection: &Connection, world: &World, args: &Chat) -> Result<Session, Failure> {
    let ask = api::SessionNew {
        session_id: None,
        cwd: world.cwd.clone(),
        model: args.model.clone(),
        mode: args.mode.map(Into::into),
        title: None,
        no_client_policy: None,
        resume_policy: None,
    };
    Ok(connection.call::<method::SessionNew>(ask).await?.session)
}

async fn talk(world: &Arc<World>, connection: Connection, session: Session, events: u32) -> Result<Exit, Failure> {
    let mut console = Console::open(&world.homes.state.join("history.txt"))?;
    let outcome = async {
        let mut room = Room::enter(Arc::clone(world), Arc::new(connection), session, &console, events).await?;
        room.talk(&mut console).await
    }
    .await;
    let closed = console.close().await;
    outcome.and_then(|exit| closed.map(|()| exit))
}
