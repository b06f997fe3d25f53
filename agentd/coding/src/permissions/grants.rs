//! What people allowed while a session was running.
//!
//! Only rules of the "allow" kind, and weaker than any deny or ask rule of the settings. Whoever records a person's
//! answer adds its rule here before the waiting call is told, so that calls behind it are covered too.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use super::rule::{Rule, RuleError};

/// Rules that several can see and add to.
#[derive(Clone, Default, Debug)]
pub struct Grants {
    home: Option<PathBuf>,
    rules: Arc<RwLock<Vec<Rule>>>,
}

impl Grants {
    /// None granted yet. `home` is what `~` stands for.
    #[must_use]
    pub fn new(home: Option<PathBuf>) -> Self {
        Self { home, rules: Arc::default() }
    }

    /// Allows what the rule says, from now on. Twice is once.
    ///
    /// # Errors
    /// When the text is no rule.
    pub fn add(&self, rule: &str) -> Result<(), RuleError> {
        let rule = Rule::parse(rule, self.home.as_deref())?;
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
        Ok(())
    }

    /// Takes a rule back; true if it was there.
    #[must_use]
    pub fn remove(&self, rule: &str) -> bool {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let before = rules.len();
        rules.retain(|have| have.to_string() != rule);
        rules.len() < before
    }

    /// All of them, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Rule> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
