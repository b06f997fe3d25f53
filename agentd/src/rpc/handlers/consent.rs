//! `approval/*` and `question/*`: one inbox over all sessions.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use protocol::api::{ApprovalHistoryPage, ApprovalListed, ApprovalShown, QuestionListed};
use protocol::{Approval, ApprovalState, ErrorKind, QuestionState, RpcError, SessionId, method};

use super::House;
use crate::rpc::Caller;
use crate::rpc::register::method;
use crate::session::command::Command;
use crate::session::storage;
use crate::store::DecisionFilter;

/// Decisions on one page of the ledger.
const MAX_DECISIONS: u32 = 500;

pub(super) fn register(module: &mut RpcModule<House>) -> Result<(), RegisterMethodError> {
    method::<method::ApprovalList, _, _>(module, async |house: Arc<House>, _, list| {
        let state = list.state.unwrap_or(ApprovalState::Pending);
        let mut found = house.env.store.approvals(list.session_id, Some(state)).await;
        if take_up_overdue(&house, found.as_deref().unwrap_or_default()).await {
            found = house.env.store.approvals(list.session_id, Some(state)).await;
        }
        Ok(ApprovalListed { approvals: found.map_err(|error| storage(&error))? })
    })?;
    method::<method::ApprovalGet, _, _>(module, async |house: Arc<House>, _, get| {
        let found = house.env.store.approval(get.approval_id).await.map_err(|error| storage(&error))?;
        found.map(|approval| ApprovalShown { approval }).ok_or_else(|| unknown("approval", get.approval_id))
    })?;
    method::<method::ApprovalRespond, _, _>(module, async |house: Arc<House>, client, answer| {
        let by = Caller::from(&*client);
        let found = house.env.store.approval(answer.approval_id).await.map_err(|error| storage(&error))?;
        let approval = found.ok_or_else(|| unknown("approval", answer.approval_id))?;
        house.session(approval.session_id).await?.ask(|reply| Command::Decide { answer, by, reply }).await
    })?;
    method::<method::ApprovalHistory, _, _>(module, async |house: Arc<House>, _, history| {
        let limit = history.limit.unwrap_or(50).min(MAX_DECISIONS);
        let filter = DecisionFilter { session: history.session_id, cursor: history.cursor, limit };
        let (decisions, next_cursor) = house.env.store.decisions(filter).await.map_err(|error| storage(&error))?;
        Ok(ApprovalHistoryPage { decisions, next_cursor })
    })?;
    method::<method::QuestionList, _, _>(module, async |house: Arc<House>, _, list| {
        let state = list.state.unwrap_or(QuestionState::Pending);
        let found = house.env.store.questions(list.session_id, Some(state)).await;
        Ok(QuestionListed { questions: found.map_err(|error| storage(&error))? })
    })?;
    method::<method::QuestionRespond, _, _>(module, async |house: Arc<House>, client, answer| {
        let by = Caller::from(&*client);
        let found = house.env.store.question(answer.question_id).await.map_err(|error| storage(&error))?;
        let question = found.ok_or_else(|| unknown("question", answer.question_id))?;
        house.session(question.session_id).await?.ask(|reply| Command::Answer { answer, by, reply }).await
    })
}

/// Takes up the sessions of pending requests whose time is up, in which those lapse; whether there were any.
async fn take_up_overdue(house: &House, found: &[Approval]) -> bool {
    let now = Timestamp::now();
    let is_overdue = |approval: &&Approval| {
        approval.state == ApprovalState::Pending && approval.expires_at.is_some_and(|expires| expires <= now)
    };
    let overdue: BTreeSet<SessionId> = found.iter().filter(is_overdue).map(|approval| approval.session_id).collect();
    for session in &overdue {
        if let Err(error) = house.session(*session).await {
            tracing::warn!(%session, %error, "a request for consent is overdue, and its session cannot be taken up");
        }
    }
    !overdue.is_empty()
}

fn unknown(what: &str, id: impl std::fmt::Display) -> RpcError {
    RpcError::new(
        ErrorKind::NotFound,
        format!("there is no {what} {id}"),
        format!("{what}/list shows those that are pending"),
    )
}
