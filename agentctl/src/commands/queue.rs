//! `queue` and `resume`: messages that wait, and turns that were cut off.

use protocol::api::{self, ApprovalRole, ResumeAction, Until};
use protocol::ids::TurnId;
use protocol::method;
use protocol::session::{Session, SessionStatus, Turn, TurnState};

use crate::args::Queue;
use crate::commands::{open, table};
use crate::connect::Connection;
use crate::exit::Failure;
use crate::naming;
use crate::output;
use crate::render::wire_name;
use crate::untrusted::Untrusted;
use crate::world::World;

/// Lists the messages that wait, or takes one back.
pub(super) async fn queue(world: &World, args: Queue) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let session = naming::session(&connection, &world.cwd, &args.session).await?;
    let turns = waiting(&connection, &session).await?;
    if let Some(id) = &args.drop {
        let turn = named(&turns, id)?;
        connection.call::<method::QueueDelete>(api::QueueDelete { turn_id: turn.id }).await?;
        return output::line(&format!("taken back: {}", words(turn)));
    }
    if args.form.json {
        return output::json(&turns);
    }
    if turns.is_empty() {
        output::note("no message waits in this session");
        return Ok(());
    }
    output::text(&listing(&turns))
}

/// Lets a turn that was cut off go on, or ends it.
pub(super) async fn resume(world: &World, name: &str, action: ResumeAction) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Answer).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    let Some(turn) = cut_off(&connection, &session).await? else {
        return output::line("nothing was cut off in this session");
    };
    let resumed = connection.call::<method::TurnResume>(api::TurnResume { turn_id: turn, action }).await?;
    output::line(&format!("turn {} {}", resumed.turn_id, wire_name(&resumed.state)))
}

pub(crate) async fn waiting(connection: &Connection, session: &Session) -> Result<Vec<Turn>, Failure> {
    Ok(connection.call::<method::QueueList>(api::QueueList { session_id: session.id }).await?.turns)
}

/// The turn that waits for a yes: the one that was cut off, else the first of a queue that stands still.
pub(crate) async fn cut_off(connection: &Connection, session: &Session) -> Result<Option<TurnId>, Failure> {
    let ask = api::TurnWait { session_id: session.id, turn_id: None, until: Until::Ended, timeout_ms: Some(0) };
    let stands = match connection.call::<method::TurnWait>(ask).await {
        Err(failure) if failure.is(protocol::error::ErrorKind::WaitTimeout) => return Ok(None),
        stands => stands?,
    };
    if let Some(turn) = stands.turn.filter(|turn| turn.state == TurnState::Recoverable) {
        return Ok(Some(turn.id));
    }
    if stands.status != SessionStatus::Interrupted {
        return Ok(None);
    }
    Ok(waiting(connection, session).await?.first().map(|turn| turn.id))
}

/// One line for each, with the number that names it.
pub(crate) fn listing(turns: &[Turn]) -> String {
    let row = |(number, turn): (usize, &Turn)| vec![number.to_string(), wire_name(&turn.delivery), words(turn)];
    table(&[], (1..).zip(turns).map(row))
}

/// The message that a number of the listing, or an id, names.
pub(crate) fn named<'a>(turns: &'a [Turn], name: &str) -> Result<&'a Turn, Failure> {
    let by_number =
        name.parse::<usize>().ok().filter(|_| name.len() < 4).and_then(|number| turns.get(number.wrapping_sub(1)));
    let by_id = || turns.iter().find(|turn| turn.id.to_string() == name);
    by_number.or_else(by_id).ok_or_else(|| {
        Failure::usage(format!(
            "no message `{}` waits (hint: agentctl queue lists them)",
            Untrusted::new(name).one_line(60)
        ))
    })
}

fn words(turn: &Turn) -> String {
    let text = turn.input.iter().find_map(|part| part.as_text()).unwrap_or("(no text)");
    Untrusted::new(text).one_line(80)
}
