//! Lets the model ask a person what it cannot know.
//!
//! Changes nothing and needs no consent: the question is itself the asking.

use std::sync::Arc;

use async_trait::async_trait;
use foundation::{
    Access, ErrorCode, ResultPolicy, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput, ToolSpec,
    parameters,
};
use protocol::{Answer, Question};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::permissions::{Asker, Unanswered};

const MAX_HEADER: usize = 12;

const DESCRIPTION: &str = "Asks the person one to four questions, each with two to four options; they can also answer in \
their own words. Use it when the task depends on what only they know or want, and nothing in the workspace tells. Put \
the option you would take first. Not for consent to a call: that is asked for by itself.";

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Asked together and shown in this order.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Question>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct AskUserQuestion {
    spec: ToolSpec,
    asker: Arc<dyn Asker>,
}

impl AskUserQuestion {
    pub(crate) fn new(asker: Arc<dyn Asker>) -> Self {
        let spec = ToolSpec {
            name: "ask_user_question",
            description: DESCRIPTION,
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: 12_000 },
        };
        Self { spec, asker }
    }
}

#[async_trait]
impl Tool for AskUserQuestion {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _: &Value) -> Access {
        Access::Nothing
    }

    async fn invoke(&self, input: Value, context: &ToolContext<'_>, cancel: &CancellationToken) -> ToolOutcome {
        let invalid =
            |fact: String| ToolError::new(ErrorCode::InvalidInput, fact, "Send the questions again, put right.");
        let title = input.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Input { questions } = Input::deserialize(input).map_err(|error| invalid(error.to_string()))?;
        check(&questions).map_err(invalid)?;
        let answers = self.asker.ask(context.call, &title, questions.clone(), cancel).await.map_err(unanswered)?;
        let text = questions.iter().zip(&answers).map(|(question, answer)| shown(question, answer)).collect::<String>();
        let count = answers.len();
        let summary = if count == 1 { "1 answer".to_owned() } else { format!("{count} answers") };
        Ok(ToolOutput { summary, text, detail: None, effect: None })
    }
}

/// What the schema cannot say.
fn check(questions: &[Question]) -> Result<(), String> {
    if questions.is_empty() || questions.len() > 4 {
        return Err(format!("there are {} questions; 1 to 4 can be asked at once", questions.len()));
    }
    for question in questions {
        let name = &question.header;
        if question.question.trim().is_empty() {
            return Err(format!("the question `{name}` is empty"));
        }
        if name.trim().is_empty() || name.chars().count() > MAX_HEADER {
            return Err(format!("the header `{name}` must have 1 to {MAX_HEADER} characters"));
        }
        if !(2..=4).contains(&question.options.len()) {
            return Err(format!("the question `{name}` has {} options; it needs 2 to 4", question.options.len()));
        }
        for (index, option) in question.options.iter().enumerate() {
            if option.label.trim().is_empty() {
                return Err(format!("option {} of `{name}` has no label", index + 1));
            }
            if question.options[..index].iter().any(|other| other.label == option.label) {
                return Err(format!("two options of `{name}` are both called `{}`", option.label));
            }
        }
    }
    Ok(())
}

fn shown(question: &Question, answer: &Answer) -> String {
    let mut said = answer.selected.clone();
    said.extend(
        answer.text.iter().filter(|text| !text.trim().is_empty()).map(|text| format!("in their words: {text}")),
    );
    let said = if said.is_empty() { "(none of the options)".to_owned() } else { said.join("; ") };
    format!("{}\n→ {said}\n", question.question)
}

fn unanswered(why: Unanswered) -> ToolError {
    match why {
        Unanswered::Declined => ToolError::new(
            ErrorCode::Denied,
            "denied: the person does not want to answer",
            "Go on with what you think best and say what you assumed, or end your turn.",
        ),
        Unanswered::Expired => ToolError::new(
            ErrorCode::TimedOut,
            "nobody answered in time",
            "Go on with what you think best and say what you assumed; ask in your answer if it cannot be assumed.",
        ),
        Unanswered::Cancelled => {
            ToolError::new(ErrorCode::Cancelled, "the question was cancelled", "Nobody answered it.")
        }
    }
}

#[cfg(test)]
mod tests;
