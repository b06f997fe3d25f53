//! The tool that reads what a command has said beyond what its result showed.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec,
    parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::outputs::{Outputs, Piece};
use crate::sandbox::text_of;
use crate::tools::place::parse;

/// What one call gives at most: a byte may need four characters to be shown.
const MOST_BYTES: usize = 8000;
const POLICY_BYTES: usize = 33_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Input {
    /// As the result of the command gave it, such as `o3`.
    output_id: String,
    /// Where to begin; 0 is the first byte. Default 0.
    #[serde(default)]
    start_byte: u64,
    /// Bytes at most. Default and maximum 8000.
    #[serde(default)]
    max_bytes: Option<usize>,
}

/// `read_output`.
#[derive(Debug)]
pub(crate) struct ReadOutput {
    spec: ToolSpec,
    outputs: Arc<Outputs>,
}

impl ReadOutput {
    pub(crate) fn new(outputs: Arc<Outputs>) -> Self {
        let spec = ToolSpec {
            name: "read_output",
            description: "Reads a part of a command's output that was too long for its result, by the output's id. \
                          Begins where you say and tells where the next part begins.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: POLICY_BYTES },
        };
        Self { spec, outputs }
    }
}

#[async_trait]
impl Tool for ReadOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _: &Value) -> Access {
        Access::Nothing
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        let Input { output_id, start_byte, max_bytes } = parse(&input)?;
        let (outputs, id) = (Arc::clone(&self.outputs), output_id.clone());
        let most = max_bytes.unwrap_or(MOST_BYTES).clamp(1, MOST_BYTES);
        let read = tokio::task::spawn_blocking(move || outputs.read(&id, start_byte, most)).await;
        let piece = read.unwrap_or_else(|error| {
            let fact = format!("output `{output_id}` could not be read: {error}");
            Err(ToolError::new(ErrorCode::Internal, fact, "This is a defect of agentd. Run the command again."))
        })?;
        Ok(shown(&output_id, &piece))
    }
}

fn shown(id: &str, piece: &Piece) -> ToolOutput {
    let end = piece.start + piece.bytes.len() as u64;
    let is_last = end >= piece.total;
    let (text, taken) = text_of(&piece.bytes, is_last);
    let end = piece.start + taken as u64;
    let range = format!("bytes {} to {end} of {}", piece.start, piece.total);
    let mut whole = format!("[{range} of output {id}]\n{text}");
    if !is_last {
        let newline = if whole.ends_with('\n') { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = write!(whole, "{newline}[more from startByte {end} on]");
    }
    ToolOutput { summary: format!("read {range} of output {id}"), text: whole, ..ToolOutput::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of a longer output, as it is shown.
    #[track_caller]
    fn check(bytes: &[u8], start: u64, total: u64, text: &str) {
        let piece = Piece { start, bytes: bytes.to_vec(), total };
        assert_eq!(shown("o1", &piece).text, text);
    }

    #[test]
    fn a_piece_says_where_it_is_and_where_the_next_begins() {
        check(b"ab\n", 0, 3, "[bytes 0 to 3 of 3 of output o1]\nab\n");
        check(b"ab\n", 2, 9, "[bytes 2 to 5 of 9 of output o1]\nab\n[more from startByte 5 on]");
        check(b"ab", 2, 9, "[bytes 2 to 4 of 9 of output o1]\nab\n[more from startByte 4 on]");
        check(b"", 0, 0, "[bytes 0 to 0 of 0 of output o1]\n");
    }

    #[test]
    fn a_character_at_the_end_of_a_piece_comes_whole_with_the_next() {
        check(b"a\xc3", 0, 3, "[bytes 0 to 1 of 3 of output o1]\na\n[more from startByte 1 on]");
        check(b"\xc3\xa9", 1, 3, "[bytes 1 to 3 of 3 of output o1]\n\u{e9}");
        check(b"a\xff\0", 0, 3, "[bytes 0 to 3 of 3 of output o1]\na\\xff\\x00");
    }
}
