//! A stage for tests: a model that follows a script, tools that do one thing, and one log of all that happens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use foundation::{
    Access, CallId, ErrorCode, LiveOutput, Message, Model, ModelError, ModelErrorKind, ModelLimits, ModelRequest,
    ModelStream, Part, ResultPolicy, Role, StopReason, SystemText, Tool, ToolChoice, ToolClass, ToolContext, ToolError,
    ToolOutcome, ToolOutput, ToolSpec, Usage,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{Agent, AgentEvent, Halt, Limits, Middleware, Observer, Resumption, RunEnd, RunOutcome, history};

/// One piece of a scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Bit {
    Text(&'static str),
    Think(&'static str),
    Call(&'static str, &'static str, Value),
    /// A call whose arguments are not JSON.
    Raw(&'static str, &'static str, &'static str),
    Stop(StopReason),
    /// Says nothing more, for ever.
    Stall,
    Fail(ModelErrorKind),
    Panic,
    /// Ends without its end.
    Vanish,
}

/// What happened, in order. A line can be a cue: to cancel the run, or to refuse the event.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    pub(crate) cancel: CancellationToken,
    pub(crate) cancel_at: Option<&'static str>,
    pub(crate) refuse_at: Option<&'static str>,
}

impl Log {
    /// True when the line is one to refuse.
    pub(crate) fn push(&self, line: impl Into<String>) -> bool {
        let line = line.into();
        let is_cue = |cue: Option<&str>| cue.is_some_and(|cue| line.starts_with(cue));
        if is_cue(self.cancel_at) {
            self.cancel.cancel();
        }
        let is_refused = is_cue(self.refuse_at);
        self.lines.lock().unwrap().push(line);
        is_refused
    }
}

/// A run before it begins.
pub(crate) struct Stage {
    pub(crate) log: Log,
    pub(crate) script: Vec<Vec<Bit>>,
    pub(crate) history: Vec<Message>,
    /// How far the run had come when it was cut off; a default one begins anew.
    pub(crate) so_far: Resumption,
    /// What people say to the run, once.
    pub(crate) said: Vec<Message>,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) more_tools: Vec<Arc<dyn Tool>>,
    pub(crate) limits: Limits,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) outcome: RunOutcome,
    pub(crate) lines: Vec<String>,
    /// What a session would have kept.
    pub(crate) transcript: Vec<Message>,
    pub(crate) requests: Vec<Request>,
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<&'static str>,
    pub(crate) system: Vec<SystemText>,
    pub(crate) tool_choice: ToolChoice,
}

impl Stage {
    pub(crate) fn new(script: Vec<Vec<Bit>>) -> Self {
        Self {
            log: Log::default(),
            script,
            history: vec![Message::user_text("hi")],
            so_far: Resumption::default(),
            said: Vec::new(),
            middleware: Vec::new(),
            more_tools: Vec::new(),
            limits: Limits::default(),
        }
    }

    pub(crate) fn with(mut self, layer: impl Middleware + 'static) -> Self {
        self.middleware.push(Arc::new(layer));
        self
    }

    pub(crate) fn cancel_at(mut self, cue: &'static str) -> Self {
        self.log.cancel_at = Some(cue);
        self
    }

    /// Runs to the end, and checks what is true of every run.
    pub(crate) async fn run(self) -> Ran {
        let model = Arc::new(Script { turns: Mutex::new(self.script.into()), requests: Mutex::default() });
        let names = ["echo", "sleep", "stubborn", "panics", "fails", "write", "read"];
        let doing = |name| Arc::new(Doing { spec: spec(name), log: self.log.clone() }) as Arc<dyn Tool>;
        let agent = Agent {
            model: Arc::<Script>::clone(&model),
            system: vec![SystemText { text: "be good".into(), stable: true }],
            tools: names.into_iter().map(doing).chain(self.more_tools).collect(),
            middleware: self.middleware,
            limits: self.limits,
        };
        let keeper = Arc::new(Keeper {
            log: self.log.clone(),
            kept: Mutex::new(self.history.clone()),
            said: Mutex::new(self.said),
        });
        let outcome = agent.resume(self.history, self.so_far, Arc::<Keeper>::clone(&keeper), &self.log.cancel).await;
        let transcript = keeper.kept.lock().unwrap().clone();
        let requests = model.requests.lock().unwrap().clone();
        for request in &requests {
            assert_eq!(history::check(&request.messages), Ok(()));
        }
        if !matches!(outcome.end, RunEnd::Halted(_)) {
            assert_eq!(history::check(&history::repair(transcript.clone()).0), Ok(()));
        }
        let lines = self.log.lines.lock().unwrap().clone();
        Ran { outcome, lines, transcript, requests }
    }
}

impl Ran {
    /// The lines that begin with one of `kinds`.
    pub(crate) fn only(&self, kinds: &[&str]) -> Vec<&str> {
        let is_wanted = |line: &&str| kinds.iter().any(|kind| line.starts_with(kind));
        self.lines.iter().map(String::as_str).filter(is_wanted).collect()
    }

    /// Id, code and text of each result in the transcript.
    pub(crate) fn results(&self) -> Vec<(String, Option<String>, String)> {
        let parts = self.transcript.iter().flat_map(|message| &message.content);
        parts
            .filter_map(|part| match part {
                Part::ToolResult { tool_use_id, content, code, .. } => {
                    Some((tool_use_id.to_string(), code.clone(), content.clone()))
                }
                _ => None,
            })
            .collect()
    }

    /// Each result as `id` or `id CODE`.
    pub(crate) fn codes(&self) -> Vec<String> {
        let results = self.results().into_iter();
        results.map(|(id, code, _)| code.map_or(id.clone(), |code| format!("{id} {code}"))).collect()
    }
}

#[derive(Debug)]
struct Script {
    turns: Mutex<VecDeque<Vec<Bit>>>,
    requests: Mutex<Vec<Request>>,
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &'static str {
        "test/script"
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits { context_window: 1000, max_output: None }
    }

    async fn stream(&self, request: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError> {
        self.requests.lock().unwrap().push(Request {
            messages: request.messages.to_vec(),
            tools: request.tools.iter().map(|spec| spec.name).collect(),
            system: request.system.to_vec(),
            tool_choice: request.tool_choice,
        });
        let bits = self.turns.lock().unwrap().pop_front().expect("the script has an answer for each request");
        Ok(Box::new(Play { bits: bits.into(), message: Message::draft("test/script"), stop: None }))
    }
}

struct Play {
    bits: VecDeque<Bit>,
    message: Message,
    stop: Option<StopReason>,
}

#[async_trait]
impl ModelStream for Play {
    async fn next(&mut self) -> Option<Result<&Message, ModelError>> {
        let call = |id: &str, name: &str, input, raw_input| Part::ToolUse {
            id: CallId(id.into()),
            name: name.into(),
            input,
            raw_input,
        };
        match self.bits.pop_front() {
            Some(Bit::Text(more)) => match self.message.content.last_mut() {
                Some(Part::Text { text }) => text.push_str(more),
                _ => self.message.content.push(Part::Text { text: more.into() }),
            },
            Some(Bit::Think(text)) => {
                self.message.content.push(Part::Thinking { text: text.into(), signature: None, redacted: None });
            }
            Some(Bit::Call(id, name, input)) => self.message.content.push(call(id, name, input, None)),
            Some(Bit::Raw(id, name, raw)) => self.message.content.push(call(id, name, json!({}), Some(raw.into()))),
            Some(Bit::Stop(stop)) => self.stop = Some(stop),
            Some(Bit::Stall) => std::future::pending().await,
            Some(Bit::Fail(kind)) => return Some(Err(ModelError::new(kind, "it broke", "try again"))),
            Some(Bit::Panic) => panic!("the adapter tripped"),
            Some(Bit::Vanish) => return None,
            None => {
                self.message.streaming = false;
                self.message.usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
                self.message.stop_reason = Some(self.stop.unwrap_or(StopReason::End));
            }
        }
        Some(Ok(&self.message))
    }
}

/// Keeps messages as a session would.
struct Keeper {
    log: Log,
    kept: Mutex<Vec<Message>>,
    said: Mutex<Vec<Message>>,
}

impl LiveOutput for Keeper {
    fn append(&self, call: &CallId, bytes: &[u8]) {
        self.log.push(format!("output {call} {}", String::from_utf8_lossy(bytes)));
    }
}

#[async_trait]
impl Observer for Keeper {
    fn snapshot(&self, message: &Message) {
        assert!(message.streaming);
        self.log.push(format!("snapshot {}", message.text()));
    }

    async fn event(&self, event: AgentEvent) -> Result<(), Halt> {
        let line = match &event {
            AgentEvent::Message(message) => format!("message {:?} {}", message.role, message.text()),
            AgentEvent::ToolStarted { call, .. } => format!("started {call}"),
            AgentEvent::ToolFinished { call, code, .. } => {
                format!("finished {call}{}", code.map(|code| format!(" {code}")).unwrap_or_default())
            }
            AgentEvent::Notice { text, .. } => format!("notice {text}"),
        };
        if self.log.push(line) {
            return Err(Halt("the disk is full".into()));
        }
        if let AgentEvent::Message(message) = event {
            assert!(!message.streaming && message.role != Role::System);
            self.kept.lock().unwrap().push(message);
        }
        Ok(())
    }

    /// What people say comes once the run has begun to answer.
    async fn said_meanwhile(&self) -> Result<Vec<Message>, Halt> {
        let mut kept = self.kept.lock().unwrap();
        if !kept.iter().any(|message| message.role == Role::Assistant) {
            return Ok(Vec::new());
        }
        let said = std::mem::take(&mut *self.said.lock().unwrap());
        kept.extend(said.clone());
        Ok(said)
    }
}

/// A tool that does what its name says.
#[derive(Debug)]
struct Doing {
    spec: ToolSpec,
    log: Log,
}

fn spec(name: &'static str) -> ToolSpec {
    let class = match name {
        "read" => ToolClass::Read,
        "write" => ToolClass::File,
        _ => ToolClass::Effect,
    };
    let parameters = json!({
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "path": {"type": "string"},
            "ms": {"type": "integer"},
            "deaf": {"type": "boolean"},
        },
        "additionalProperties": false,
    });
    ToolSpec { name, description: "", parameters, class, policy: ResultPolicy::HeadAndTail { max_bytes: 4000 } }
}

#[async_trait]
impl Tool for Doing {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, input: &Value) -> Access {
        let paths = input["path"].as_str().map(Into::into).into_iter().collect();
        match self.spec.name {
            "write" => Access::Write(paths),
            "read" => Access::Read(paths),
            name => Access::Run { command: name.into(), cwd: "/".into() },
        }
    }

    async fn invoke(&self, input: Value, context: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let call = context.call;
        self.log.push(format!("begin {call}"));
        context.live.append(call, b"working");
        let time = Duration::from_millis(input["ms"].as_u64().unwrap_or(0));
        let outcome = match self.spec.name {
            "panics" => panic!("the tool tripped"),
            "fails" => Err(ToolError::new(ErrorCode::CommandFailed, "exit code 1", "Read the output.")),
            // As a thread that has begun to write: the token is of no use to it.
            _ if self.spec.name == "stubborn" || input["deaf"] == true => {
                let hour = Duration::from_secs(3600);
                tokio::time::sleep(if time.is_zero() { hour } else { time }).await;
                Ok(ToolOutput::summary("at last"))
            }
            _ => tokio::select! {
                () = cancel.cancelled() => Err(ToolError::new(ErrorCode::Cancelled, "stopped half-way", "Look at it.")),
                () = tokio::time::sleep(time) => Ok(ToolOutput::summary(format!("{} {input}", self.spec.name))),
            },
        };
        self.log.push(format!("end {call}"));
        outcome
    }
}
