//! How much of an outcome the model gets. What is left out is always counted, and nothing is sent twice.

mod cut;

use foundation::{ResultPolicy, ToolError, ToolOutcome, ToolOutput};
use serde_json::Value;

/// Cap of a summary, and of errors of tools whose results are summaries, in bytes.
const SUMMARY_BYTES: usize = 4 << 10;

/// The text of an outcome for the model: never longer than the policy's cap, markers included.
///
/// An error is its summary, its code, its hint and its details, in this order, so that a cut takes from the details.
#[must_use]
pub fn model_text(policy: ResultPolicy, outcome: &ToolOutcome) -> String {
    match outcome {
        Ok(output) => output_text(policy, output),
        Err(error) => cut::head_and_tail(&error_text(error), cap(policy)),
    }
}

fn output_text(policy: ResultPolicy, output: &ToolOutput) -> String {
    let text = if output.text.is_empty() { &output.summary } else { &output.text };
    match policy {
        ResultPolicy::Summary => cut::head(&output.summary, SUMMARY_BYTES),
        ResultPolicy::Head { max_bytes } => cut::head(text, max_bytes),
        ResultPolicy::HeadAndTail { max_bytes } => cut::head_and_tail(text, max_bytes),
    }
}

fn cap(policy: ResultPolicy) -> usize {
    match policy {
        ResultPolicy::Summary => SUMMARY_BYTES,
        ResultPolicy::Head { max_bytes } | ResultPolicy::HeadAndTail { max_bytes } => max_bytes,
    }
}

fn error_text(error: &ToolError) -> String {
    let details = match &error.details {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(details) => format!("{details:#}"),
    };
    let code = format!("code: {}", error.code);
    let lines = [error.summary.as_str(), &code, &error.hint, &details];
    lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use foundation::ErrorCode;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(policy: ResultPolicy, outcome: &ToolOutcome, expected: &str) {
        assert_eq!(model_text(policy, outcome), expected);
    }

    fn output(summary: &str, text: &str) -> ToolOutcome {
        Ok(ToolOutput { text: text.into(), ..ToolOutput::summary(summary) })
    }

    #[test]
    fn the_model_gets_the_text_or_the_summary_and_never_both() {
        check(ResultPolicy::Summary, &output("wrote 3 lines", "the whole file"), "wrote 3 lines");
        check(ResultPolicy::Head { max_bytes: 100 }, &output("3 lines", "a\nb\nc"), "a\nb\nc");
        check(ResultPolicy::HeadAndTail { max_bytes: 100 }, &output("nothing found", ""), "nothing found");
    }

    #[test]
    fn an_error_says_what_happened_its_code_and_the_next_step_before_its_details() {
        let mut error = ToolError::new(ErrorCode::NoMatch, "a.rs has no such text", "Read it again.");
        check(ResultPolicy::Summary, &Err(error.clone()), "a.rs has no such text\ncode: NO_MATCH\nRead it again.");
        error.details = Some(json!("nearest: line 3"));
        check(
            ResultPolicy::Summary,
            &Err(error.clone()),
            "a.rs has no such text\ncode: NO_MATCH\nRead it again.\nnearest: line 3",
        );
        error.details = Some(json!("x\n".repeat(9000)));
        let text = model_text(ResultPolicy::Summary, &Err(error));
        assert!(text.starts_with("a.rs has no such text\ncode: NO_MATCH\nRead it again.\nx\n"));
        assert!(text.len() <= SUMMARY_BYTES && text.contains("bytes omitted"));
    }
}
