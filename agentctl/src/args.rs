//! What can be typed after `agentctl`, and the help that teaches it. Parses and nothing more.

mod words;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::exit::legend;

pub(crate) use words::{ModeName, ScopeName, UntilName};

const RUN_EXAMPLE: &str = "Example: git diff | agentctl run -  ·  agentctl run --json \"list the tests\" | jq .type";

/// What a script's author learns too late otherwise.
const RUN_WAITS: &str = "A run that needs a yes waits until somebody gives it: `agentctl allow ID` or `deny ID`, from anywhere.\n\
                         Where nobody will (CI), put \"noClient\": \"deny\" into settings.json, or give --timeout.";

/// Talk to agentd, the coding agent that keeps working when you close the terminal.
#[derive(Parser, Debug)]
#[command(
    name = "agentctl",
    version,
    after_help = "Sessions are named by id, by the beginning of an id, or @last: the newest\n\
                  session of this directory, else the newest of all.\n\n\
                  First steps:\n  agentctl                        talk in this directory\n  \
                  agentctl run \"read Cargo.toml\"  one question, answer on stdout\n  \
                  agentctl approvals              what waits for your yes"
)]
pub(crate) struct Args {
    /// Socket of the daemon, if it is not the usual one
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Talk, line by line (this is also what bare `agentctl` does)
    #[command(after_help = "Example: agentctl chat @last")]
    Chat(Chat),
    /// Join a session from another terminal: what was said, what is being said, what waits
    #[command(after_help = "Example: agentctl attach @last")]
    Attach {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        session: String,
    },
    /// One turn without a terminal: the answer on stdout, all else on stderr
    #[command(after_help = format!("{RUN_EXAMPLE}\n\n{RUN_WAITS}\n\n{}", legend()))]
    Run(Run),
    /// Hand in a message and go
    #[command(after_help = "Example: agentctl send @last --queue \"now run the tests\"")]
    Send {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        session: String,
        #[command(flatten)]
        delivery: When,
        /// The message; `-` reads it from stdin
        text: String,
    },
    /// Wait until a session's turn has ended; exit codes as for `run`
    #[command(after_help = "Example: agentctl wait @last --timeout 600")]
    Wait(Wait),
    /// Stop the running turn; returns when nothing of it runs any more
    #[command(after_help = "Example: agentctl interrupt @last")]
    Interrupt {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        #[arg(default_value = "@last")]
        session: String,
    },
    /// Let a turn go on that was cut off when the daemon was stopped
    #[command(after_help = "Example: agentctl resume @last")]
    Resume {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        #[arg(default_value = "@last")]
        session: String,
        /// End it instead: what was open gets an honest result
        #[arg(long)]
        discard: bool,
    },
    /// List the messages that wait for their turn, or take one back
    #[command(after_help = "Example: agentctl queue @last --drop 1")]
    Queue(Queue),
    /// List sessions, newest first
    #[command(after_help = "Example: agentctl ls --here")]
    Ls(List),
    /// Show one session
    #[command(after_help = "Example: agentctl show @last --json")]
    Show {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        #[arg(default_value = "@last")]
        session: String,
        #[command(flatten)]
        form: Form,
    },
    /// Print what was said in a session
    #[command(after_help = "Example: agentctl history @last --json")]
    History {
        /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
        #[arg(default_value = "@last")]
        session: String,
        #[command(flatten)]
        form: Form,
    },
    /// Delete a session and its history
    #[command(after_help = "Example: agentctl rm 019a1b2c-3d4e")]
    Rm {
        /// Each an id, the beginning of one, or @last
        #[arg(required = true)]
        sessions: Vec<String>,
    },
    /// List what waits for a yes, a no or an answer, in all sessions
    #[command(after_help = "Example: agentctl approvals\n         agentctl approvals --history --session @last")]
    Approvals {
        /// What was decided instead, newest first: by whom, or by which rule or mode
        #[arg(long)]
        history: bool,
        /// Of the history, one session: an id, the beginning of one, or @last; all if absent
        #[arg(long, requires = "history")]
        session: Option<String>,
        /// Of the history, at most this many
        #[arg(short = 'n', long, requires = "history", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
        #[command(flatten)]
        form: Form,
    },
    /// Say yes to what waits
    #[command(after_help = "Example: agentctl allow 3f9c2 --scope session")]
    Allow {
        /// Short id, or the beginning of the long one
        id: String,
        /// How far the yes reaches
        #[arg(long, default_value = "once")]
        scope: ScopeName,
    },
    /// Say no to what waits; the turn goes on without that call
    #[command(after_help = "Example: agentctl deny 3f9c2 -m \"use the test database\"")]
    Deny {
        /// Short id, or the beginning of the long one
        id: String,
        /// Tells the model why
        #[arg(short, long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Answer a question of the model: for each of its questions a number, `1,3`, or your own words
    #[command(after_help = "Example: agentctl answer 8b04e 2 \"in the src folder\"")]
    Answer {
        /// Short id, or the beginning of the long one
        id: String,
        /// One for each question, in order: a number, several as `1,3`, or your own words
        #[arg(required = true)]
        answers: Vec<String>,
    },
    /// Print events as JSON, one a line, as they happen
    #[command(after_help = "Example: agentctl watch | jq -c 'select(.type == \"turn.ended\")'")]
    Watch {
        /// One session with all its events; all sessions' status, approvals and questions if absent
        session: Option<String>,
    },
    /// Make one raw call; the result is printed as JSON
    #[command(after_help = "Example: agentctl rpc session/list '{\"limit\": 3}'")]
    Rpc {
        /// Name of the method; `agentctl schema` lists all
        method: String,
        /// JSON object or array; none if absent
        params: Option<String>,
    },
    /// Print the OpenRPC document: every method and type of the protocol
    #[command(after_help = "Example: agentctl schema | jq '.methods[].name'")]
    Schema,
    /// List the models that can be named
    #[command(after_help = "Example: agentctl models")]
    Models {
        #[command(flatten)]
        form: Form,
    },
    /// List the tools that a model is offered
    #[command(after_help = "Example: agentctl tools --json")]
    Tools {
        #[command(flatten)]
        form: Form,
    },
    /// Show each setting, where its value comes from, and what was ignored
    #[command(after_help = "Example: agentctl config limits.maxSteps")]
    Config {
        /// One key; `explain` before it may be left out
        key: Vec<String>,
        #[command(flatten)]
        form: Form,
    },
    /// Check the daemon and its database: the file, the chains of hashes, the index; exits with 1 on a fault
    #[command(after_help = "Example: agentctl doctor --json")]
    Doctor {
        #[command(flatten)]
        form: Form,
    },
    /// Start, stop or show the daemon
    #[command(subcommand, after_help = "Example: agentctl daemon status")]
    Daemon(Daemon),
}

#[derive(ClapArgs, Debug, Default)]
pub(crate) struct Chat {
    /// Id, the beginning of an id, or @last; this directory's newest, or a new one, if absent
    pub(crate) session: Option<String>,
    /// Begin a new session
    #[arg(long, conflicts_with = "session")]
    pub(crate) new: bool,
    /// provider/model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// How much runs without asking
    #[arg(long)]
    pub(crate) mode: Option<ModeName>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Run {
    /// Go on in this session; a new one if absent
    #[arg(short, long)]
    pub(crate) session: Option<String>,
    /// provider/model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// How much runs without asking
    #[arg(long)]
    pub(crate) mode: Option<ModeName>,
    /// Print events as JSON, one a line, ending with turn.ended
    #[arg(long)]
    pub(crate) json: bool,
    /// End after this many model calls
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u32>,
    /// Stop waiting after so many seconds (exit 124); the turn goes on
    #[arg(long, value_name = "SECS")]
    pub(crate) timeout: Option<u64>,
    /// Workspace of a new session; this directory if absent
    #[arg(long, value_name = "DIR", conflicts_with = "session")]
    pub(crate) cwd: Option<PathBuf>,
    /// What to do; `-` reads it from stdin
    pub(crate) prompt: String,
}

/// What happens to a message while a turn runs; refused if neither.
#[derive(ClapArgs, Clone, Copy, Debug, Default)]
pub(crate) struct When {
    /// While a turn runs: run it after that
    #[arg(long, conflicts_with = "steer")]
    pub(crate) queue: bool,
    /// While a turn runs: hand it to that turn after its next tool
    #[arg(long)]
    pub(crate) steer: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Queue {
    /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
    #[arg(default_value = "@last")]
    pub(crate) session: String,
    /// Take this one back: its number in the list, or its id
    #[arg(long, value_name = "N")]
    pub(crate) drop: Option<String>,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Wait {
    /// Id, the beginning of an id, or @last: the newest of this directory, else the newest of all
    #[arg(default_value = "@last")]
    pub(crate) session: String,
    /// What to wait for
    #[arg(long, default_value = "ended")]
    pub(crate) until: UntilName,
    /// Stop waiting after so many seconds (exit 124)
    #[arg(long, value_name = "SECS")]
    pub(crate) timeout: Option<u64>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct List {
    /// Only sessions of this directory
    #[arg(long)]
    pub(crate) here: bool,
    /// Only those with these words in the title
    #[arg(long, value_name = "WORDS")]
    pub(crate) query: Option<String>,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// For people or for programs.
#[derive(ClapArgs, Clone, Copy, Debug, Default)]
pub(crate) struct Form {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Clone, Copy, Debug)]
pub(crate) enum Daemon {
    /// Start it, if it does not run
    Start,
    /// Let running turns end, then stop it
    Stop {
        /// How many seconds running turns get
        #[arg(long, value_name = "SECS")]
        drain: Option<u64>,
    },
    /// Show whether it runs, and what it does; never starts it
    Status {
        #[command(flatten)]
        form: Form,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_teaches_with_an_example() {
        let command = Args::command();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Example: agentctl ") || help.contains("| agentctl "), "{}", sub.get_name());
        }
    }

    #[test]
    fn every_argument_says_what_it_is() {
        let command = Args::command();
        for sub in command.get_subcommands().flat_map(|sub| std::iter::once(sub).chain(sub.get_subcommands())) {
            for argument in sub.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", sub.get_name(), argument.get_id());
            }
        }
    }

    #[test]
    fn the_help_of_run_lists_the_exit_codes() {
        let help = Args::try_parse_from(["agentctl", "run", "--help"]).unwrap_err().to_string();
        for line in
            ["    0  done", "    3  an approval was needed and the policy denied it", "  124  --timeout was over"]
        {
            assert!(help.contains(line), "{line:?} in {help}");
        }
    }

    #[test]
    fn a_lone_dash_is_a_prompt_and_bare_agentctl_is_chat() {
        let args = Args::try_parse_from(["agentctl", "run", "-s", "@last", "-"]).unwrap();
        assert!(matches!(args.command, Some(Command::Run(Run { prompt, .. })) if prompt == "-"));
        assert!(Args::try_parse_from(["agentctl"]).unwrap().command.is_none());
        assert!(Args::try_parse_from(["agentctl", "run"]).is_err());
    }
}
