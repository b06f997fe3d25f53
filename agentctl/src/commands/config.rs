//! `models`, `tools`, `config`: what is in force, and where it comes from.

use protocol::api::{self, ApprovalRole, ConfigValue, Empty};
use protocol::method;

use crate::args::Form;
use crate::commands::list::table;
use crate::commands::open;
use crate::exit::Failure;
use crate::output;
use crate::untrusted::Untrusted;
use crate::world::World;

/// A tool's first sentence, at most so long.
const ABOUT_CHARS: usize = 100;

/// The models that can be named.
pub(super) async fn models(world: &World, form: Form) -> Result<(), Failure> {
    let listed = open(world, ApprovalRole::Observe).await?.call::<method::ModelList>(Empty {}).await?;
    if form.json {
        return output::json(&listed.models);
    }
    let rows = listed.models.iter().map(|model| {
        let ready = if model.ready { "ready" } else { "no key" };
        let default = if model.default { "default" } else { "" };
        vec![model.name.clone(), model.api.clone(), model.context_window.to_string(), ready.into(), default.into()]
    });
    output::text(&table(&["MODEL", "API", "CONTEXT", "STATE", ""], rows))
}

/// The tools that a model is offered.
pub(super) async fn tools(world: &World, form: Form) -> Result<(), Failure> {
    let ask = api::ToolList { session_id: None };
    let listed = open(world, ApprovalRole::Observe).await?.call::<method::ToolList>(ask).await?;
    if form.json {
        return output::json(&listed.tools);
    }
    let rows = listed.tools.iter().map(|tool| {
        let about = tool.description.split(['.', '\n']).next().unwrap_or_default();
        vec![tool.name.clone(), tool.class.clone(), Untrusted::new(about).one_line(ABOUT_CHARS)]
    });
    output::text(&table(&["TOOL", "CLASS", "ABOUT"], rows))
}

/// Each setting with its layer; `config explain KEY` and `config KEY` are the same.
pub(super) async fn config(world: &World, mut key: Vec<String>, form: Form) -> Result<(), Failure> {
    if key.first().is_some_and(|word| word == "explain") {
        key.remove(0);
    }
    if key.len() > 1 {
        return Err(Failure::usage("`config` explains one key or all (hint: agentctl config limits.maxSteps)"));
    }
    let ask = api::ConfigExplain { key: key.pop(), cwd: Some(world.cwd.clone()) };
    let explained = open(world, ApprovalRole::Observe).await?.call::<method::ConfigExplain>(ask).await?;
    if form.json {
        return output::json(&explained);
    }
    let rows =
        explained.values.iter().map(|value| vec![value.key.clone(), value.value.to_string(), value.layer.clone()]);
    output::text(&table(&["KEY", "VALUE", "FROM"], rows))?;
    output::text(&format!("{}\n", ignored(&explained.values)))?;
    let files = explained
        .files
        .iter()
        .map(|file| vec![file.path.display().to_string(), file.layer.clone(), file.state.clone()]);
    output::text(&table(&["FILE", "LAYER", "STATE"], files))
}

/// What was ignored and why, one reason a line. Keys that share a reason share its line.
fn ignored(values: &[ConfigValue]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for value in values {
        for reason in &value.ignored {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, keys)) => keys.push(&value.key),
                None => reasons.push((reason, vec![&value.key])),
            }
        }
    }
    let line = |(reason, keys): &(&str, Vec<&str>)| {
        format!("! {}: {}\n", keys.join(", "), Untrusted::new(reason).one_line(300))
    };
    reasons.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn keys_that_share_a_reason_share_its_line() {
        let value = |key: &str, ignored: &[&str]| ConfigValue {
            key: key.into(),
            value: Value::Null,
            layer: "user".into(),
            ignored: ignored.iter().map(|reason| (*reason).to_owned()).collect(),
        };
        let values = [value("a", &["no effect", "line 3\u{1b}"]), value("b", &[]), value("c", &["no effect"])];
        assert_eq!(ignored(&values), "! a, c: no effect\n! a: line 3<U+001B>\n");
        assert_eq!(ignored(&[]), "");
    }
}
