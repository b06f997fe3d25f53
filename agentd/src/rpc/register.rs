//! Puts typed handlers into jsonrpsee's module, by the table of methods in `protocol`.
//!
//! A handler sees its context, its client and its parameters, and nothing of JSON-RPC.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, PendingSubscriptionSink, RpcModule};
use protocol::api::DaemonSubscribe;
use protocol::{ErrorKind, METHODS, Method, RpcError};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::outgoing::{Outlet, Wire};
use super::overview::Overview;
use super::peer::Client;
use super::reply::{error_object, internal_error};
use super::subscription::{Source, Subscribe};
use crate::session::feed::DaemonFeed;

/// Registers the handler of a method.
///
/// # Errors
/// When a handler is already there.
pub(crate) fn method<M, C, Fut>(
    module: &mut RpcModule<C>,
    handler: impl Fn(Arc<C>, Arc<Client>, M::Params) -> Fut + Clone + Send + Sync + 'static,
) -> Result<(), RegisterMethodError>
where
    M: Method,
    C: Send + Sync + 'static,
    Fut: Future<Output = Result<M::Result, RpcError>> + Send,
{
    let answer = move |params: Params<'static>, context: Arc<C>, extensions: Extensions| {
        let handler = handler.clone();
        async move {
            let call = async {
                let params = parse::<M::Params>(&params)?;
                let wire = extensions.get::<Arc<Wire>>().ok_or_else(internal_error)?;
                let result = handler(context, wire.client.clone(), params).await?;
                to_raw_value(&result).map_err(|error| unserialisable(&error))
            };
            call.await.map_err(|error| error_object(&error)) as Result<Box<RawValue>, ErrorObjectOwned>
        }
    };
    module.register_async_method(M::NAME, answer).map(drop)
}

/// Registers the handler of a method that begins a subscription to one session, and the method that ends it.
///
/// The handler resolves the parameters; its source is opened before the id is answered and runs after that.
///
/// # Errors
/// When a handler is already there, or the table of methods has no subscription of that name.
pub(crate) fn subscription<M, C, Fut>(
    module: &mut RpcModule<C>,
    handler: impl Fn(Arc<C>, Arc<Client>, M::Params) -> Fut + Clone + Send + Sync + 'static,
) -> Result<(), RegisterMethodError>
where
    M: Method,
    C: Send + Sync + 'static,
    Fut: Future<Output = Result<Source, RpcError>> + Send + 'static,
{
    stream::<M, _, _, _>(module, handler)
}

/// Registers the method that begins a subscription to the whole daemon, and the one that ends it.
///
/// # Errors
/// As [`subscription`].
pub(crate) fn everyone<M, C>(
    module: &mut RpcModule<C>,
    feed: impl Fn(&C) -> DaemonFeed + Clone + Send + Sync + 'static,
) -> Result<(), RegisterMethodError>
where
    M: Method<Params = DaemonSubscribe>,
    C: Send + Sync + 'static,
{
    stream::<M, _, _, _>(module, move |context, _client, wanted| {
        let types = wanted.types.map(HashSet::from_iter);
        std::future::ready(Ok(Overview { feed: feed(&context), types }))
    })
}

fn stream<M, C, Fut, S>(
    module: &mut RpcModule<C>,
    handler: impl Fn(Arc<C>, Arc<Client>, M::Params) -> Fut + Clone + Send + Sync + 'static,
) -> Result<(), RegisterMethodError>
where
    M: Method,
    C: Send + Sync + 'static,
    Fut: Future<Output = Result<S, RpcError>> + Send + 'static,
    S: Subscribe,
{
    let names = METHODS.iter().find(|entry| entry.name == M::NAME).and_then(|entry| entry.subscription);
    let (event, end) = names.ok_or_else(|| RegisterMethodError::MethodNotFound(M::NAME.into()))?;
    let begin = move |params: Params<'_>, pending: PendingSubscriptionSink, context, extensions: &Extensions| {
        // Only a connection dispatches to this, and it always leaves its wire here.
        let Some(wire) = extensions.get::<Arc<Wire>>().cloned() else { return };
        let source = parse::<M::Params>(&params).map(|params| handler(context, wire.client.clone(), params));
        wire.tasks.clone().spawn(async move {
            let source = async { source?.await };
            let source = AssertUnwindSafe(source).catch_unwind().await.unwrap_or_else(|_| Err(internal_error()));
            match source {
                Ok(source) => run(source, pending, wire).await,
                Err(error) => pending.reject(error_object(&error)).await,
            }
        });
    };
    module.register_subscription_raw(M::NAME, event, end, begin).map(drop)
}

async fn run<S: Subscribe>(source: S, pending: PendingSubscriptionSink, wire: Arc<Wire>) {
    let outlet = Outlet::new(wire, pending.method_name(), &pending.subscription_id());
    let events = source.open(outlet);
    let Ok(sink) = pending.accept().await else { return };
    tokio::select! {
        () = sink.closed() => {}
        () = events => {}
    }
}

/// Reads parameters, named or in the order of their fields.
fn parse<P: DeserializeOwned>(params: &Params<'_>) -> Result<P, RpcError> {
    let text = match params.as_str() {
        None | Some("null") => "{}",
        Some(text) => text,
    };
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(|error| {
        let path = error.path().to_string();
        let what = error.inner().to_string();
        let what = what.rsplit_once(" at line ").map_or(&*what, |(what, _place)| what);
        let hint = if path == "." { what.to_owned() } else { format!("{path}: {what}") };
        RpcError::new(ErrorKind::InvalidParams, "Invalid params", hint)
    })
}

fn unserialisable(error: &serde_json::Error) -> RpcError {
    tracing::error!(%error, "result cannot be serialised");
    internal_error()
}
