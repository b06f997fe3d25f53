//! Errors on their way out: every one carries `data` with kind, retryable and hint.
//!
//! jsonrpsee has numbers of its own where agentd has others. They are translated here and nowhere else.

use jsonrpsee::MethodResponse;
use jsonrpsee::types::error as theirs;
use jsonrpsee::types::{ErrorObjectOwned, Id};
use protocol::{ErrorKind, RpcError};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The error as jsonrpsee carries it.
pub(crate) fn error_object(error: &RpcError) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(error.kind.code(), error.message.clone(), Some(&error.data))
}

/// The answer line of a failed request.
pub(crate) fn error_response(id: Id<'_>, error: &RpcError) -> Box<RawValue> {
    MethodResponse::error(id, error_object(error)).into_json()
}

pub(crate) fn parse_error() -> RpcError {
    RpcError::new(ErrorKind::ParseError, "Parse error", "send one JSON-RPC 2.0 message, in UTF-8, on each line")
}

pub(crate) fn invalid_request(hint: impl Into<String>) -> RpcError {
    RpcError::new(ErrorKind::InvalidRequest, "Invalid Request", hint)
}

pub(crate) fn method_not_found(name: &str) -> RpcError {
    let hint = format!("there is no method {name}; `initialize` and `rpc.discover` list those that there are");
    RpcError::new(ErrorKind::MethodNotFound, "Method not found", hint)
}

pub(crate) fn internal_error() -> RpcError {
    let hint = "this is a fault of the daemon; its log tells more. Other requests are not affected";
    RpcError::new(ErrorKind::Internal, "Internal error", hint)
}

pub(crate) fn overloaded(what: &str, limit: u32) -> RpcError {
    let hint = format!("at most {limit} {what} at a time: wait for one to end, then send this again");
    RpcError::new(ErrorKind::Overloaded, format!("too many {what}"), hint)
}

#[derive(Deserialize)]
struct Failed<'a> {
    #[serde(borrow)]
    error: FailedError<'a>,
}

#[derive(Deserialize)]
struct FailedError<'a> {
    code: i32,
    message: String,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// The answer as clients of agentd know it: an error that jsonrpsee made itself gets our number and `data`.
pub(crate) fn at_the_border(response: MethodResponse, id: Id<'_>) -> Box<RawValue> {
    if !response.is_error() {
        return response.into_json();
    }
    let json = response.into_json();
    let Ok(Failed { error }) = serde_json::from_str::<Failed<'_>>(json.get()) else { return json };
    if error.data.is_some_and(|data| serde_json::from_str::<protocol::ErrorData>(data.get()).is_ok()) {
        return json;
    }
    let mapped = match error.code {
        theirs::METHOD_NOT_FOUND_CODE => method_not_found("of that name"),
        theirs::INVALID_REQUEST_CODE => invalid_request(error.message),
        theirs::INVALID_PARAMS_CODE => RpcError::new(ErrorKind::InvalidParams, "Invalid params", error.message),
        theirs::TOO_MANY_SUBSCRIPTIONS_CODE | theirs::SERVER_IS_BUSY_CODE => {
            RpcError::new(ErrorKind::Overloaded, error.message, "wait a little, then send this again")
        }
        theirs::OVERSIZED_REQUEST_CODE | theirs::OVERSIZED_RESPONSE_CODE => {
            RpcError::new(ErrorKind::FrameTooLarge, error.message, "ask for less at a time")
        }
        _ => internal_error(),
    };
    error_response(id, &mapped)
}
