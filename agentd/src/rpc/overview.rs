//! A subscription to the whole daemon: what concerns whoever watches all sessions, from now on.
//!
//! It is a window on a ring that all watchers share. Who falls out of it is told to list anew; nobody is waited for.

use std::collections::HashSet;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use protocol::{EventBody, NoticeLevel, SessionId};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::control::control;
use super::listener::Stop;
use super::outgoing::{Gone, Outlet};
use super::subscription::Subscribe;
use crate::session::feed::{DaemonFeed, Durable};

/// The events of all sessions, live.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) feed: DaemonFeed,
    /// Only events of these types; stream control always comes.
    pub(crate) types: Option<HashSet<String>>,
}

impl Subscribe for Overview {
    fn open(self, outlet: Outlet) -> BoxFuture<'static, ()> {
        let events = self.feed.subscribe();
        async move {
            let _gone = run(events, self.types, outlet).await;
        }
        .boxed()
    }
}

async fn run(
    mut events: broadcast::Receiver<Durable>,
    types: Option<HashSet<String>>,
    outlet: Outlet,
) -> Result<(), Gone> {
    let daemon = SessionId(uuid::Uuid::nil());
    let stop = outlet.wire.stop.clone();
    let mut announced = false;
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) if types.as_ref().is_none_or(|types| types.contains(&*event.kind)) => {
                    outlet.send(event.json).await?;
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    let text = format!("{missed} events were missed: list sessions, approvals and questions again");
                    outlet.send(control(daemon, EventBody::Notice { level: NoticeLevel::Warning, text })).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            () = stop.closed.cancelled() => return Ok(()),
            () = stop.draining.cancelled(), if !announced => {
                announced = true;
                let body = EventBody::DaemonDraining { retry_after_ms: Stop::RETRY_AFTER_MS };
                outlet.send(control(daemon, body)).await?;
            }
        }
    }
}
