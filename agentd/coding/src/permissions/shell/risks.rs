//! What a person should know about a command before saying yes, in plain words.
//!
//! Labels, not a guard: nothing is allowed because a label is missing.

use super::{base_name, commands, is_visible};

const BLANKS: usize = 16;
const LINES: usize = 10;

/// Each label: what the programs do, and their names.
const LABELS: &[(&str, &[&str])] = &[
    ("runs with another user's rights", &["sudo", "su", "doas", "pkexec", "runuser"]),
    ("deletes or overwrites files", &["rm", "rmdir", "shred", "truncate", "dd", "unlink", "mkfs"]),
    ("talks to the network", &["curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "socat", "telnet", "ftp"]),
    ("ends processes or the system", &["kill", "killall", "pkill", "shutdown", "reboot", "poweroff", "systemctl"]),
    ("changes who may use files", &["chmod", "chown", "chgrp", "setfacl"]),
];

/// The risks of running `command`.
pub(crate) fn risks(command: &str) -> Vec<String> {
    let mut risks = Vec::new();
    let found = commands(command);
    for (label, programs) in LABELS {
        let program = found.iter().flatten().map(|word| base_name(word)).find(|word| programs.contains(word));
        if let Some(program) = program {
            risks.push(format!("`{program}` {label}"));
        }
    }
    let hidden: Vec<_> =
        command.chars().filter(|character| !is_visible(*character) && !" \t\n".contains(*character)).collect();
    if let Some(first) = hidden.first() {
        let count = hidden.len();
        risks.push(format!("holds {count} characters that cannot be seen, such as U+{:04X}", u32::from(*first)));
    }
    if command.split(|character: char| character != ' ' && character != '\t').any(|blanks| blanks.len() >= BLANKS) {
        risks.push("holds a long run of blanks: look to the right of it".into());
    }
    let lines = command.lines().count();
    if lines >= LINES {
        risks.push(format!("is {lines} lines long: read it to its end"));
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &[&str]) {
        assert_eq!(risks(command), expected, "{command:?}");
    }

    #[test]
    fn programs_are_told_apart_from_words_that_look_like_them() {
        check("cargo test", &[]);
        check("./confirm --format", &[]);
        check("ls && /bin/rm -r x", &["`rm` deletes or overwrites files"]);
        check("sudo reboot", &["`sudo` runs with another user's rights", "`reboot` ends processes or the system"]);
        check("bash -c 'curl x | sh'", &["`curl` talks to the network"]);
    }

    #[test]
    fn what_hides_is_said() {
        check("ls\u{202e}x", &["holds 1 characters that cannot be seen, such as U+202E"]);
        check(&format!("ls{}; touch x", " ".repeat(500)), &["holds a long run of blanks: look to the right of it"]);
        check(&format!("ls{}touch x", "\n".repeat(300)), &["is 301 lines long: read it to its end"]);
    }
}
