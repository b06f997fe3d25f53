//! One line in, at most one line out: finds the method in jsonrpsee's table and runs it.
//!
//! Whatever a handler does, also panic, a request gets exactly one answer and a notification none.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use foundation::failpoint;
use futures_util::FutureExt;
use jsonrpsee::core::traits::IdProvider;
use jsonrpsee::types::{Id, Params, SubscriptionId};
use jsonrpsee::{
    BoundedSubscriptions, ConnectionId, Extensions, MethodCallback, MethodResponse, MethodSink, Methods,
    SubscriptionState,
};
use protocol::RpcError;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::reply::{at_the_border, error_response, internal_error, invalid_request, method_not_found, overloaded};
use super::request::{Call, Entry, Incoming, Invalid, RequestId, read};

/// The most subscriptions of one connection.
pub(crate) const MAX_SUBSCRIPTIONS: u32 = 64;

/// The methods as one connection calls them.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) methods: Methods,
    pub(crate) connection: ConnectionId,
    /// Where jsonrpsee puts the answer to a subscription, ahead of its first event.
    pub(crate) sink: MethodSink,
    pub(crate) subscriptions: BoundedSubscriptions,
    pub(crate) ids: SubscriptionIds,
    pub(crate) extensions: Extensions,
}

/// Short names, unique in their connection, which is all they are used in.
#[derive(Default, Debug)]
pub(crate) struct SubscriptionIds(AtomicU64);

impl IdProvider for SubscriptionIds {
    fn next_id(&self) -> SubscriptionId<'static> {
        SubscriptionId::Str(format!("s{}", self.0.fetch_add(1, Ordering::Relaxed) + 1).into())
    }
}

/// Whether a call stands alone: the answer to a subscription cannot be part of a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Alone,
    Batch,
}

impl Dispatch {
    /// The answer to a line, or `None` when nothing is to be said.
    pub(crate) async fn answer(&self, line: &[u8]) -> Option<Box<RawValue>> {
        match read(line) {
            Incoming::One(entry) => self.entry(entry, Place::Alone).await,
            Incoming::Batch(entries) => {
                let mut answers = Vec::new();
                // One after the other: a later entry may need what an earlier one has done.
                for entry in entries {
                    answers.extend(self.entry(entry, Place::Batch).await);
                }
                join(&answers)
            }
        }
    }

    /// The answer to a line that is not looked into because there is no room for it.
    pub(crate) fn refuse(line: &[u8], error: &RpcError) -> Option<Box<RawValue>> {
        let refuse = |entry: Entry<'_>| match entry {
            Ok(call) => call.id.map(|id| id.stamp(error_response(id.plain(), error))),
            Err(invalid) => Some(invalid.answer()),
        };
        match read(line) {
            Incoming::One(entry) => refuse(entry),
            Incoming::Batch(entries) => join(&entries.into_iter().filter_map(refuse).collect::<Vec<_>>()),
        }
    }

    async fn entry(&self, entry: Entry<'_>, place: Place) -> Option<Box<RawValue>> {
        let call = match entry {
            Ok(call) => call,
            Err(invalid) => return Some(invalid.answer()),
        };
        let id = call.id.clone();
        let plain = id.as_ref().map_or(Id::Null, RequestId::plain);
        let answer = AssertUnwindSafe(self.call(&call, place)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(method = &*call.method, "handler panicked");
            Err(internal_error())
        });
        failpoint::hit_each("reply.before", [&*call.method]);
        let id = id?;
        match answer {
            Ok(response) if response.is_subscription() => None, // jsonrpsee has already put it into the queue
            Ok(response) => Some(id.stamp(at_the_border(response, plain))),
            Err(error) => Some(id.stamp(error_response(plain, &error))),
        }
    }

    async fn call(&self, call: &Call<'_>, place: Place) -> Result<MethodResponse, RpcError> {
        let id = call.id.as_ref().map_or(Id::Null, RequestId::plain);
        let params = Params::new(call.params.map(RawValue::get));
        let extensions = self.extensions.clone();
        let callback = self.methods.method(&call.method).ok_or_else(|| method_not_found(&call.method))?;
        Ok(match callback {
            MethodCallback::Sync(run) => run(id, params, usize::MAX, extensions),
            MethodCallback::Async(run) => run(id, params.into_owned(), self.connection, usize::MAX, extensions).await,
            MethodCallback::Unsubscription(run) => {
                let params = subscription_of(call.params)?;
                run(id, Params::new(Some(&params)), self.connection, usize::MAX, extensions)
            }
            MethodCallback::Subscription(run) => {
                if place == Place::Batch || !matches!(call.id, Some(RequestId::Plain(_))) {
                    return Err(invalid_request(
                        "subscribe in a message of its own, with a string or a whole number as its id",
                    ));
                }
                let permit = self
                    .subscriptions
                    .acquire()
                    .ok_or_else(|| overloaded("subscriptions of one connection", self.subscriptions.max()))?;
                let state =
                    SubscriptionState { conn_id: self.connection, id_provider: &self.ids, subscription_permit: permit };
                run(id, params, self.sink.clone(), state, extensions).await
            }
        })
    }
}

impl Invalid {
    fn answer(&self) -> Box<RawValue> {
        self.id.stamp(error_response(self.id.plain(), &self.error))
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    subscription: &'a RawValue,
}

/// `[id]`, which is what jsonrpsee reads; a client may name it.
fn subscription_of(params: Option<&RawValue>) -> Result<String, RpcError> {
    let text = params.map_or("[]", RawValue::get);
    if text.starts_with('[') {
        return Ok(text.to_owned());
    }
    let named: Named<'_> = serde_json::from_str(text).map_err(|_| {
        let hint = "send the subscription's id, as [id] or as {\"subscription\": id}";
        RpcError::new(protocol::ErrorKind::InvalidParams, "Invalid params", hint)
    })?;
    Ok(format!("[{}]", named.subscription))
}

fn join(answers: &[Box<RawValue>]) -> Option<Box<RawValue>> {
    if answers.is_empty() { None } else { to_raw_value(answers).ok() }
}
