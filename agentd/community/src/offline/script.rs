//! A scenario from a JSON file: what a model would say, played without one.
//!
//! ```json
//! {
//!   "loop": false,
//!   "steps": [
//!     [{"text": "I will "}, {"text": "look."}, {"toolCalls": [{"name": "read", "input": {"path": "a.txt"}}]}],
//!     [{"delayMs": 50}, {"thinking": "So …"}, {"text": "Done."}, {"usage": {"inputTokens": 5, "outputTokens": 2}}]
//!   ]
//! }
//! ```
//!
//! Each step is the answer to one model call. The step played is the number of answers that the transcript already
//! holds, so a script has no state; with `"loop": true` the last step answers all further calls. A step is a list of
//! events in time order, each an object with one of these fields:
//!
//! - `text`, `thinking`: one chunk.
//! - `repeat`: `{"text", "count", "delayMs"?}`, that many chunks.
//! - `toolCalls`: `[{"id"?, "name", "input" | "rawInput"}]`; `rawInput` is sent as it is, JSON or not.
//! - `delayMs`: a pause. `stallMs`: a pause after which the connection counts as dead.
//! - `usage`: the token counts of the answer, in the wire's field names.
//! - `error`: `{"message", "status"? | "kind"?, "retryAfterSecs"?}`; as a step's first event it refuses the request.
//! - `stop`: `end`, `length`, `filter`. `cut`: true ends the stream without its end marker.

use std::path::Path;
use std::time::Duration;

use foundation::{ModelError, ModelErrorKind, ModelRequest, Role, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::Action;
use crate::failure::classify;

/// More chunks than this are a slip of the pen.
const MAX_REPEAT: usize = 1_000_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Script {
    #[serde(default)]
    r#loop: bool,
    steps: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum Event {
    Text(String),
    Thinking(String),
    Repeat(Repeat),
    ToolCalls(Vec<Call>),
    DelayMs(u64),
    StallMs(u64),
    Usage(Usage),
    Error(Failure),
    Stop(StopReason),
    Cut(bool),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Repeat {
    text: String,
    count: usize,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    name: String,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    raw_input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Failure {
    message: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    retry_after_secs: Option<f64>,
}

/// What the script in `file` says to this request.
pub(super) async fn answer(file: &Path, request: &ModelRequest<'_>) -> Result<Vec<Action>, ModelError> {
    let text = tokio::fs::read_to_string(file).await.map_err(|error| wrong(file, &error.to_string()))?;
    let script = parse(&text).map_err(|fact| wrong(file, &fact))?;
    let answers = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
    let steps = script.steps.len();
    let step = if script.r#loop { answers.min(steps - 1) } else { answers };
    script.steps.into_iter().nth(step).ok_or_else(|| {
        wrong(
            file,
            &format!("it has {steps} steps and the transcript asks for step {}; add one, or \"loop\": true", step + 1),
        )
    })
}

fn wrong(file: &Path, fact: &str) -> ModelError {
    let message = format!("offline: script {}: {fact}", file.display());
    ModelError::new(ModelErrorKind::BadRequest, message, "correct the script, then try again")
}

struct Steps {
    r#loop: bool,
    steps: Vec<Vec<Action>>,
}

/// Reads and checks the whole script, so that a slip in a late step shows at once.
fn parse(text: &str) -> Result<Steps, String> {
    let script: Script = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if script.steps.is_empty() {
        return Err("`steps` is empty".into());
    }
    let mut steps = Vec::new();
    for (step, events) in script.steps.into_iter().enumerate() {
        let mut actions = Vec::new();
        for (number, event) in events.into_iter().enumerate() {
            serde_json::from_value(event)
                .map_err(|error| error.to_string())
                .and_then(|event| act(event, &mut actions))
                .map_err(|fact| format!("step {}, event {}: {fact}", step + 1, number + 1))?;
        }
        steps.push(actions);
    }
    Ok(Steps { r#loop: script.r#loop, steps })
}

fn act(event: Event, actions: &mut Vec<Action>) -> Result<(), String> {
    let wait = |milliseconds| Action::Wait(Duration::from_millis(milliseconds));
    match event {
        Event::Text(text) => actions.push(Action::Say(text)),
        Event::Thinking(text) => actions.push(Action::Think(text)),
        Event::Repeat(Repeat { count, .. }) if count > MAX_REPEAT => {
            return Err(format!("`count` {count} is over {MAX_REPEAT}"));
        }
        Event::Repeat(Repeat { text, count, delay_ms }) => {
            for _ in 0..count {
                actions.extend((delay_ms > 0).then(|| wait(delay_ms)));
                actions.push(Action::Say(text.clone()));
            }
        }
        Event::ToolCalls(calls) => {
            for Call { id, name, input, raw_input } in calls {
                let arguments = match (input, raw_input) {
                    (Some(_), Some(_)) => return Err(format!("call `{name}` has both `input` and `rawInput`")),
                    (Some(input), None) => input.to_string(),
                    (None, raw) => raw.unwrap_or_default(),
                };
                actions.push(Action::Call { id, name, arguments });
            }
        }
        Event::DelayMs(time) => actions.push(wait(time)),
        Event::StallMs(time) => actions.push(Action::Stall(Duration::from_millis(time))),
        Event::Usage(usage) => actions.push(Action::Count(usage)),
        Event::Error(failure) => actions.push(Action::Fail(fail(failure)?)),
        Event::Stop(reason) => actions.push(Action::Stop(reason)),
        Event::Cut(cut) => actions.extend(cut.then_some(Action::Cut)),
    }
    Ok(())
}

fn fail(failure: Failure) -> Result<ModelError, String> {
    use ModelErrorKind as Kind;
    const KINDS: [Kind; 11] = [
        Kind::Auth,
        Kind::Quota,
        Kind::RateLimit,
        Kind::Overloaded,
        Kind::ContextTooLarge,
        Kind::Filter,
        Kind::BadRequest,
        Kind::Network,
        Kind::Server,
        Kind::Incomplete,
        Kind::Protocol,
    ];
    let Failure { message, status, kind, retry_after_secs } = failure;
    let kind = match kind {
        None => classify(status, "", &message.to_lowercase()),
        Some(name) => KINDS
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .ok_or_else(|| format!("no kind `{name}`; there are {}", KINDS.map(Kind::as_str).join(", ")))?,
    };
    let status = status.map(|status| format!("HTTP {status}: ")).unwrap_or_default();
    let mut error = ModelError::new(kind, format!("offline: {status}{message}"), "the script says so");
    error.retry_after = retry_after_secs.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, says: &str) {
        let fact = parse(script).map(|_| "fine".to_owned()).unwrap_or_else(|fact| fact);
        assert!(fact.contains(says), "{script}: {fact}");
    }

    #[test]
    fn a_slip_is_named_with_its_step() {
        check(r#"{"steps": [[{"text": "a"}]]}"#, "fine");
        check(r#"{"steps": []}"#, "`steps` is empty");
        check(r#"{"steps": [[]], "lop": true}"#, "unknown field `lop`");
        check("{", "line 1");
        check(r#"{"steps": [[{"text": "a"}], [{"txt": "b"}]]}"#, "step 2, event 1: unknown variant `txt`");
        check(r#"{"steps": [[{"text": "a", "stop": "end"}]]}"#, "step 1, event 1");
        check(r#"{"steps": [[{"toolCalls": [{"input": {}}]}]]}"#, "missing field `name`");
        check(r#"{"steps": [[{"toolCalls": [{"name": "a", "input": {}, "rawInput": ""}]}]]}"#, "both");
        check(r#"{"steps": [[{"error": {"message": "m", "kind": "bad"}}]]}"#, "no kind `bad`; there are auth");
        check(r#"{"steps": [[{"repeat": {"text": "", "count": 2000000}}]]}"#, "over 1000000");
    }

    #[test]
    fn an_error_is_told_by_status_or_kind() {
        let fail = |failure| fail(serde_json::from_value(failure).unwrap()).unwrap();
        let error = fail(serde_json::json!({"message": "slow", "status": 429, "retryAfterSecs": 3}));
        assert_eq!((error.kind, error.retry_after), (ModelErrorKind::RateLimit, Some(Duration::from_secs(3))));
        assert_eq!(error.message, "offline: HTTP 429: slow");
        let error = fail(serde_json::json!({"message": "m", "kind": "incomplete_stream"}));
        assert_eq!(error.kind, ModelErrorKind::Incomplete);
    }
}
