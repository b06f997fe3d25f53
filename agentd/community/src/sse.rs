//! Bytes in, events out: server-sent events with a limit on one event's size and on silence.
//!
//! How the network cuts the bytes makes no difference to the events.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use sse_stream::SseByteStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::config::Timeouts;

/// The longest event. A provider's largest is far below; what is above is not an event stream.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// What an HTTP body gives.
pub(crate) type ByteStream = BoxStream<'static, Result<Bytes, Fault>>;

/// Why no more events can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("nothing came for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("an event is longer than {} MiB", MAX_EVENT_BYTES >> 20)]
    TooLong,
    #[error("{0}")]
    Malformed(String),
}

/// The data of each event, in order. Comments and events without data are left out.
pub(crate) struct Events {
    events: SseByteStream<Watched>,
    begun: Arc<AtomicBool>,
}

impl Events {
    pub(crate) fn new(bytes: ByteStream, timeouts: Timeouts) -> Self {
        let begun = Arc::new(AtomicBool::new(false));
        let watched = Watched {
            bytes,
            begun: Arc::clone(&begun),
            timeouts,
            last: Instant::now(),
            alarm: Box::pin(sleep(timeouts.first_byte)),
            size: EventSize::default(),
        };
        Self { events: SseByteStream::new(watched), begun }
    }

    /// From now on silence is measured by the shorter limit.
    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// The next event's data. Safe to drop while it waits.
    pub(crate) async fn next(&mut self) -> Option<Result<String, Fault>> {
        loop {
            match self.events.next().await? {
                Ok(event) => match event.data {
                    Some(data) => return Some(Ok(data)),
                    None => continue,
                },
                Err(sse_stream::Error::Body(error)) => return Some(Err(own(error))),
                Err(error) => return Some(Err(Fault::Malformed(error.to_string()))),
            }
        }
    }
}

fn own(error: Box<dyn StdError + Send + Sync>) -> Fault {
    match error.downcast::<Fault>() {
        Ok(fault) => *fault,
        Err(other) => Fault::Broken(other.to_string()),
    }
}

/// A byte stream that ends with a fault when it stays silent or an event grows without end.
struct Watched {
    bytes: ByteStream,
    begun: Arc<AtomicBool>,
    timeouts: Timeouts,
    /// When bytes came last.
    last: Instant,
    alarm: Pin<Box<Sleep>>,
    size: EventSize,
}

impl Watched {
    fn patience(&self) -> Duration {
        if self.begun.load(Ordering::Relaxed) { self.timeouts.idle } else { self.timeouts.first_byte }
    }
}

impl Stream for Watched {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        match this.bytes.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                this.last = Instant::now();
                this.size.add(&bytes);
                let fits = this.size.longest <= MAX_EVENT_BYTES;
                Poll::Ready(Some(if fits { Ok(bytes) } else { Err(Fault::TooLong) }))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => {
                let patience = this.patience();
                if this.alarm.deadline() != this.last + patience {
                    this.alarm.as_mut().reset(this.last + patience);
                }
                this.alarm.as_mut().poll(cx).map(|()| Some(Err(Fault::Silent(patience))))
            }
        }
    }
}

/// Counts the bytes since the last blank line; the parser itself knows no limit.
#[derive(Default)]
struct EventSize {
    event: usize,
    line: usize,
    after_cr: bool,
    /// The size of the event being read, or of the longest that ended in the piece added last.
    longest: usize,
}

impl EventSize {
    fn add(&mut self, bytes: &[u8]) {
        self.longest = 0;
        for &byte in bytes {
            let ends_crlf = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            if ends_crlf {
                continue;
            }
            self.event += 1;
            if byte != b'\n' && byte != b'\r' {
                self.line += 1;
            } else if self.line > 0 {
                self.line = 0;
            } else {
                self.longest = self.longest.max(self.event);
                self.event = 0;
            }
        }
        self.longest = self.longest.max(self.event);
    }
}

#[cfg(test)]
mod tests;
