//! `todo_write`: the model's own plan, which people see.

use async_trait::async_trait;
use foundation::{
    Access, Effect, ErrorCode, ResultPolicy, Todo, Tool, ToolClass, ToolContext, ToolError, ToolOutcome, ToolOutput,
    ToolSpec, parameters,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Broken, TodoList, Write, is_open, listing};

/// The tool that writes a session's task list.
#[derive(Debug)]
pub struct TodoWrite {
    spec: ToolSpec,
    list: TodoList,
}

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// The entries to write. Ids are short and stay the same over the life of an entry.
    todos: Vec<Todo>,
    /// True: change only the entries given, by id, and add the new ones. False: this is the whole list.
    #[serde(default)]
    merge: bool,
}

impl TodoWrite {
    /// Writes to `list`.
    #[must_use]
    pub fn new(list: TodoList) -> Self {
        let spec = ToolSpec {
            name: "todo_write",
            description: "Writes the task list of this session, which the user sees. Use it for work of three or more \
                          steps: write the plan first, keep exactly one entry in_progress while you work on it, and \
                          mark it completed as soon as it is done.",
            parameters: parameters::<Input>(),
            class: ToolClass::Read,
            policy: ResultPolicy::Head { max_bytes: 16 << 10 },
        };
        Self { spec, list }
    }
}

#[async_trait]
impl Tool for TodoWrite {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _: &Value) -> Access {
        Access::Nothing
    }

    async fn invoke(&self, input: Value, _: &ToolContext<'_>, _: &CancellationToken) -> ToolOutcome {
        let Input { todos, merge } = serde_json::from_value(input).map_err(|error| {
            let hint = "send `todos` as a list of {id, content, status}";
            ToolError::new(ErrorCode::InvalidInput, format!("the task list could not be read: {error}"), hint)
        })?;
        let how = if merge { Write::Merged } else { Write::All };
        let todos = self.list.write(todos, how).map_err(refusal)?;
        let open = todos.iter().filter(|todo| is_open(todo)).count();
        let summary = format!("{} of {} tasks open", open, todos.len());
        let text = format!("{summary}\n{}", listing(&todos));
        Ok(ToolOutput { summary, text, detail: None, effect: Some(Effect::Todos(todos)) })
    }
}

fn refusal(broken: Broken) -> ToolError {
    match broken {
        Broken::Doubled(id) => ToolError::new(
            ErrorCode::InvalidInput,
            format!("the task list was not changed: two entries have the id `{id}`"),
            "Give each entry its own id, then send the list again.",
        ),
        Broken::ManyInProgress(ids) => ToolError::new(
            ErrorCode::InvalidInput,
            format!("the task list was not changed: {} entries would be in_progress ({})", ids.len(), ids.join(", ")),
            "Keep one entry in_progress and set the others to pending or completed, then send the list again.",
        ),
    }
}
