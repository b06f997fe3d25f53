//! An answer over HTTP: events in, the whole message so far out.
//!
//! Only a decoder knows a wire format. Here is what all have in common: an end without the end marker is never taken
//! for whole, and silence ends the wait.

use async_trait::async_trait;
use foundation::{Message, ModelError, ModelErrorKind, ModelStream, StopReason};
use tokio::time::{Instant, timeout_at};

use crate::config::Timeouts;
use crate::draft::Draft;
use crate::sse::{ByteStream, Events, Fault};

/// What one event meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Heard {
    /// A sign of life, a count, something unknown.
    Nothing,
    /// The answer grew.
    More,
    /// The end marker.
    End,
}

/// One wire format's stream of events, read into a draft.
pub(crate) trait Decoder: Send {
    /// # Errors
    /// What the provider reports inside the stream, and what its format does not allow.
    fn hear(&mut self, data: &str, draft: &mut Draft) -> Result<Heard, ModelError>;

    /// Whether nothing is missing if no more events come.
    fn is_whole(&self) -> bool;

    /// Last additions to an answer that is whole.
    fn complete(&mut self, _draft: &mut Draft) {}

    /// Why the model stopped, as far as the provider has said.
    fn stop(&self) -> StopReason;
}

/// A provider's answer on its way.
pub(crate) struct Answer<D> {
    provider: String,
    events: Events,
    decoder: D,
    draft: Draft,
    timeouts: Timeouts,
    last_progress: Instant,
    over: bool,
}

impl<D: Decoder> Answer<D> {
    /// `asked` is when the request was sent.
    pub(crate) fn new(response: Response, decoder: D, draft: Draft) -> Self {
        let Response { provider, bytes, timeouts, asked } = response;
        let events = Events::new(bytes, timeouts);
        Self { provider, events, decoder, draft, timeouts, last_progress: asked, over: false }
    }

    /// Reads until the answer has grown.
    async fn advance(&mut self) -> Result<Heard, ModelError> {
        loop {
            let deadline = self.last_progress + self.timeouts.first_byte;
            let event = match timeout_at(deadline, self.events.next()).await {
                Ok(event) => event,
                Err(_) => Some(Err(Fault::Silent(self.timeouts.first_byte))),
            };
            match event {
                Some(Ok(data)) => match self.decoder.hear(&data, &mut self.draft)? {
                    Heard::Nothing => {}
                    heard => {
                        self.last_progress = Instant::now();
                        self.events.begin();
                        return Ok(heard);
                    }
                },
                _ if self.decoder.is_whole() => return Ok(Heard::End),
                None => return Err(self.incomplete()),
                Some(Err(fault)) => return Err(self.fault(&fault)),
            }
        }
    }

    fn incomplete(&self) -> ModelError {
        let message = format!("{}: the answer ended without its end marker", self.provider);
        ModelError::new(ModelErrorKind::Incomplete, message, "what came so far is not whole; try again")
    }

    fn fault(&self, fault: &Fault) -> ModelError {
        let (kind, hint) = match fault {
            Fault::Broken(_) => (ModelErrorKind::Network, "try again"),
            Fault::Silent(_) => {
                (ModelErrorKind::Network, "try again, or raise `timeouts` of this provider in the settings")
            }
            Fault::TooLong | Fault::Malformed(_) => {
                (ModelErrorKind::Protocol, "check that the base URL is one of an API that streams this format")
            }
        };
        ModelError::new(kind, format!("{}: in the middle of the answer: {fault}", self.provider), hint)
    }
}

/// An accepted request.
pub(crate) struct Response {
    pub(crate) provider: String,
    pub(crate) bytes: ByteStream,
    pub(crate) timeouts: Timeouts,
    pub(crate) asked: Instant,
}

#[async_trait]
impl<D: Decoder> ModelStream for Answer<D> {
    async fn next(&mut self) -> Option<Result<&Message, ModelError>> {
        if self.over {
            return None;
        }
        match self.advance().await {
            Ok(Heard::End) => {
                self.over = true;
                self.decoder.complete(&mut self.draft);
                self.draft.finish(self.decoder.stop());
            }
            Ok(Heard::More | Heard::Nothing) => {}
            Err(error) => {
                self.over = true;
                return Some(Err(error));
            }
        }
        Some(Ok(self.draft.message()))
    }
}
