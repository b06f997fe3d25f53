//! How far a run may go, and what is said where it must stop.

use foundation::{Message, Role, StopReason};

/// Limits of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Model calls; at least 1. When the last of them still asks for tools, one more call without tools sums up.
    pub max_steps: u32,
    /// Tools that run at the same time; at least 1. A call that waits for a person counts only once it runs.
    pub parallel_tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 100, parallel_tools: 8 }
    }
}

/// Asks the model to sum up, now that its steps are used up.
pub(crate) fn ask_for_closing_words(max_steps: u32) -> Message {
    Message::user_text(format!(
        "The limit of {max_steps} steps for this turn is reached, and tools are off. Say briefly what is done, what is \
         left, and what the next step would be."
    ))
    .synthetic("reminder")
}

/// Says it in the daemon's own words when the model could not.
pub(crate) fn instead_of_closing_words(max_steps: u32) -> Message {
    let text = format!(
        "The limit of {max_steps} steps for one turn is reached, and the closing summary could not be had. The work \
         may be unfinished; send another message to go on."
    );
    Message { role: Role::Assistant, stop_reason: Some(StopReason::End), ..Message::user_text(text).synthetic("limit") }
}
