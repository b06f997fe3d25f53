//! What is wrong with a call's input, field by field, in words that its author can act on. Pure.

use foundation::{ErrorCode, ToolError};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// How many problems are named, and how much of a wrong value is shown, in bytes.
const MOST_PROBLEMS: usize = 20;
const VALUE_BYTES: usize = 80;

/// One line for each bad field: where, what was expected, what came.
pub(crate) fn problems(validator: &Validator, input: &Value) -> Vec<String> {
    validator.iter_errors(input).take(MOST_PROBLEMS).map(|error| problem(&error)).collect()
}

fn problem(error: &ValidationError<'_>) -> String {
    let at = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let field = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let here = if at.is_empty() { "the input" } else { &at };
    let got = shown(error.instance());
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("{}: required, but missing", field(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<_> = unexpected.iter().map(|name| format!("{}: no such parameter", field(name))).collect();
            names.join("\n")
        }
        ValidationErrorKind::Type { kind } => {
            let expected = type_names(kind);
            format!("{here}: expected {expected}, got {got}")
        }
        ValidationErrorKind::Enum { options } => format!("{here}: expected one of {options}, got {got}"),
        _ => format!("{here}: {}, got {got}", error.masked_with("it")),
    }
}

fn type_names(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(set) => {
            let mut names: Vec<_> = set.iter().map(|one| one.to_string()).collect();
            names.sort_by_key(|name| name == "null");
            names.join(" or ")
        }
    }
}

/// The kind of a value and its beginning.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let text = value.to_string();
    let end = text.floor_char_boundary(VALUE_BYTES);
    format!("{kind} {}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

/// The input with each top-level number or boolean that came as a string set right; `None` if there is none. Only for
/// fields that cannot be strings, and only where the string says nothing else.
pub(crate) fn coerced(schema: &Value, input: &Value) -> Option<Value> {
    let mut coerced = input.clone();
    let mut is_changed = false;
    for (name, value) in coerced.as_object_mut()? {
        let Value::String(text) = &*value else { continue };
        let Some(allowed) = schema["properties"][name].get("type") else { continue };
        let allows =
            |kind: &str| allowed == kind || allowed.as_array().is_some_and(|all| all.iter().any(|one| one == kind));
        if allows("string") {
            continue;
        }
        let meant = match serde_json::from_str(text.trim()) {
            Ok(Value::Number(number)) if allows("integer") || allows("number") => Value::Number(number),
            Ok(Value::Bool(bool)) if allows("boolean") => Value::Bool(bool),
            _ => continue,
        };
        *value = meant;
        is_changed = true;
    }
    is_changed.then_some(coerced)
}

/// Why arguments that are not JSON were not run.
pub(crate) fn not_json(name: &str, raw: &str) -> ToolError {
    let (place, near) = match serde_json::from_str::<Value>(raw) {
        Ok(_) => ("they are not one object".into(), String::new()),
        Err(error) => {
            let line = raw.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
            let start = line.floor_char_boundary(error.column().saturating_sub(VALUE_BYTES / 2));
            let end = line.floor_char_boundary(start.saturating_add(VALUE_BYTES));
            (error.to_string(), line[start..end].to_owned())
        }
    };
    ToolError {
        details: (!near.is_empty()).then(|| Value::String(format!("near: {near}"))),
        ..ToolError::new(
            ErrorCode::InvalidInput,
            format!("the arguments of `{name}` are not valid JSON, so it was not run: {place}"),
            "Send the call again with its arguments as one valid JSON object.",
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "line": {"type": ["integer", "null"]},
                "all": {"type": "boolean"},
                "items": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
                    "state": {"enum": ["on", "off"]},
                }}},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    #[track_caller]
    fn check_problems(input: &Value, expected: &[&str]) {
        let validator = jsonschema::draft202012::new(&schema()).unwrap();
        assert_eq!(problems(&validator, input), expected);
    }

    #[test]
    fn each_bad_field_is_named_with_what_was_expected_and_what_came() {
        check_problems(&json!({"path": "a"}), &[]);
        check_problems(&json!({}), &["path: required, but missing"]);
        check_problems(&json!([1]), &["the input: expected object, got array [1]"]);
        check_problems(&json!({"path": "a", "lines": 3}), &["lines: no such parameter"]);
        check_problems(
            &json!({"path": 7, "line": "x"}),
            &["path: expected string, got number 7", "line: expected integer or null, got string \"x\""],
        );
        check_problems(
            &json!({"path": "a", "items": [{"id": 1, "state": "up"}, {}]}),
            &[
                "items.0.state: expected one of [\"on\",\"off\"], got string \"up\"",
                "items.1.id: required, but missing",
            ],
        );
    }

    #[test]
    fn a_huge_wrong_value_is_shown_in_part() {
        let validator = jsonschema::draft202012::new(&schema()).unwrap();
        let problems = problems(&validator, &json!({"path": "a", "all": "ä".repeat(5000)}));
        assert!(problems[0].starts_with("all: expected boolean, got string \"ää") && problems[0].len() < 200);
    }

    #[test]
    fn only_a_number_or_boolean_in_a_string_is_set_right() {
        let coerce = |input| coerced(&schema(), &input);
        assert_eq!(coerce(json!({"path": "5", "line": "12"})), Some(json!({"path": "5", "line": 12})));
        assert_eq!(coerce(json!({"path": "a", "all": "true"})), Some(json!({"path": "a", "all": true})));
        assert_eq!(coerce(json!({"path": "5"})), None);
        assert_eq!(coerce(json!({"path": "a", "line": "twelve"})), None);
        assert_eq!(coerce(json!({"path": "a", "all": "1"})), None);
        assert_eq!(coerce(json!({"path": "a", "items": "[]"})), None);
    }

    #[test]
    fn arguments_that_are_not_json_are_answered_with_the_place() {
        let error = not_json("bash", "{\"command\": \"ls\", }");
        assert!(error.summary.contains("line 1 column 19"), "{error}");
        assert!(error.details.unwrap().as_str().unwrap().contains("\"ls\", }"));
        assert!(not_json("bash", "[1").summary.contains("not valid JSON"));
    }
}
