//! The one thing a person is asked at the moment, and whether what was typed can be its answer. Pure.
//!
//! Requests are asked one after the other, oldest first. What was typed before a request stood on the screen is never
//! its answer.

use protocol::approval::{Answer, Approval, QuestionRequest};

use uuid::Uuid;

use crate::approve::{self, Reply};
use crate::question;
use crate::render::Paint;
use crate::view::View;

/// What is being asked.
#[derive(Debug)]
enum Ask {
    Approval(Box<Approval>),
    Question { request: Box<QuestionRequest>, answers: Vec<Answer> },
}

/// What a typed line leads to.
#[derive(Debug)]
pub(super) enum Outcome {
    Approval(Box<Approval>, Reply),
    Answers(Box<QuestionRequest>, Vec<Answer>),
    /// The next question of the same request.
    Next(String),
    /// It was no answer; the text says why.
    Not(String),
}

/// Who is asked what.
#[derive(Debug, Default)]
pub(super) struct Asks {
    current: Option<Ask>,
    /// Counts what was drawn; typed lines say after which one they were begun.
    number: u64,
    /// Answered here, while the event that says so is on its way: not asked again.
    answered: Vec<Uuid>,
}

impl Asks {
    pub(super) fn is_asking(&self) -> bool {
        self.current.is_some()
    }

    /// The number of the newest that was drawn.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Follows what waits: drops what is settled, and gives the text of what is to be asked next.
    pub(super) fn follow(&mut self, view: &View, paint: Paint) -> Option<String> {
        let approvals: Vec<&Approval> =
            view.approvals.iter().filter(|approval| !self.answered.contains(&approval.id.0)).collect();
        let questions: Vec<&QuestionRequest> =
            view.questions.iter().filter(|request| !self.answered.contains(&request.id.0)).collect();
        let still_waits = match &self.current {
            Some(Ask::Approval(asked)) => {
                approvals.iter().any(|approval| approval.id == asked.id && approval.revision == asked.revision)
            }
            Some(Ask::Question { request, .. }) => questions.iter().any(|other| other.id == request.id),
            None => false,
        };
        if still_waits {
            return None;
        }
        self.current = match (approvals.first(), questions.first()) {
            (Some(&approval), _) => Some(Ask::Approval(Box::new(approval.clone()))),
            (None, Some(&request)) => Some(Ask::Question { request: Box::new(request.clone()), answers: Vec::new() }),
            (None, None) => None,
        };
        let text = self.text(paint)?;
        let more = approvals.len() + questions.len() - 1;
        let more = if more > 0 { format!("  ({more} more after this)\n") } else { String::new() };
        Some(format!("{text}{more}"))
    }

    /// What is asked now, again.
    pub(super) fn again(&mut self, paint: Paint) -> Option<String> {
        self.text(paint)
    }

    /// The answer did not get through: what waits is asked again.
    pub(super) fn take_back(&mut self) {
        self.answered.clear();
    }

    fn text(&mut self, paint: Paint) -> Option<String> {
        let text = match self.current.as_ref()? {
            Ask::Approval(approval) => approve::show(approval, paint),
            Ask::Question { request, answers } => question::show(request, answers.len(), paint),
        };
        self.number += 1;
        Some(text)
    }

    /// Takes a typed line. `begun_after`: the number of the ask that stood there when its first key was typed.
    pub(super) fn take(&mut self, line: &str, begun_after: u64, paint: Paint) -> Option<Outcome> {
        if begun_after < self.number && !line.trim().is_empty() && self.current.is_some() {
            let why = "that was begun before the request was shown, so it is no answer (arrow up brings it back)";
            return Some(Outcome::Not(why.into()));
        }
        let outcome = match self.current.as_mut()? {
            Ask::Approval(approval) => match approve::reply(line, approval) {
                Reply::Unclear(why) => Outcome::Not(why),
                reply => Outcome::Approval(approval.clone(), reply),
            },
            Ask::Question { request, answers } => {
                let Some(question) = request.questions.get(answers.len()) else {
                    return Some(Outcome::Answers(request.clone(), answers.clone()));
                };
                match question::answer(line, question) {
                    Err(why) => return Some(Outcome::Not(why)),
                    Ok(answer) => answers.push(answer),
                }
                if answers.len() == request.questions.len() {
                    Outcome::Answers(request.clone(), std::mem::take(answers))
                } else {
                    Outcome::Next(self.text(paint)?)
                }
            }
        };
        let answered = match &outcome {
            Outcome::Approval(approval, _) => Some(approval.id.0),
            Outcome::Answers(request, _) => Some(request.id.0),
            Outcome::Next(_) | Outcome::Not(_) => None,
        };
        if answered.is_some() {
            self.answered.extend(answered);
            self.current = None;
        }
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    fn view() -> View {
        let mut view = View::new(fake::session(fake::SESSION, "/a", 1));
        view.ask(&fake::approval("k3"));
        view
    }

    #[test]
    fn what_was_typed_before_the_request_was_drawn_is_no_answer() {
        let (mut view, mut asks) = (view(), Asks::default());
        assert!(asks.take("y", 0, Paint::Plain).is_none(), "nothing is asked");
        assert!(asks.follow(&view, Paint::Plain).unwrap().contains("[k3]"));
        assert!(asks.follow(&view, Paint::Plain).is_none(), "drawn once");
        assert!(matches!(asks.take("y", 0, Paint::Plain), Some(Outcome::Not(_))));
        assert!(matches!(asks.take("y", 1, Paint::Plain), Some(Outcome::Approval(_, Reply::Allow { .. }))));
        assert!(!asks.is_asking() && asks.take("", 1, Paint::Plain).is_none(), "one yes answers one request");
        assert!(asks.follow(&view, Paint::Plain).is_none(), "its event is on the way");
        asks.take_back();
        assert!(asks.follow(&view, Paint::Plain).is_some(), "the answer did not get through");
        view.approvals.clear();
        assert!(asks.follow(&view, Paint::Plain).is_none());
        assert!(!asks.is_asking(), "answered elsewhere, asked no more");
    }

    #[test]
    fn a_changed_request_is_asked_again() {
        let (mut view, mut asks) = (view(), Asks::default());
        asks.follow(&view, Paint::Plain).unwrap();
        let mut changed = fake::approval("k3");
        changed.revision = 2;
        view.ask(&changed);
        assert!(asks.follow(&view, Paint::Plain).is_some());
        assert!(matches!(asks.take("y", 1, Paint::Plain), Some(Outcome::Not(_))), "the yes was to the old one");
    }

    #[test]
    fn questions_are_answered_one_by_one() {
        let mut view = View::new(fake::session(fake::SESSION, "/a", 1));
        let mut request = fake::question("q1");
        let question = serde_json::json!({
            "question": "Which?", "header": "h", "options": [{"label": "A"}, {"label": "B"}],
        });
        let question: protocol::approval::Question = serde_json::from_value(question).unwrap();
        request.questions = vec![question.clone(), question];
        view.question(&request);
        let mut asks = Asks::default();
        assert!(asks.follow(&view, Paint::Plain).unwrap().contains("question 1 of 2"));
        assert!(matches!(asks.take("9", 1, Paint::Plain), Some(Outcome::Not(_))));
        assert!(matches!(asks.take("2", 1, Paint::Plain), Some(Outcome::Next(_))));
        let Some(Outcome::Answers(_, answers)) = asks.take("my own", 2, Paint::Plain) else { panic!() };
        assert_eq!((answers[0].selected[0].as_str(), answers[1].text.as_deref()), ("B", Some("my own")));
    }
}
