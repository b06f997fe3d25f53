//! How far a run may go.

/// Limits of one run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Model calls; at least 1. When the last of them still asks for tools, one more call without tools sums up.
    pub max_steps: u32,
    /// Tools that run at the same time; at least 1. A call that waits for a person counts only once it runs.
    pub parallel_tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 100, parallel_tools: 8 }
    }
}
