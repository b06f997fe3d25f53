//! What a run tells, and whom it tells.
//!
//! An event that was answered with `Ok` is kept: the loop never goes on before, and never tells the same thing twice.

use std::time::Duration;

use async_trait::async_trait;
use foundation::{CallId, Effect, ErrorCode, FileMark, LiveOutput, Message, Part, ToolClass};
use protocol::{Ground, NoticeLevel};
use serde_json::Value;

/// Something that happened in a run.
#[derive(Clone, PartialEq, Debug)]
pub enum AgentEvent {
    /// A message that belongs to the transcript: an answer (before any of its calls starts), the results of an
    /// answer's calls, or one that the loop or a hook made.
    Message(Message),
    /// A call is about to run. It does not start before this is kept.
    ToolStarted {
        call: CallId,
        /// Its place among the calls of its answer, from 0.
        ordinal: u32,
        name: String,
        class: ToolClass,
        /// Why, in a few words of the model; the tool's name where it gave none.
        title: String,
        input: Value,
        /// Why it may run, if a hook said so.
        allowed_by: Option<Ground>,
        /// What it will make of files, if it is one that changes them.
        files: Vec<FileMark>,
    },
    /// A call is over. Told the moment it ends, so in order of completion. A call that never started (refused, unknown,
    /// badly formed, cancelled before) has this event alone.
    ToolFinished {
        call: CallId,
        name: String,
        /// The `tool_result` as it will stand in the transcript.
        result: Part,
        /// One line for people.
        summary: String,
        /// Absent when the call did what was asked.
        code: Option<ErrorCode>,
        /// For people alone: the diff of what changed.
        detail: Option<String>,
        effect: Option<Effect>,
        /// How long the tool itself ran; zero for a call that never started.
        duration: Duration,
        /// Why it was not allowed to run, where that is so.
        denied_by: Option<Ground>,
    },
    /// Something that a person should know and that changes nothing.
    Notice { level: NoticeLevel, text: String },
}

/// Whoever keeps what a run tells, and shows what it is doing.
///
/// Calls of one answer run in parallel, and so do their events: [`Observer::event`] may be called again before it has
/// answered. The events of one call come in order, and a message comes when everything before it is kept.
#[async_trait]
pub trait Observer: LiveOutput + Send + Sync {
    /// The answer as it is so far, for every piece that arrives. Never waits, may be ignored.
    fn snapshot(&self, message: &Message);

    /// Keeps an event.
    ///
    /// # Errors
    /// [`Halt`] when it cannot be kept: the run stops, nothing more starts, and no further event is told.
    async fn event(&self, event: AgentEvent) -> Result<(), Halt>;

    /// What people have said to this run since the last call, in order, for the model to read next. It is kept already.
    ///
    /// # Errors
    /// As [`Observer::event`].
    async fn said_meanwhile(&self) -> Result<Vec<Message>, Halt> {
        Ok(Vec::new())
    }
}

/// Why a run must not go on: what happened to what.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Halt(pub String);
