//! (being built)
use foundation::Message;

/// Whether a provider will take it.
///
/// # Errors
/// Names the first call or result that is not paired.
pub fn check(_messages: &[Message]) -> Result<(), String> {
    Ok(())
}

/// The same history with every call answered exactly once, directly behind the answer that made it; and what was done.
#[must_use]
pub fn repair(messages: Vec<Message>) -> (Vec<Message>, Vec<String>) {
    (messages, Vec::new())
}
