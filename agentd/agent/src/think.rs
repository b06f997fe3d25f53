//! One model call: the request out, snapshots by, the answer or what is left of it back.

use std::panic::AssertUnwindSafe;

use foundation::{Message, Model, ModelError, ModelErrorKind, ModelRequest, StopReason};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::growing::Growing;
use crate::publish::{Publisher, panic_text};

/// What came of a model call. A broken-off one leaves the words that were said, if any were.
#[derive(Debug)]
pub(crate) enum Thought {
    Answer(Message),
    Interrupted(Option<Message>),
    Failed(ModelError, Option<Message>),
}

/// Asks the model. A cancel drops the request, and with it the connection.
pub(crate) async fn ask(
    model: &dyn Model,
    request: ModelRequest<'_>,
    publisher: &Publisher,
    cancel: &CancellationToken,
) -> Thought {
    let mut growing = Growing::default();
    let answer = {
        let answer = AssertUnwindSafe(read(model, request, publisher, &mut growing)).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            answer = answer => Some(answer),
        }
    };
    match answer {
        None => Thought::Interrupted(growing.broken_off(StopReason::Interrupted)),
        Some(Ok(Ok(message))) => Thought::Answer(message),
        Some(Ok(Err(error))) => Thought::Failed(error, growing.broken_off(StopReason::Error)),
        Some(Err(panic)) => {
            let message = format!("{}: its adapter panicked: {}", model.name(), panic_text(panic.as_ref()));
            let error =
                ModelError::new(ModelErrorKind::Protocol, message, "send the message again, or use another model");
            Thought::Failed(error, growing.broken_off(StopReason::Error))
        }
    }
}

async fn read(
    model: &dyn Model,
    request: ModelRequest<'_>,
    publisher: &Publisher,
    growing: &mut Growing,
) -> Result<Message, ModelError> {
    let mut stream = model.stream(request).await?;
    while let Some(message) = stream.next().await {
        let message = message?;
        if !message.streaming {
            return Ok(message.clone());
        }
        growing.follow(message);
        publisher.snapshot(message);
        // A stream that always has more must not keep the cancel from being seen.
        tokio::task::consume_budget().await;
    }
    let message = format!("{}: the answer ended before it was whole", model.name());
    Err(ModelError::new(ModelErrorKind::Incomplete, message, "send the message again"))
}

/// Why an answer that is whole must not be acted upon.
pub(crate) fn objection(answer: &Message) -> Option<ModelError> {
    let model = answer.model.as_deref().unwrap_or("the model");
    match answer.stop_reason {
        Some(StopReason::Filter) => Some(ModelError::new(
            ModelErrorKind::Filter,
            format!("{model}: the provider's filter stopped the answer"),
            "say it in other words, or use another model",
        )),
        Some(StopReason::Error | StopReason::Interrupted) => Some(ModelError::new(
            ModelErrorKind::Incomplete,
            format!("{model}: the provider broke off the answer"),
            "send the message again",
        )),
        Some(StopReason::End | StopReason::Length | StopReason::ToolUse) | None => None,
    }
}
