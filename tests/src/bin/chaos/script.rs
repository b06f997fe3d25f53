//! What the model says: calls whose effects can be told apart from outside.
//!
//! Each effect has a number that is given out once. A command writes its number into the ledger, a file bears it as its
//! name and holds nothing else, so what happened can be joined with what the journal says of it.

use std::sync::Mutex;
use std::sync::PoisonError;

use e2e::strict::Say;
use serde_json::{Value, json};

use crate::dice::Dice;

/// Lines of a written file: long enough for a torn write to show.
const LINES: usize = 4000;

pub(crate) struct Script {
    state: Mutex<(Dice, u64)>,
}

impl Script {
    pub(crate) fn new(dice: Dice) -> Self {
        Self { state: Mutex::new((dice, 0)) }
    }

    pub(crate) fn answer(&self, messages: &[Value]) -> Vec<Say> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (dice, last) = &mut *state;
        let goes_on = messages.last().is_some_and(|last| last.to_string().contains("tool_result"));
        let mut said = vec![Say::Text("I see.".to_owned())];
        if dice.percent(if goes_on { 40 } else { 90 }) {
            for _ in 0..=dice.below(3) {
                *last += 1;
                said.push(call(dice.below(11), *last));
            }
        }
        said
    }
}

fn call(kind: u64, number: u64) -> Say {
    let bash = |command: String| ("bash", json!({"description": "work", "command": command}));
    let effect = format!("echo e{number} >> ledger");
    let (name, input) = match kind {
        0 => bash(effect),
        1 => bash(format!("sleep 0.1; {effect}")),
        2 => bash(format!("{effect}; echo said; sleep 0.3")),
        3 | 4 => bash(format!("echo asked e{number}; {effect}")),
        5 => bash(format!("(setsid sleep 60 > /dev/null &); {effect}")),
        6 => ("write", json!({"description": "work", "path": file(number), "content": content(number)})),
        8 => (
            "todo_write",
            json!({"description": "plan", "merge": false,
            "todos": [{"id": "1", "content": format!("t{number}"), "status": "pending"}]}),
        ),
        9 => (
            "ask_user_question",
            json!({"description": "ask", "questions": [{"question": "Which?", "header": "h",
            "multiSelect": false, "options": [{"label": "A", "description": ""}, {"label": "B", "description": ""}]}]}),
        ),
        _ => ("read", json!({"description": "look", "path": "note.txt"})),
    };
    // What leaves nothing outside has no number there.
    let id = if matches!(kind, 8 | 9) { format!("inner_{number}") } else { format!("call_{number}") };
    Say::Call { id, name, input }
}

pub(crate) fn file(number: u64) -> String {
    format!("files/f{number}.txt")
}

pub(crate) fn content(number: u64) -> String {
    format!("{number}\n").repeat(LINES)
}

/// The effect's number, of a call's id.
pub(crate) fn number(call: &str) -> Option<u64> {
    call.strip_prefix("call_")?.parse().ok()
}
