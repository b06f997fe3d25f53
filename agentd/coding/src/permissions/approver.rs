//! How a person is asked: for consent to a call, or for an answer.
//!
//! Implemented above, by whoever knows the clients. Both may take days; both end within a second of `cancel`.

use async_trait::async_trait;
use protocol::{Answer, ApprovalId, ApprovalOption, CallId, Question};
use tokio_util::sync::CancellationToken;

/// Asks people whether a call may run.
#[async_trait]
pub trait Approver: Send + Sync + std::fmt::Debug {
    /// Waits for the decision. When it is "allow" with a rule, the rule is among the session's grants before this
    /// returns.
    async fn ask(&self, consent: Consent, cancel: &CancellationToken) -> Verdict;
}

/// Asks people what a model wants to know.
#[async_trait]
pub trait Asker: Send + Sync + std::fmt::Debug {
    /// Waits for one answer to each question, in their order.
    async fn ask(
        &self,
        call: &CallId,
        title: &str,
        questions: Vec<Question>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Answer>, Unanswered>;
}

/// What a person is asked to agree to. It covers this call with this input, once.
#[derive(Clone, PartialEq, Debug)]
pub struct Consent {
    pub call: CallId,
    pub tool: String,
    /// The model's own words for why.
    pub title: String,
    /// Whole, never cut.
    pub detail: String,
    pub risks: Vec<String>,
    /// The only answers that may be accepted, each with exactly the rule it would add.
    pub options: Vec<ApprovalOption>,
}

/// What came of asking for consent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The answer that counts stands under this id.
    Allowed(ApprovalId),
    Denied {
        /// For the model, in the person's own words.
        message: Option<String>,
        /// Who or what denied, in words: `a person`, `the session's policy`.
        by: String,
        /// Where the answer stands, if it is one that could be kept.
        approval: Option<ApprovalId>,
    },
    /// The turn was.
    Cancelled,
    /// Nobody answered in time.
    Expired(ApprovalId),
}

/// Why questions stayed without answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unanswered {
    /// A person said that they will not answer.
    Declined,
    Cancelled,
    /// Nobody answered in time, or the session's policy says that nobody will.
    Expired,
}
