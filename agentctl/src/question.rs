//! Questions of a model: how one is shown, and what a typed line means as its answer. Pure.

use protocol::approval::{Answer, Question, QuestionRequest};

use crate::render::Paint;
use crate::untrusted::Untrusted;

/// One question with its numbered options. Ends in a newline. `index` counts from 0.
pub(crate) fn show(request: &QuestionRequest, index: usize, paint: Paint) -> String {
    let Some(question) = request.questions.get(index) else { return String::new() };
    let count = request.questions.len();
    let place = if count > 1 { format!(" {} of {count}", index + 1) } else { String::new() };
    let head = format!("? question{place} [{}]  {}", request.short_id, Untrusted::new(&question.question).escaped());
    let mut text = format!("{}\n", paint.bold(&head));
    for (number, choice) in question.options.iter().enumerate() {
        let label = Untrusted::new(&choice.label).one_line(120);
        let about = Untrusted::new(&choice.description).one_line(300);
        let about = if about.is_empty() { about } else { paint.dim(&format!("  {about}")) };
        text.push_str(&format!("  {}  {label}{about}\n", number + 1));
    }
    let several = if question.multi_select { "one or more numbers such as 1,2" } else { "a number" };
    text.push_str(&format!("  type {several}, or your own words\n"));
    text
}

/// Understands a line as the answer to a question.
///
/// # Errors
/// A sentence that says what would be an answer.
pub(crate) fn answer(line: &str, question: &Question) -> Result<Answer, String> {
    let line = line.trim();
    let last = question.options.len();
    if line.is_empty() {
        return Err(format!("no answer: type a number from 1 to {last}, or your own words"));
    }
    let is_numbers = line.chars().all(|c| c.is_ascii_digit() || c == ',' || c.is_whitespace());
    if !is_numbers {
        let known = question.options.iter().find(|choice| choice.label.eq_ignore_ascii_case(line));
        return Ok(match known {
            Some(choice) => Answer { selected: vec![choice.label.clone()], text: None },
            None => Answer { selected: Vec::new(), text: Some(line.to_owned()) },
        });
    }
    let mut selected = Vec::new();
    for number in line.split([',', ' ', '\t']).filter(|part| !part.is_empty()) {
        let choice = number.parse::<usize>().ok().and_then(|number| question.options.get(number.wrapping_sub(1)));
        let choice = choice.ok_or_else(|| format!("no option {number}: type a number from 1 to {last}"))?;
        if !selected.contains(&choice.label) {
            selected.push(choice.label.clone());
        }
    }
    if selected.len() > 1 && !question.multi_select {
        return Err("only one option can be chosen here".into());
    }
    if selected.is_empty() {
        return Err(format!("no answer: type a number from 1 to {last}, or your own words"));
    }
    Ok(Answer { selected, text: None })
}

/// What was answered, in one line.
pub(crate) fn settled(request: &QuestionRequest) -> String {
    let given: Vec<String> = request
        .answers
        .iter()
        .map(|answer| {
            let words = answer.text.iter().map(String::as_str);
            answer.selected.iter().map(String::as_str).chain(words).collect::<Vec<_>>().join(", ")
        })
        .collect();
    let by = request.by.as_ref().map(|by| format!(" by {}", crate::approve::decided_by(by))).unwrap_or_default();
    let state = format!("{:?}", request.state).to_lowercase();
    let given = Untrusted::new(&given.join("; ")).one_line(200);
    format!("[{}] question {state}{by}{}{given}", request.short_id, if given.is_empty() { "" } else { ": " })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use protocol::approval::Choice;

    use super::*;
    use crate::fake;

    fn question(multi_select: bool) -> Question {
        let choice = |label: &str| Choice { label: label.into(), description: format!("the {label} one") };
        Question {
            question: "Which database?".into(),
            header: "db".into(),
            options: vec![choice("SQLite"), choice("Postgres")],
            multi_select,
        }
    }

    #[track_caller]
    fn check(line: &str, multi_select: bool, expected: Result<(&[&str], Option<&str>), &str>) {
        let got = answer(line, &question(multi_select));
        let got = got
            .as_ref()
            .map(|answer| (answer.selected.iter().map(String::as_str).collect::<Vec<_>>(), answer.text.as_deref()));
        match (got, expected) {
            (Ok((selected, text)), Ok(expected)) => assert_eq!((&selected[..], text), expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (got, expected) => panic!("{line}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn numbers_choose_and_words_are_free() {
        check("2", false, Ok((&["Postgres"], None)));
        check("1, 2", true, Ok((&["SQLite", "Postgres"], None)));
        check("1 1", true, Ok((&["SQLite"], None)));
        check("sqlite", false, Ok((&["SQLite"], None)));
        check("none, use files", false, Ok((&[], Some("none, use files"))));
        check("1,2", false, Err("only one"));
        check("3", false, Err("no option 3"));
        check("0", false, Err("no option 0"));
        check("", false, Err("no answer"));
        check(",", false, Err("no answer"));
    }

    #[test]
    fn a_question_is_shown_with_numbers() {
        let mut request = fake::question("q1");
        request.questions = vec![question(false), question(true)];
        assert_snapshot!(show(&request, 1, Paint::Plain), @r"
        ? question 2 of 2 [q1]  Which database?
          1  SQLite  the SQLite one
          2  Postgres  the Postgres one
          type one or more numbers such as 1,2, or your own words
        ");
    }
}
