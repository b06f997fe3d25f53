//! What the model is told of a command that ran: its output, then one line of how it ended.
//!
//! The output is the same whether the command succeeded or not; a failure is often the answer.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use foundation::{ErrorCode, ToolError, ToolOutcome, ToolOutput};
use serde_json::Value;

use crate::sandbox::{Ending, Run};

/// A run and what is to be said beside it.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) run: Run,
    pub(super) timeout: Duration,
    pub(super) ran_in: &'a Path,
    /// The directory that was remembered, where it is no more.
    pub(super) gone: Option<&'a Path>,
    /// Where the next call runs, if `cd` led there.
    pub(super) moved: Option<&'a Path>,
}

/// Makes the tool's outcome of it.
pub(super) fn outcome(report: Report<'_>) -> ToolOutcome {
    let summary = summary(&report);
    let notes = notes(&report);
    let output = report.run.output.text;
    let (code, hint) = match report.run.ending {
        Ending::Exit(0) => {
            let text = match output.trim_end_matches('\n') {
                "" => format!("(no output)\n{notes}{summary}"),
                output => format!("{output}\n{notes}{summary}"),
            };
            return Ok(ToolOutput { summary, text, detail: None, effect: None });
        }
        Ending::Exit(127) => (ErrorCode::CommandFailed, "A program was not found: check its name, or use another one."),
        Ending::Exit(_) => (ErrorCode::CommandFailed, "The command ran. Read what it said before the next step."),
        Ending::Signal(_) => {
            (ErrorCode::CommandFailed, "The command did not end by itself: part of it may have been done.")
        }
        Ending::TimedOut => (
            ErrorCode::TimedOut,
            "Part of it may have been done. If it needs longer, send it with a higher `timeoutSecs` (at most 600); if it \
             waits for input, pass that as arguments.",
        ),
        Ending::Cancelled => (ErrorCode::Cancelled, "Part of it may have been done."),
    };
    let mut error = ToolError::new(code, summary, hint);
    // The policy cuts it, as it cuts the output of a success.
    let output = output.trim_end_matches('\n');
    let said = if output.is_empty() { notes } else { format!("{output}\n{notes}") };
    if !said.is_empty() {
        error.details = Some(Value::String(said.trim_end().to_owned()));
    }
    Err(error)
}

/// `exit code 3 · 1.2 s`.
fn summary(report: &Report<'_>) -> String {
    let seconds = report.run.duration.as_secs_f64();
    let mut summary = match report.run.ending {
        Ending::Exit(code) => format!("exit code {code}"),
        Ending::Signal(signal) => format!("ended by signal {signal}{}", signal_name(signal)),
        Ending::TimedOut => format!("timed out after {} s and was ended", report.timeout.as_secs()),
        Ending::Cancelled => "cancelled and ended".to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = write!(summary, " · {seconds:.1} s");
    if report.run.output.omitted > 0 {
        let _ = write!(summary, " · {} bytes of output, start and end shown", report.run.output.total);
    }
    summary
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

fn notes(report: &Report<'_>) -> String {
    let mut notes = String::new();
    let mut note = |text: String| {
        let _ = writeln!(notes, "[{text}]");
    };
    if let Some(gone) = report.gone {
        note(format!("{} is no longer there; this ran in {}", gone.display(), report.ran_in.display()));
    }
    if report.run.output.escaped > 0 {
        note(format!(r"{} bytes that are not text are shown as \xNN", report.run.output.escaped));
    }
    if let Some(kept) = &report.run.kept {
        let all = if kept.bytes == report.run.output.total { "all" } else { "the first" };
        note(format!("{all} {} bytes of output are kept: read_output with outputId {}", kept.bytes, kept.id));
    }
    match report.run.left_behind {
        0 => {}
        1 => note("1 background process was ended with the call".into()),
        many => note(format!("{many} background processes were ended with the call")),
    }
    if report.run.unkillable > 0 {
        note(format!("{} processes could not be ended", report.run.unkillable));
    }
    if let Some(moved) = report.moved {
        note(format!("the next call runs in {}", moved.display()));
    }
    notes
}
