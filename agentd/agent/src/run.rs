//! (being built)
use std::sync::Arc;

use foundation::{Message, Model, ModelError, SystemText, Tool, Usage};
use tokio_util::sync::CancellationToken;

use crate::event::{Halt, Observer};
use crate::limits::Limits;
use crate::middleware::Middleware;

/// Everything that a run needs and that stays the same while it goes on.
#[derive(Clone, Debug)]
pub struct Agent {
    pub model: Arc<dyn Model>,
    pub system: Vec<SystemText>,
    /// In the order in which the model is told of them. Of two with the same name the first counts.
    pub tools: Vec<Arc<dyn Tool>>,
    pub middleware: Vec<Arc<dyn Middleware>>,
    pub limits: Limits,
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunOutcome {
    pub end: RunEnd,
    /// Of all its answers.
    pub usage: Usage,
}

/// Why a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum RunEnd {
    /// With an answer that asks for nothing more.
    Completed,
    Interrupted,
    /// The steps were used up; the last message says what is done and what is left.
    Limit,
    Failed(ModelError),
    Halted(Halt),
}

impl Agent {
    /// Answers the transcript's last message, with as many model calls and tools as it takes.
    ///
    /// Every call that an answer asks for has exactly one result right behind that answer, however the run ends;
    /// [`RunEnd::Halted`] alone can leave calls open, since then nothing more can be kept. Returns within two seconds
    /// of `cancel`.
    pub async fn run(
        &self,
        transcript: Vec<Message>,
        observer: Arc<dyn Observer>,
        cancel: &CancellationToken,
    ) -> RunOutcome {
        drop((transcript, observer, cancel));
        RunOutcome { end: RunEnd::Completed, usage: Usage::default() }
    }
}
