//! Clients that work with the daemon until it dies, and remember what it told them.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::wire::{Fail, Wire};

/// A message that was handed in, whether or not its answer came.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub(crate) session: String,
    pub(crate) key: String,
    pub(crate) delivery: &'static str,
    /// The turn that it became, if the daemon said so.
    pub(crate) turn: Option<String>,
}

impl Send {
    pub(crate) fn params(&self) -> Value {
        json!({"sessionId": self.session, "input": self.key, "clientMessageId": self.key, "delivery": self.delivery})
    }

    /// Something else under the same name.
    pub(crate) fn changed(&self) -> Value {
        let mut params = self.params();
        params["input"] = json!(format!("{} or not", self.key));
        params
    }
}

/// What the daemon has promised to its clients.
#[derive(Default, Debug)]
pub(crate) struct Told {
    pub(crate) sends: Vec<Send>,
    /// Calls that a person refused.
    pub(crate) denied: Vec<(String, String)>,
    /// Turns that were stopped, with the `seq` of the answer.
    pub(crate) stopped: Vec<(String, u64)>,
}

/// Works until the daemon is gone.
pub(crate) fn work(socket: &Path, sessions: &[String], name: &str, dice: &mut Dice, told: &Mutex<Told>) {
    let Ok(mut wire) = Wire::connect(socket) else { return };
    let mut sent = 0;
    while let Some(session) = dice.pick(sessions) {
        let done = match dice.below(10) {
            0..4 => {
                sent += 1;
                let delivery = dice.pick(&["queue", "queue", "start", "steer"]).copied().unwrap_or("start");
                let key = format!("{name}-{sent}.");
                hand_in(&mut wire, Send { session: session.clone(), key, delivery, turn: None }, told)
            }
            4 => interrupt(&mut wire, session, told),
            5..8 => answer_all(&mut wire, dice, told),
            _ => {
                let wait = json!({"sessionId": session, "until": "idle", "timeoutMs": 5 + dice.below(60)});
                wire.call("turn/wait", &wait).map(drop)
            }
        };
        if let Err(Fail::Gone) = done {
            return;
        }
    }
}

fn hand_in(wire: &mut Wire, mut send: Send, told: &Mutex<Told>) -> Result<(), Fail> {
    let answer = wire.call("turn/start", &send.params());
    let refused = matches!(answer, Err(Fail::Said(_)));
    if let Ok(answer) = &answer {
        send.turn = answer["turnId"].as_str().map(str::to_owned);
    }
    if !refused {
        told.lock().unwrap_or_else(PoisonError::into_inner).sends.push(send);
    }
    answer.map(drop)
}

fn interrupt(wire: &mut Wire, session: &str, told: &Mutex<Told>) -> Result<(), Fail> {
    let answer = wire.call("turn/interrupt", &json!({"sessionId": session}))?;
    if let (Some(turn), Some(seq), true) =
        (answer["turnId"].as_str(), answer["seq"].as_u64(), answer["state"] == "interrupted")
    {
        told.lock().unwrap_or_else(PoisonError::into_inner).stopped.push((turn.to_owned(), seq));
    }
    Ok(())
}

/// Says yes or no to all that is asked, and answers what is asked.
pub(crate) fn answer_all(wire: &mut Wire, dice: &mut Dice, told: &Mutex<Told>) -> Result<(), Fail> {
    let listed = wire.call("approval/list", &json!({}))?;
    for approval in listed["approvals"].as_array().into_iter().flatten() {
        let denies = dice.percent(30);
        let decision = if denies { "deny" } else { "allow" };
        let answer = json!({"approvalId": approval["id"], "decision": decision});
        match wire.call("approval/respond", &answer) {
            Ok(_) if denies => {
                let text = |field: &str| approval[field].as_str().unwrap_or_default().to_owned();
                told.lock().unwrap_or_else(PoisonError::into_inner).denied.push((text("id"), text("toolUseId")));
            }
            Err(Fail::Gone) => return Err(Fail::Gone),
            Ok(_) | Err(Fail::Said(_)) => {}
        }
    }
    let listed = wire.call("question/list", &json!({}))?;
    for question in listed["questions"].as_array().into_iter().flatten() {
        let answer = json!({"questionId": question["id"], "answers": [{"selected": ["A"]}]});
        if let Err(Fail::Gone) = wire.call("question/respond", &answer) {
            return Err(Fail::Gone);
        }
    }
    Ok(())
}
