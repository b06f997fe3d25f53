//! What the loop says, as it stands in the journal. Pure.

use agent::AgentEvent;
use foundation::Effect;
use jiff::Timestamp;
use protocol::{Actor, EventBody, Message, Role, SessionId, TurnId};

use super::scribe::{Fact, Rows};
use crate::store::{CallRow, CallState};

/// The events of one thing that the loop said, and the rows that are committed with them.
pub(crate) fn facts_of(event: AgentEvent, session: SessionId, turn: TurnId) -> (Vec<Fact>, Rows) {
    let mut rows = Rows::default();
    let facts = match event {
        AgentEvent::Message(message) => {
            vec![Fact { actor: Some(author_of(&message)), ..fact(EventBody::Message { message }, turn) }]
        }
        AgentEvent::ToolStarted { call, ordinal, name, class, title, input, allowed_by, files } => {
            rows.calls.push(CallRow {
                session,
                call_id: call.clone(),
                turn,
                ordinal,
                name: name.clone(),
                class: class.letter(),
                attempt: 1,
                state: CallState::Started,
                started_at: Some(Timestamp::now()),
                finished_at: None,
                result: None,
                files,
            });
            vec![fact(EventBody::ToolStarted { tool_use_id: call, name, title, input, allowed_by }, turn)]
        }
        AgentEvent::ToolFinished { call, name, result, summary, code, detail, effect, duration, denied_by } => {
            rows.calls.push(CallRow {
                session,
                call_id: call.clone(),
                turn,
                ordinal: 0,
                name,
                class: ' ',
                attempt: 1,
                state: CallState::Finished,
                started_at: None,
                finished_at: Some(Timestamp::now()),
                result: serde_json::to_string(&result).ok(),
                files: Vec::new(),
            });
            let finished = EventBody::ToolFinished {
                tool_use_id: call,
                is_error: code.is_some(),
                code: code.map(|code| code.as_str().to_owned()),
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
                summary,
                detail,
                denied_by,
            };
            let todos = effect.map(|Effect::Todos(todos)| fact(EventBody::TodosUpdated { todos }, turn));
            std::iter::once(fact(finished, turn)).chain(todos).collect()
        }
        AgentEvent::Notice { level, text } => vec![fact(EventBody::Notice { level, text }, turn)],
    };
    (facts, rows)
}

fn fact(body: EventBody, turn: TurnId) -> Fact {
    Fact::new(body, Actor::Daemon).in_turn(turn)
}

fn author_of(message: &Message) -> Actor {
    match (&message.model, message.role) {
        (Some(name), Role::Assistant) => Actor::Model { name: name.clone() },
        _ => Actor::Daemon,
    }
}
