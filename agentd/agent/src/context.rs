//! What hooks are shown: the little that they need, never the loop itself.

use foundation::{CallId, Message, ModelLimits, SystemText, ToolSpec};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Where a run stands.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The model call that this belongs to, from 1; 0 before the first.
    pub step: u32,
    /// Whoever waits stops within a second of it. In `before_tool` and `after_tool` it is the call's own.
    pub cancel: CancellationToken,
}

/// A request before it is sent.
#[derive(Clone, Copy, Debug)]
pub struct ModelContext<'a> {
    pub system: &'a [SystemText],
    pub messages: &'a [Message],
    pub tools: &'a [ToolSpec],
    pub limits: ModelLimits,
}

/// A call whose input has passed the tool's schema.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolCall {
    pub id: CallId,
    pub name: String,
    pub input: Value,
}

impl ToolCall {
    /// Why the call, in the model's own few words; the tool's name where it gave none.
    #[must_use]
    pub fn title(&self) -> &str {
        let words = self.input.get("description").and_then(Value::as_str).map(str::trim);
        words.filter(|words| !words.is_empty()).unwrap_or(&self.name)
    }
}
