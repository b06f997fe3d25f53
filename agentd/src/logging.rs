//! The daemon's own log: one event, one line, on stderr.
//!
//! A line cannot be forged or broken by what is logged: control characters in it are escaped, and its length is
//! bounded. Under systemd the journal adds time and level itself. No event of ours holds prompts, file contents or keys
//! above `trace`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;

use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The longest line, in bytes; the journal splits lines over 48 KiB.
const MAX_LINE: usize = 8 * 1024;

/// Sends events to stderr, from `info` on or as `AGENTD_LOG` says (such as `debug` or `agentd::rpc=trace,info`).
///
/// Does nothing when the process already has a log, as in tests.
pub fn init(env: &BTreeMap<String, String>) {
    let wanted = env.get("AGENTD_LOG").map(String::as_str).filter(|wanted| !wanted.is_empty());
    let filter = wanted.map_or_else(|| Ok(EnvFilter::new("info")), EnvFilter::try_new);
    let problem = filter.as_ref().err().map(ToString::to_string);
    let journal = env.get("JOURNAL_STREAM").is_some_and(|stream| is_stderr(stream));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(Lines { out: io::stderr, journal })
        .with_ansi(false)
        // It would be told on stderr, which is what cannot be written, and whoever logs would die of that.
        .log_internal_errors(false);
    let started = if journal { lines.without_time().with_level(false).try_init() } else { lines.try_init() };
    if let (Ok(()), Some(problem)) = (started, problem) {
        tracing::warn!(problem, "AGENTD_LOG is not understood, logging from info on");
    }
}

/// True when `stream`, which systemd gives as `device:inode`, is what stderr leads to. The variable alone says little:
/// a child whose stderr was redirected inherits it too.
fn is_stderr(stream: &str) -> bool {
    let stat = rustix::fs::fstat(io::stderr().as_fd());
    stat.is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// Makes a writer for each event.
struct Lines<F> {
    out: F,
    journal: bool,
}

impl<'a, W: Write, F: Fn() -> W> MakeWriter<'a> for Lines<F> {
    type Writer = Line<W>;

    fn make_writer(&'a self) -> Line<W> {
        Line { out: (self.out)(), prefix: "" }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line<W> {
        let prefix = if self.journal { priority(*metadata.level()) } else { "" };
        Line { out: (self.out)(), prefix }
    }
}

/// The level as the journal reads it at the start of a line (`sd-daemon(3)`).
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// Writes what it is given, which is one whole event, as one line.
struct Line<W> {
    out: W,
    prefix: &'static str,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = format!("{}{}\n", self.prefix, one_line(text.trim_end_matches('\n')));
        // In one call, so that lines of two threads do not mix.
        self.out.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (offset, c) in text.char_indices() {
        if line.len() >= MAX_LINE {
            line.push_str(&format!("… ({} more bytes)", text.len() - offset));
            break;
        }
        let turns_text = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns_text || c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What ends up in the log, as lines.
    fn logged(journal: bool, log: impl FnOnce()) -> Vec<String> {
        let sink = Sink::default();
        let out = sink.clone();
        let lines = Lines { out: move || out.clone(), journal };
        let subscriber = tracing_subscriber::fmt().with_writer(lines).with_ansi(false).without_time().finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_event_is_one_line_whatever_is_in_it() {
        let hostile = "a\nERROR forged\r\u{1b}[2J\u{9b}31m\u{202e}\u{2028}b\tc";
        let lines = logged(false, || tracing::info!(hostile, debug = ?hostile, "{hostile}"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(!lines[0].contains(|c: char| c.is_control() || c == '\u{202e}'), "{lines:?}");
        assert!(lines[0].contains("a\\nERROR forged\\r"), "{lines:?}");
    }

    #[test]
    fn a_long_event_is_cut_and_says_so() {
        let lines = logged(false, || tracing::info!("{}", "é".repeat(100_000)));
        assert!(lines[0].len() < MAX_LINE + 100 && lines[0].ends_with(" more bytes)"), "{}", lines[0].len());
    }

    #[test]
    fn the_journal_gets_the_level_as_a_prefix_that_no_message_can_forge() {
        let lines = logged(true, || {
            tracing::warn!("x\n<0>panic");
            tracing::info!("y");
        });
        assert!(lines.len() == 2 && lines[0].starts_with("<4>") && lines[1].starts_with("<6>"), "{lines:?}");
    }

    #[test]
    fn another_stream_than_stderr_is_not_the_journal() {
        assert!(!is_stderr("0:0"));
        let stat = rustix::fs::fstat(io::stderr().as_fd()).unwrap();
        assert!(is_stderr(&format!("{}:{}", stat.st_dev, stat.st_ino)));
    }
}
