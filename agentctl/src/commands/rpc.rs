//! `rpc` and `schema`: the protocol itself, for those who want to see it.

use protocol::api::ApprovalRole;
use serde_json::json;
use serde_json::value::RawValue;

use crate::commands::open;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::world::World;

/// One raw call. The result goes to stdout; an error object goes to stderr as JSON, with exit 1.
pub(super) async fn rpc(world: &World, method: &str, params: Option<String>) -> Result<Exit, Failure> {
    let params = params.map(parameters).transpose()?;
    let connection = open(world, ApprovalRole::Answer).await?;
    match connection.raw(method, params).await {
        Ok(result) => output::line(result.get()).map(|()| Exit::Done),
        Err(Failure::Rpc { code, message, data }) => {
            output::note(&json!({"code": code, "message": message, "data": data}).to_string());
            Ok(Exit::Failed)
        }
        Err(other) => Err(other),
    }
}

/// The OpenRPC document.
pub(super) async fn schema(world: &World) -> Result<(), Failure> {
    let document = open(world, ApprovalRole::Observe).await?.raw("rpc.discover", None).await?;
    let document: serde_json::Value =
        serde_json::from_str(document.get()).map_err(|error| Failure::other(error.to_string()))?;
    output::json(&document)
}

fn parameters(text: String) -> Result<Box<RawValue>, Failure> {
    let hint = "(hint: quote a JSON object, as in '{\"limit\": 3}')";
    let raw =
        RawValue::from_string(text).map_err(|error| Failure::usage(format!("PARAMS is not JSON: {error} {hint}")))?;
    if raw.get().trim_start().starts_with(['{', '[']) {
        Ok(raw)
    } else {
        Err(Failure::usage(format!("PARAMS is neither an object nor an array {hint}")))
    }
}
