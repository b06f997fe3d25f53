//! May this call run?
//!
//! `facts` says what a call would touch, `decide` answers from mode and rules, `middleware` asks a person where the
//! answer is "ask". Deny is stronger than ask, ask than allow; what is not understood asks.

mod approver;
mod decide;
mod facts;
mod grants;
mod middleware;
mod mode;
mod rule;
mod shell;

pub use approver::{Approver, Asker, Consent, Unanswered, Verdict};
pub use decide::{Decision, Why, decide};
pub(crate) use facts::host_of;
pub use facts::{Call, Protected, Touch};
pub use grants::Grants;
pub use middleware::Permissions;
pub use mode::SharedMode;
pub use rule::{Rule, RuleError, Rules};
pub(crate) use shell::risks;
