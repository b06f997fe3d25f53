//! What a subscriber who starts from a snapshot is told first: how the session stands and what waits in it.
//!
//! The same event types as in the journal, without a `seq`: they say what is, not what happened.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::{Event, EventBody, RpcError};

use super::command::SessionView;
use super::internal;

/// # Errors
/// `internal_error` for an event that cannot be written as JSON.
pub(crate) fn prelude(view: SessionView) -> Result<Vec<Arc<str>>, RpcError> {
    let id = view.session.id;
    let approvals =
        view.approvals.into_iter().map(|approval| (Some(approval.turn_id), EventBody::ApprovalRequested { approval }));
    let questions =
        view.questions.into_iter().map(|question| (Some(question.turn_id), EventBody::QuestionRequested { question }));
    let bodies =
        std::iter::once((None, EventBody::SessionUpdated { session: view.session })).chain(approvals).chain(questions);
    bodies
        .map(|(turn_id, body)| {
            let event =
                Event { body, session_id: id, seq: None, cursor: None, ts: Timestamp::now(), turn_id, actor: None };
            serde_json::to_string(&event).map(Arc::from).map_err(|error| internal(error.to_string()))
        })
        .collect()
}
