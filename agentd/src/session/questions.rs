//! The questions of one session's model that still wait for a person.

use std::collections::BTreeMap;

use coding::permissions::Unanswered;
use jiff::Timestamp;
use protocol::api::QuestionRespond;
use protocol::{
    Answer, CallId, ErrorKind, Question, QuestionId, QuestionRequest, QuestionState, RpcError, SessionId, TurnId,
};
use tokio::sync::oneshot;

use super::approvals::{may_answer, short_id};
use crate::rpc::Caller;

pub(super) type Waiting = oneshot::Sender<Result<Vec<Answer>, Unanswered>>;

#[derive(Default, Debug)]
pub(crate) struct Questions {
    /// Each with the call that waits for it; after a restart nothing waits yet.
    pending: BTreeMap<QuestionId, (QuestionRequest, Option<Waiting>)>,
}

impl Questions {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn all(&self) -> Vec<QuestionRequest> {
        self.pending.values().map(|(request, _)| request.clone()).collect()
    }

    /// Whether a call waits for a person.
    pub(crate) fn holds(&self, call: &CallId) -> bool {
        self.pending.values().any(|(request, _)| request.tool_use_id == *call)
    }

    /// Holds a committed set of questions until somebody answers.
    pub(crate) fn hold(&mut self, request: QuestionRequest, waiting: Waiting) {
        self.pending.insert(request.id, (request, Some(waiting)));
    }

    /// Takes over sets that an earlier life of the session has committed.
    pub(crate) fn restore(&mut self, requests: impl Iterator<Item = QuestionRequest>) {
        self.pending = requests.map(|request| (request.id, (request, None))).collect();
    }

    /// Lets a call wait for a set that is there already.
    pub(crate) fn join(&mut self, id: QuestionId, call: Waiting) {
        if let Some((_, waiting)) = self.pending.get_mut(&id) {
            *waiting = Some(call);
        }
    }

    /// Lets go of a settled set: the waiting call goes on.
    pub(crate) fn release(&mut self, request: &QuestionRequest) {
        let Some((_, Some(waiting))) = self.pending.remove(&request.id) else { return };
        // The call may be gone already: then nobody needs the answers.
        drop(waiting.send(answers_of(request)));
    }

    /// Forgets all sets of a turn whose task is gone.
    pub(crate) fn drop_all(&mut self) {
        self.pending.clear();
    }

    /// The set as it stands once this answer is committed.
    ///
    /// # Errors
    /// `not_found`, `capability_required`, or `invalid_params` for answers that do not fit. None consumes anything.
    pub(crate) fn judge(&self, answer: &QuestionRespond, by: &Caller) -> Result<QuestionRequest, RpcError> {
        let (request, _) = self.pending.get(&answer.question_id).ok_or_else(|| {
            RpcError::new(
                ErrorKind::NotFound,
                format!("there is no question {} that waits for an answer", answer.question_id),
                "question/list shows those that do",
            )
        })?;
        may_answer(by)?;
        check_fit(&request.questions, &answer.answers)?;
        Ok(QuestionRequest {
            state: QuestionState::Answered,
            answers: answer.answers.clone(),
            by: Some(by.decided_by()),
            ..request.clone()
        })
    }

    /// All pending sets, as they stand when they end without an answer.
    pub(crate) fn ended(&self, state: QuestionState) -> Vec<QuestionRequest> {
        self.all().into_iter().map(|request| QuestionRequest { state, ..request }).collect()
    }
}

/// What the call that waits is told.
pub(crate) fn answers_of(request: &QuestionRequest) -> Result<Vec<Answer>, Unanswered> {
    match request.state {
        QuestionState::Answered => Ok(request.answers.clone()),
        QuestionState::Pending | QuestionState::Expired => Err(Unanswered::Expired),
        QuestionState::Cancelled => Err(Unanswered::Cancelled),
    }
}

/// A new set, not yet committed.
pub(crate) fn request(
    session: SessionId,
    turn: TurnId,
    call: CallId,
    title: String,
    questions: Vec<Question>,
) -> QuestionRequest {
    let id = QuestionId::new();
    QuestionRequest {
        id,
        short_id: short_id(&id.to_string()),
        session_id: session,
        turn_id: turn,
        tool_use_id: call,
        title,
        questions,
        state: QuestionState::Pending,
        created_at: Timestamp::now(),
        answers: Vec::new(),
        by: None,
    }
}

/// What the loser of a race for an answer is told.
pub(crate) fn already_settled(request: &QuestionRequest) -> RpcError {
    let error = RpcError::new(
        ErrorKind::ApprovalResolved,
        format!("question {} does not wait for an answer any more", request.short_id),
        "nothing to do: the first valid answer counts",
    );
    error.with("question", serde_json::to_value(request).unwrap_or_default())
}

fn check_fit(questions: &[Question], answers: &[Answer]) -> Result<(), RpcError> {
    let misfit = |fact: String| {
        RpcError::new(
            ErrorKind::InvalidParams,
            fact,
            "give one answer for each question: labels from its options, or text",
        )
    };
    if questions.len() != answers.len() {
        return Err(misfit(format!("{} answers for {} questions", answers.len(), questions.len())));
    }
    for (question, answer) in questions.iter().zip(answers) {
        let unknown =
            answer.selected.iter().find(|label| question.options.iter().all(|option| option.label != **label));
        if let Some(label) = unknown {
            return Err(misfit(format!("`{label}` is not an option of `{}`", question.question)));
        }
        if answer.selected.len() > 1 && !question.multi_select {
            return Err(misfit(format!("`{}` takes one option, not {}", question.question, answer.selected.len())));
        }
        if answer.selected.is_empty() && answer.text.as_deref().unwrap_or_default().trim().is_empty() {
            return Err(misfit(format!("`{}` has no answer", question.question)));
        }
    }
    Ok(())
}
