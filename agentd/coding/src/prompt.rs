//! What the model is told before anything else.
//!
//! First what stays the same over a session, so that a provider's prompt cache holds it, then what changes.

mod instructions;

use std::path::Path;

use foundation::SystemText;
use jiff::civil::Date;

pub use instructions::{Instruction, InstructionKind, instructions};

const SYSTEM: &str = include_str!("prompt/system.md");

/// The system prompt of a session in `cwd`, an absolute path.
#[must_use]
pub fn system_prompt(cwd: &Path, today: Date, instructions: &[Instruction]) -> Vec<SystemText> {
    let workspace = format!("The workspace, and the directory that relative paths count from, is {}.", cwd.display());
    let stable = |text| SystemText { text, stable: true };
    let mut system = vec![stable(format!("{}\n\n{workspace}", SYSTEM.trim_end()))];
    system.extend(instructions.iter().map(|instruction| stable(instruction.text())));
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    system.push(SystemText { text: format!("Today is {today}. The platform is {os} on {arch}."), stable: false });
    system
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_stands_behind_what_stays() {
        let system = system_prompt(Path::new("/w"), Date::constant(2026, 12, 1), &[]);
        assert!(system[0].stable && system[0].text.ends_with("count from, is /w."));
        assert!(system[0].text.len() < 3_000, "{}", system[0].text.len());
        assert!(!system[1].stable && system[1].text.starts_with("Today is 2026-12-01. "));
    }
}
