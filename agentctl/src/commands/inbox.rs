//! `approvals`, `allow`, `deny`, `answer`: the inbox of all sessions.

use protocol::api::{self, ApprovalRole};
use protocol::approval::{Approval, ApprovalState, Decision, QuestionRequest, Scope};
use protocol::method;
use serde_json::json;

use crate::args::Form;
use crate::commands::open;
use crate::connect::Connection;
use crate::exit::Failure;
use crate::output;
use crate::render::Paint;
use crate::world::World;
use crate::{approve, naming, question};

/// What waits, in all sessions; with `--json`, one array whose entries tell their `kind`.
pub(super) async fn approvals(world: &World, form: Form) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let approvals = list(&connection, None).await?;
    let questions = questions(&connection).await?;
    if form.json {
        let marked = |kind: &str, value: serde_json::Value| {
            let mut value = value;
            value["kind"] = kind.into();
            value
        };
        let all: Vec<_> = approvals
            .iter()
            .map(|approval| marked("approval", json!(approval)))
            .chain(questions.iter().map(|question| marked("question", json!(question))))
            .collect();
        return output::json(&all);
    }
    if approvals.is_empty() && questions.is_empty() {
        output::note("nothing waits for you");
    }
    for approval in &approvals {
        output::text(&waiting(approval, world.paint))?;
    }
    for request in &questions {
        output::text(&asked(request, world.paint))?;
    }
    Ok(())
}

/// Says yes.
pub(super) async fn allow(world: &World, id: &str, scope: Scope) -> Result<(), Failure> {
    respond(world, id, Decision::Allow, scope, None).await
}

/// Says no.
pub(super) async fn deny(world: &World, id: &str, message: Option<String>) -> Result<(), Failure> {
    respond(world, id, Decision::Deny, Scope::Once, message).await
}

async fn respond(
    world: &World,
    id: &str,
    decision: Decision,
    scope: Scope,
    message: Option<String>,
) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Answer).await?;
    let approvals = list(&connection, None).await?;
    let approval = match naming::pick(&approvals, id, "waiting approval", "agentctl approvals", approval_ids) {
        Ok(approval) => approval,
        // Too short for one of those that wait: nothing else is meant.
        Err(failure) if approvals.iter().any(|approval| approval.id.to_string().starts_with(id)) => {
            return Err(failure);
        }
        Err(failure) => return Err(something_else(&connection, id, failure).await?),
    };
    let (approval_id, revision) = (approval.id, Some(approval.revision));
    let params = api::ApprovalRespond { approval_id, revision, decision, scope, rule: None, message };
    let settled = connection.call::<method::ApprovalRespond>(params).await?;
    output::line(&approve::settled(&settled.approval))
}

fn approval_ids(approval: &Approval) -> (String, String) {
    (approval.short_id.clone(), approval.id.to_string())
}

fn question_ids(request: &QuestionRequest) -> (String, String) {
    (request.short_id.clone(), request.id.to_string())
}

/// Why no waiting approval has this id: it is a question's, or somebody was first. Else `unknown`.
async fn something_else(connection: &Connection, id: &str, unknown: Failure) -> Result<Failure, Failure> {
    if let Ok(request) = naming::pick(&questions(connection).await?, id, "", "", question_ids) {
        return Ok(Failure::usage(format!(
            "`{id}` is a question, and no request for a yes (hint: agentctl answer {} {})",
            request.short_id,
            blanks(request)
        )));
    }
    let over = [ApprovalState::Allowed, ApprovalState::Denied, ApprovalState::Expired, ApprovalState::Cancelled];
    for state in over {
        if let Ok(approval) = naming::pick(&list(connection, Some(state)).await?, id, "", "", approval_ids) {
            let settled = approve::settled_before(approval);
            return Ok(Failure::other(format!("{settled} (hint: nothing to do, the first answer counts)")));
        }
    }
    Ok(unknown)
}

/// Answers every question of one request.
pub(super) async fn answer(world: &World, id: &str, answers: &[String]) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Answer).await?;
    let requests = questions(&connection).await?;
    let request = naming::pick(&requests, id, "waiting question", "agentctl approvals", question_ids)?;
    let count = request.questions.len();
    if answers.len() != count {
        let all: String = (0..count).map(|at| question::show(request, at, Paint::Plain)).collect();
        return Err(Failure::usage(format!("{count} answers are needed, {} were given\n{all}", answers.len())));
    }
    let answers = request
        .questions
        .iter()
        .zip(answers)
        .map(|(question, line)| question::answer(line, question).map_err(Failure::usage))
        .collect::<Result<_, _>>()?;
    let params = api::QuestionRespond { question_id: request.id, answers };
    let settled = connection.call::<method::QuestionRespond>(params).await?;
    output::line(&question::settled(&settled.question))
}

/// The approvals in one state; those that wait for `None`.
async fn list(connection: &Connection, state: Option<ApprovalState>) -> Result<Vec<Approval>, Failure> {
    let ask = api::ApprovalList { session_id: None, state };
    Ok(connection.call::<method::ApprovalList>(ask).await?.approvals)
}

async fn questions(connection: &Connection) -> Result<Vec<QuestionRequest>, Failure> {
    let ask = api::QuestionList { session_id: None, state: None };
    Ok(connection.call::<method::QuestionList>(ask).await?.questions)
}

/// A request for consent for somebody who is not in a chat: whole, and the commands that answer it.
pub(super) fn waiting(approval: &Approval, paint: Paint) -> String {
    let id = &approval.short_id;
    let scopes: String = approval
        .options
        .iter()
        .filter(|option| option.decision == Decision::Allow && option.scope != Scope::Once)
        .map(|option| {
            let scope = crate::render::wire_name(&option.scope);
            let rule = option
                .rule
                .as_deref()
                .map(|rule| format!("   # {}", crate::untrusted::Untrusted::new(rule).one_line(200)));
            format!("  agentctl allow {id} --scope {scope}{}\n", rule.unwrap_or_default())
        })
        .collect();
    format!("{}  agentctl allow {id}\n{scopes}  agentctl deny {id} [-m WHY]\n", approve::request(approval, paint))
}

/// A set of questions for somebody who is not in a chat.
pub(super) fn asked(request: &QuestionRequest, paint: Paint) -> String {
    let questions: String = (0..request.questions.len()).map(|at| question::show(request, at, paint)).collect();
    format!("{questions}  agentctl answer {} {}\n", request.short_id, blanks(request))
}

/// Where the answers stand in the command.
fn blanks(request: &QuestionRequest) -> String {
    vec!["ANSWER"; request.questions.len()].join(" ")
}

#[cfg(test)]
mod tests;
