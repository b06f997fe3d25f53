//! What thinks: one streaming call that lends the answer as it grows.

use async_trait::async_trait;
use protocol::Message;

use crate::error::ModelError;
use crate::tool::ToolSpec;

/// A model that can be called. Providers implement it; the loop never asks which one it has.
#[async_trait]
pub trait Model: Send + Sync + std::fmt::Debug {
    /// `provider/model`, as it stands in the settings and on each message it wrote.
    fn name(&self) -> &str;

    /// What it can hold.
    fn limits(&self) -> ModelLimits;

    /// Sends one request and returns the answer as a stream, once the provider has accepted it.
    ///
    /// Dropping the future or the stream ends the request; nothing of it goes on.
    ///
    /// # Errors
    /// Everything that the provider refuses or the network spoils, told apart by [`ModelError::kind`].
    async fn stream(&self, request: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError>;
}

/// An answer as it grows.
#[async_trait]
pub trait ModelStream: Send {
    /// Waits for more, then lends the **whole message so far**: accumulated in place, never copied.
    ///
    /// Every snapshot has the same id, `streaming: true` and at least the text of the one before it. The last is the
    /// answer itself: `streaming: false`, with its stop reason and usage, and every call's input parsed. After it
    /// comes `None`. A call whose arguments are not JSON keeps them in `raw_input`, and nobody runs it.
    ///
    /// # Errors
    /// An answer that ends without the provider's end marker is [`ModelErrorKind::Incomplete`]: it is never taken for
    /// whole. After an error the stream is over.
    ///
    /// [`ModelErrorKind::Incomplete`]: crate::ModelErrorKind::Incomplete
    async fn next(&mut self) -> Option<Result<&Message, ModelError>>;
}

/// Tokens that a model can hold and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelLimits {
    pub context_window: u64,
    pub max_output: Option<u64>,
}

/// One request. Everything is lent: a transcript is never copied to be sent.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// Stable text first, so that a provider's prompt cache can serve it.
    pub system: &'a [SystemText],
    pub messages: &'a [Message],
    /// In an order that stays the same over a session, for the same reason.
    pub tools: &'a [ToolSpec],
    pub tool_choice: ToolChoice,
    /// The model's own limit if absent.
    pub max_output: Option<u64>,
}

/// One piece of the system prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemText {
    pub text: String,
    /// False for what changes from turn to turn (date, branch): it stands behind the cached part.
    pub stable: bool,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// The tools stay in the request, so that the cached prefix stays the same, but must not be called.
    None,
}
