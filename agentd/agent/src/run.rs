//! The loop: step after step of think, act, observe, until an answer asks for nothing more.
//!
//! Whatever is told is kept before anything follows from it, and every phase that begins ends with its hooks.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use foundation::{
    CallId, Message, Model, ModelError, ModelRequest, StopReason, SystemText, Tool, ToolChoice, ToolSpec, Usage,
};
use protocol::NoticeLevel;
use tokio_util::sync::CancellationToken;

use crate::act::{Act, WhyNone};
use crate::context::RunContext;
use crate::event::{AgentEvent, Halt, Observer};
use crate::history;
use crate::hooks::{Draft, Hooks};
use crate::limits::{self, Limits};
use crate::middleware::{Middleware, ModelEnd, StepEnd};
use crate::publish::{Halted, Publisher};
use crate::resume::Resumption;
use crate::think::{self, Thought};
use crate::toolbox::Toolbox;

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
    /// [`RunEnd::Halted`] alone can leave calls open, since then nothing more can be kept. A `cancel` ends a model call
    /// at once, and gives tools and hooks a second to end theirs. A transcript in which calls and results do not pair is repaired for the requests, and a notice
    /// says so.
    pub async fn run(
        &self,
        transcript: Vec<Message>,
        observer: Arc<dyn Observer>,
        cancel: &CancellationToken,
    ) -> RunOutcome {
        self.resume(transcript, Resumption::default(), observer, cancel).await
    }

    /// Goes on with a run that was cut off. As [`Agent::run`], but the calls of a last answer that have no results yet
    /// are taken up: what is settled stays so, the rest is judged and run as if nothing had happened.
    pub async fn resume(
        &self,
        mut transcript: Vec<Message>,
        so_far: Resumption,
        observer: Arc<dyn Observer>,
        cancel: &CancellationToken,
    ) -> RunOutcome {
        let stop = cancel.child_token();
        let publisher = Publisher::new(observer, stop.clone());
        // Its calls have no results yet and shall not get made-up ones.
        let begun = so_far.takes_up(&transcript).then(|| transcript.pop()).flatten();
        let (transcript, repairs) = history::repair(transcript);
        let mut run = Run {
            agent: self,
            toolbox: Toolbox::new(&self.tools),
            hooks: Hooks { middleware: &self.middleware, publisher: &publisher },
            used: transcript.iter().chain(&begun).flat_map(Message::tool_uses).map(|(id, ..)| id.clone()).collect(),
            transcript,
            so_far,
            usage: Usage::default(),
            context: RunContext { step: 0, cancel: stop },
        };
        if !repairs.is_empty() {
            publisher.notice(NoticeLevel::Warning, format!("the history was repaired: {}", repairs.join("; "))).await;
        }
        let end = run.between_hooks(begun).await;
        RunOutcome { end: publisher.halt().map_or(end, RunEnd::Halted), usage: run.usage }
    }
}

struct Run<'a> {
    agent: &'a Agent,
    toolbox: Toolbox,
    hooks: Hooks<'a>,
    transcript: Vec<Message>,
    /// The ids of all calls so far: some models count from zero in every turn.
    used: HashSet<CallId>,
    so_far: Resumption,
    usage: Usage,
    context: RunContext,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Usual,
    /// The last that the limit allows: its calls are not run.
    AtLimit,
    /// Beyond the limit, without tools: sums up.
    Closing,
}

impl Run<'_> {
    async fn between_hooks(&mut self, begun: Option<Message>) -> RunEnd {
        let context = self.hooks.before_run(&self.context).await;
        let taken_up = match begun {
            Some(answer) => self.take_up(answer).await,
            None => ControlFlow::Continue(()),
        };
        let end = match taken_up {
            ControlFlow::Break(end) => end,
            ControlFlow::Continue(()) => match self.add_all(context).await {
                Ok(()) => self.steps().await,
                Err(Halted) => self.stopped(),
            },
        };
        self.hooks.after_run(&self.context, &end).await;
        end
    }

    /// Finishes the step of an answer that is kept already.
    async fn take_up(&mut self, answer: Message) -> ControlFlow<RunEnd> {
        self.context.step = self.so_far.steps;
        let max_steps = self.agent.limits.max_steps.max(1);
        let kind = match self.so_far.steps.cmp(&max_steps) {
            Ordering::Less => Step::Usual,
            Ordering::Equal => Step::AtLimit,
            Ordering::Greater => Step::Closing,
        };
        self.transcript.push(answer.clone());
        let visible = self.toolbox.specs();
        let flow = Box::pin(self.act(&answer, &visible, kind)).await;
        let end = if flow.is_break() || kind == Step::Closing { StepEnd::Last } else { StepEnd::Continues };
        self.hooks.after_step(&self.context, end).await;
        flow
    }

    async fn steps(&mut self) -> RunEnd {
        let max_steps = self.agent.limits.max_steps.max(1);
        for step in self.so_far.steps.saturating_add(1)..=max_steps {
            let kind = if step == max_steps { Step::AtLimit } else { Step::Usual };
            if let ControlFlow::Break(end) = self.step(step, kind).await {
                return end;
            }
        }
        match self.step(max_steps.saturating_add(1), Step::Closing).await {
            ControlFlow::Break(end) => end,
            ControlFlow::Continue(()) => RunEnd::Limit,
        }
    }

    async fn step(&mut self, number: u32, kind: Step) -> ControlFlow<RunEnd> {
        if self.context.cancel.is_cancelled() {
            return ControlFlow::Break(self.stopped());
        }
        self.context.step = number;
        let flow = Box::pin(self.think_and_act(kind)).await;
        let end = if flow.is_break() || kind == Step::Closing { StepEnd::Last } else { StepEnd::Continues };
        self.hooks.after_step(&self.context, end).await;
        flow
    }

    async fn think_and_act(&mut self, kind: Step) -> ControlFlow<RunEnd> {
        let mut context = self.hooks.before_step(&self.context).await;
        if kind == Step::Closing {
            context.push(limits::ask_for_closing_words(self.agent.limits.max_steps));
        }
        if self.add_all(context).await.is_err() || self.take_in_what_was_said().await.is_err() {
            return ControlFlow::Break(self.stopped());
        }
        let (thought, visible) = self.think(kind).await;
        let answer = match thought {
            Thought::Answer(answer) => answer,
            Thought::Interrupted(_) => return ControlFlow::Break(self.stopped()),
            Thought::Failed(error, _) if kind == Step::Closing => return self.close_without_words(&error).await,
            Thought::Failed(error, _) => return ControlFlow::Break(RunEnd::Failed(error)),
        };
        if self.hooks.publisher.halt().is_some() {
            return ControlFlow::Break(self.stopped());
        }
        self.act(&answer, &visible, kind).await
    }

    /// One model call between its hooks; the answer, or what is left of it, is told and kept.
    async fn think(&mut self, kind: Step) -> (Thought, Vec<ToolSpec>) {
        let kept = self.transcript.len();
        let model = self.agent.model.as_ref();
        let mut draft = Draft {
            system: self.agent.system.clone(),
            messages: &mut self.transcript,
            tools: self.toolbox.specs(),
            limits: model.limits(),
        };
        self.hooks.before_model(&self.context, &mut draft).await;
        let Draft { system, tools, .. } = draft;
        let request = ModelRequest {
            system: &system,
            messages: &self.transcript,
            tools: &tools,
            tool_choice: if kind == Step::Closing { ToolChoice::None } else { ToolChoice::Auto },
            max_output: None,
        };
        debug_assert_eq!(history::check(&self.transcript), Ok(()));
        let mut thought = think::ask(model, request, self.hooks.publisher, &self.context.cancel).await;
        self.transcript.truncate(kept);
        self.keep(&mut thought).await;
        let end = match &thought {
            Thought::Answer(answer) => ModelEnd::Answered(answer),
            Thought::Interrupted(_) => ModelEnd::Interrupted,
            Thought::Failed(error, _) => ModelEnd::Failed(error),
        };
        self.hooks.after_model(&self.context, end).await;
        (thought, tools)
    }

    async fn keep(&mut self, thought: &mut Thought) {
        let message = match thought {
            Thought::Answer(answer) => {
                history::rename_used(answer, &mut self.used);
                Some(&*answer)
            }
            Thought::Interrupted(rest) | Thought::Failed(_, rest) => rest.as_ref(),
        };
        let Some(message) = message else { return };
        if let Some(usage) = &message.usage {
            self.usage.add(usage);
        }
        if is_empty(message) {
            // Providers refuse an empty message when it comes back to them.
            self.hooks.publisher.notice(NoticeLevel::Warning, "the model gave an empty answer").await;
            return;
        }
        let message = message.clone();
        // A halt is seen by whoever goes on from here.
        let _ = self.add(message).await;
    }

    async fn act(&mut self, answer: &Message, visible: &[ToolSpec], kind: Step) -> ControlFlow<RunEnd> {
        let objection = think::objection(answer);
        let has_calls = answer.tool_uses().next().is_some();
        if has_calls {
            let why_none = match (kind, &objection) {
                (_, Some(_)) => Some(WhyNone::BrokenOff),
                (Step::Usual, None) => None,
                (Step::AtLimit, None) => Some(WhyNone::StepLimit),
                (Step::Closing, None) => Some(WhyNone::ToolsAreOff),
            };
            let act = Act {
                run: &self.context,
                hooks: self.hooks,
                toolbox: &self.toolbox,
                visible,
                parallel: self.agent.limits.parallel_tools,
                so_far: &self.so_far,
            };
            let results = act.results(answer, why_none).await;
            if self.add(Message::tool_results(results)).await.is_err() || self.context.cancel.is_cancelled() {
                return ControlFlow::Break(self.stopped());
            }
        } else if answer.stop_reason == Some(StopReason::Length) {
            let text = "the answer was cut at the model's output limit; say \"go on\" for the rest";
            self.hooks.publisher.notice(NoticeLevel::Warning, text).await;
        }
        match objection {
            Some(error) => ControlFlow::Break(RunEnd::Failed(error)),
            None if has_calls || kind == Step::Closing => ControlFlow::Continue(()),
            None => match self.take_in_what_was_said().await {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(RunEnd::Completed),
                Err(Halted) => ControlFlow::Break(self.stopped()),
            },
        }
    }

    /// Adds what people have said to this run since it was last asked for. True when there was anything.
    async fn take_in_what_was_said(&mut self) -> Result<bool, Halted> {
        let said = self.hooks.publisher.said_meanwhile().await?;
        let any = !said.is_empty();
        self.transcript.extend(said);
        Ok(any)
    }

    /// The closing call failed: the limit is said in the daemon's own words.
    async fn close_without_words(&mut self, error: &ModelError) -> ControlFlow<RunEnd> {
        self.hooks.publisher.notice(NoticeLevel::Warning, format!("no closing summary: {error}")).await;
        let message = limits::instead_of_closing_words(self.agent.limits.max_steps);
        match self.add(message).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(Halted) => ControlFlow::Break(self.stopped()),
        }
    }

    /// Tells a message, and takes it over once it is kept.
    async fn add(&mut self, message: Message) -> Result<(), Halted> {
        self.hooks.publisher.tell(AgentEvent::Message(message.clone())).await?;
        self.transcript.push(message);
        Ok(())
    }

    async fn add_all(&mut self, messages: Vec<Message>) -> Result<(), Halted> {
        for message in messages {
            self.add(message).await?;
        }
        Ok(())
    }

    /// Why the run's token is cancelled.
    fn stopped(&self) -> RunEnd {
        self.hooks.publisher.halt().map_or(RunEnd::Interrupted, RunEnd::Halted)
    }
}

fn is_empty(message: &Message) -> bool {
    message.content.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty()))
}

#[cfg(test)]
mod tests;
