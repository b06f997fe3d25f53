//! Reminds a model of a task list that it seems to have forgotten.

use async_trait::async_trait;
use foundation::Message;

use super::{TodoList, is_open, listing};
use crate::context::{ModelContext, RunContext};
use crate::middleware::{HookResult, Middleware, ModelPatch};

/// Shows the list again at the end of a request, so that the cached part of the request stays the same.
#[derive(Debug)]
pub struct TodoReminder {
    list: TodoList,
    remind_after: u32,
}

impl TodoReminder {
    /// Reminds at every `remind_after`th model call (10 is usual) in which the list was not written while something on
    /// it is open.
    #[must_use]
    pub fn new(list: TodoList, remind_after: u32) -> Self {
        Self { list, remind_after }
    }

    /// Counts a model call, and says whether it is time.
    fn is_due(&self) -> bool {
        let mut listed = self.list.lock();
        listed.since_write = listed.since_write.saturating_add(1);
        listed.since_reminder = listed.since_reminder.saturating_add(1);
        let is_due = listed.todos.iter().any(is_open)
            && listed.since_write >= self.remind_after
            && listed.since_reminder >= self.remind_after;
        if is_due {
            listed.since_reminder = 0;
        }
        is_due
    }
}

#[async_trait]
impl Middleware for TodoReminder {
    fn name(&self) -> &'static str {
        "todos"
    }

    async fn before_model(&self, _: &RunContext, _: &ModelContext<'_>) -> HookResult<ModelPatch> {
        if !self.is_due() {
            return Ok(ModelPatch::default());
        }
        let text = format!(
            "The task list was not written for a while. If it no longer says where the work stands, bring it up to \
             date; do not mention this reminder.\n{}",
            listing(&self.list.todos())
        );
        Ok(ModelPatch { reminders: vec![Message::user_text(text).synthetic("reminder")], ..ModelPatch::default() })
    }
}
