//! `approvals --history`: what was decided about calls, and by whom or by what.

use protocol::api::{self, ApprovalRole};
use protocol::approval::{ApprovalState, DecisionRecord, Ground};
use protocol::method;

use crate::args::Form;
use crate::commands::open;
use crate::exit::Failure;
use crate::untrusted::Untrusted;
use crate::world::World;
use crate::{approve, naming, output};

/// Prints the newest decisions, the newest last as in every log; with `--json`, an array with the newest first.
pub(super) async fn ledger(world: &World, session: Option<&str>, limit: u32, form: Form) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let session_id = match session {
        Some(name) => Some(naming::session(&connection, &world.cwd, name).await?.id),
        None => None,
    };
    let ask = api::ApprovalHistory { session_id, cursor: None, limit: Some(limit) };
    let page = connection.call::<method::ApprovalHistory>(ask).await?;
    if form.json {
        return output::json(&page.decisions);
    }
    if page.decisions.is_empty() {
        output::note("nothing was decided yet");
    }
    page.decisions.iter().rev().try_for_each(|record| output::line(&line(record)))?;
    if page.next_cursor.is_some() {
        output::note(&format!("there is more than the newest {limit} (hint: -n {})", (limit * 2).min(500)));
    }
    Ok(())
}

fn line(record: &DecisionRecord) -> String {
    let at = record.at.strftime("%Y-%m-%d %H:%M:%S UTC");
    let session = super::short_id(record.session_id);
    let summary = Untrusted::new(&record.summary).one_line(120);
    let outcome = match (&record.approval, &record.ground) {
        (Some(approval), _) => {
            let shown = Untrusted::new(&approval.detail).one_line(120);
            return format!("{at}  {session}  {}: {} ({shown})", approve::outcome(approval), summary);
        }
        (None, Some(Ground::Rule { rule })) => format!("by the rule {}", Untrusted::new(rule).one_line(200)),
        (None, Some(Ground::Policy { policy })) => format!("by {}", Untrusted::new(policy).one_line(80)),
        (None, Some(Ground::Approval { .. }) | None) => String::new(),
    };
    let verb = if record.outcome == ApprovalState::Allowed { "allowed" } else { "denied" };
    format!("{at}  {session}  {verb} {outcome}: {summary}")
}
