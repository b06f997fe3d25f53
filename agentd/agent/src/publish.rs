//! The one way to the observer: nothing is told after it has refused once.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use foundation::Message;
use futures_util::FutureExt as _;
use protocol::NoticeLevel;
use tokio_util::sync::CancellationToken;

use crate::event::{AgentEvent, Halt, Observer};

/// Tells the observer, and stops the run when it refuses.
pub(crate) struct Publisher {
    observer: Arc<dyn Observer>,
    halt: Mutex<Option<Halt>>,
    stop: CancellationToken,
}

/// The observer has refused; why is in the publisher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Halted;

impl Publisher {
    /// Cancels `stop` once nothing can be told any more.
    pub(crate) fn new(observer: Arc<dyn Observer>, stop: CancellationToken) -> Self {
        Self { observer, halt: Mutex::new(None), stop }
    }

    /// Comes back when the event is kept.
    pub(crate) async fn tell(&self, event: AgentEvent) -> Result<(), Halted> {
        self.ask(self.observer.event(event)).await
    }

    /// What people have said to the run.
    pub(crate) async fn said_meanwhile(&self) -> Result<Vec<Message>, Halted> {
        self.ask(self.observer.said_meanwhile()).await
    }

    async fn ask<T>(&self, asked: impl Future<Output = Result<T, Halt>>) -> Result<T, Halted> {
        if self.halt().is_some() {
            return Err(Halted);
        }
        let halt = match AssertUnwindSafe(asked).catch_unwind().await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(halt)) => halt,
            Err(panic) => Halt(format!("the observer of the run panicked: {}", panic_text(panic.as_ref()))),
        };
        self.halt.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(halt);
        self.stop.cancel();
        Err(Halted)
    }

    /// Tells a person. What cannot be told is at least logged.
    pub(crate) async fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        let text = text.into();
        tracing::warn!(%text, "notice");
        let _ = self.tell(AgentEvent::Notice { level, text }).await;
    }

    pub(crate) fn snapshot(&self, message: &Message) {
        self.observer.snapshot(message);
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.observer)
    }

    pub(crate) fn halt(&self) -> Option<Halt> {
        self.halt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
