//! `send`, `wait`, `interrupt`: turns without watching them.

use std::io::Read;
use std::time::Duration;

use protocol::api::{self, ApprovalRole};
use protocol::method;
use protocol::session::{SessionStatus, TurnState};

use crate::args::{Wait, When};
use crate::commands::open;
use crate::exit::{Exit, Failure};
use crate::naming;
use crate::output;
use crate::render::wire_name;
use crate::world::World;

/// How often a message is handed in again when the connection breaks, and the pause before that.
const AGAIN: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Hands in a message and goes.
pub(super) async fn send(world: &World, name: &str, when: When, text: String) -> Result<(), Failure> {
    let text = message(text)?;
    let connection = open(world, ApprovalRole::Observe).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    let start = api::TurnStart {
        session_id: session.id,
        input: api::Input::Text(text),
        client_message_id: Some(uuid::Uuid::now_v7().to_string()),
        delivery: match when {
            When { queue: true, .. } => api::Delivery::Queue,
            When { steer: true, .. } => api::Delivery::Steer,
            When { .. } => api::Delivery::Start,
        },
        expected_turn_id: None,
        max_steps: None,
    };
    let mut handed_in = connection.call::<method::TurnStart>(start.clone()).await;
    // It may have been taken before the connection broke; under the same name it is taken once.
    for _ in 0..AGAIN {
        if !matches!(handed_in, Err(Failure::Unreachable { .. })) {
            break;
        }
        // A daemon on its way out may still take a connection, and break that too.
        tokio::time::sleep(PAUSE).await;
        handed_in = match open(world, ApprovalRole::Observe).await {
            Ok(connection) => connection.call::<method::TurnStart>(start.clone()).await,
            Err(failure) => Err(failure),
        };
    }
    let started = handed_in?;
    output::line(&format!("turn {} {}", started.turn_id, wire_name(&started.state)))
}

/// Waits, and ends with the turn's exit code.
pub(super) async fn wait(world: &World, args: &Wait) -> Result<Exit, Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let session = naming::session(&connection, &world.cwd, &args.session).await?;
    let timeout_ms = args.timeout.map(|seconds| Duration::from_secs(seconds).as_millis() as u64);
    let ask = api::TurnWait { session_id: session.id, turn_id: None, until: args.until.into(), timeout_ms };
    let waited = connection.call::<method::TurnWait>(ask).await?;
    output::line(&wire_name(&waited.status))?;
    Ok(end_of(&waited))
}

/// What a script learns from the end of a wait.
fn end_of(waited: &api::TurnWaited) -> Exit {
    match (waited.status, &waited.turn) {
        (SessionStatus::WaitingApproval | SessionStatus::WaitingAnswer, _) => Exit::Done,
        (_, Some(turn)) if !matches!(turn.state, TurnState::Queued | TurnState::Running) => {
            Exit::of_turn(turn.state, turn.error.as_ref())
        }
        // Cut off by a crash, and of the turn nothing is known any more.
        (SessionStatus::Interrupted, None) => Exit::Interrupted,
        _ => Exit::Done,
    }
}

/// Stops the running turn.
pub(super) async fn interrupt(world: &World, name: &str) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Answer).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    let ask = api::TurnInterrupt { session_id: session.id, turn_id: None };
    let stopped = connection.call::<method::TurnInterrupt>(ask).await?;
    output::line(&match (stopped.turn_id, stopped.state) {
        (Some(turn), Some(state)) => format!("turn {turn} {}", wire_name(&state)),
        _ => "nothing runs in this session".to_owned(),
    })
}

/// A message as it was typed, or from stdin for `-`. Stdin is never touched otherwise: it may be open for ever.
pub(super) fn message(typed: String) -> Result<String, Failure> {
    let text = if typed == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| Failure::usage(format!("stdin cannot be read: {error}")))?;
        String::from_utf8(bytes).map_err(|_| Failure::usage("stdin is not UTF-8 text (hint: `iconv -t utf-8`)"))?
    } else {
        typed
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty (hint: agentctl run \"list the tests\")"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fake;

    #[track_caller]
    fn check(status: &str, state: Option<&str>, exit: Exit) {
        let turn = state.map(|state| {
            json!({"id": fake::TURN, "sessionId": fake::SESSION, "state": state, "usage": {}, "input": [],
                "startedAt": "2026-12-01T03:00:00Z"})
        });
        let waited = serde_json::from_value(json!({"status": status, "turn": turn, "seq": 7})).unwrap();
        assert_eq!(end_of(&waited), exit, "{status} {state:?}");
    }

    #[test]
    fn a_wait_ends_as_the_turn_did() {
        check("idle", Some("completed"), Exit::Done);
        check("idle", Some("interrupted"), Exit::Interrupted);
        check("error", Some("failed"), Exit::Failed);
        check("idle", Some("limit"), Exit::Limit);
        check("idle", None, Exit::Done);
    }

    #[test]
    fn a_wait_after_a_crash_says_that_the_turn_was_cut_off() {
        check("interrupted", Some("interrupted"), Exit::Interrupted);
        check("interrupted", Some("recoverable"), Exit::Interrupted);
        check("interrupted", None, Exit::Interrupted);
    }

    #[test]
    fn a_turn_that_waits_for_a_person_is_no_failure() {
        check("waiting_approval", Some("running"), Exit::Done);
        check("waiting_answer", Some("running"), Exit::Done);
        check("running", Some("running"), Exit::Done);
    }
}
