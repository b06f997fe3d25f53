//! A session's task list: what is on it, the tool that writes it, the reminder that it exists.
//!
//! The list outlives a run: the session makes it once, from what it kept, and lends it to each run's tool and reminder.

mod reminder;
mod write;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foundation::Todo;
use protocol::TodoStatus;

pub use reminder::TodoReminder;
pub use write::TodoWrite;

/// The task list of one session; clones are the same list.
#[derive(Clone, Default, Debug)]
pub struct TodoList(Arc<Mutex<Listed>>);

#[derive(Default, Debug)]
struct Listed {
    todos: Vec<Todo>,
    /// Model calls since the list was last written.
    since_write: u32,
    /// Model calls since the model was last reminded of it, or since it was written.
    since_reminder: u32,
}

impl TodoList {
    /// The list as it was kept.
    #[must_use]
    pub fn new(todos: Vec<Todo>) -> Self {
        let list = Self::default();
        list.replace(todos);
        list
    }

    /// The list as it is.
    #[must_use]
    pub fn todos(&self) -> Vec<Todo> {
        self.lock().todos.clone()
    }

    /// Sets the whole list, as a cleared or rewound session does.
    pub fn replace(&self, todos: Vec<Todo>) {
        *self.lock() = Listed { todos, since_write: 0, since_reminder: 0 };
    }

    /// Writes the list, all of it or only the entries given, and returns it whole. A list that would break a rule
    /// changes nothing.
    fn write(&self, todos: Vec<Todo>, how: Write) -> Result<Vec<Todo>, Broken> {
        if let Some(id) = doubled(&todos) {
            return Err(Broken::Doubled(id.to_owned()));
        }
        let mut listed = self.lock();
        let todos = match how {
            Write::All => todos,
            Write::Merged => merged(&listed.todos, todos),
        };
        let in_progress: Vec<_> =
            todos.iter().filter(|todo| todo.status == TodoStatus::InProgress).map(|todo| todo.id.clone()).collect();
        if in_progress.len() > 1 {
            return Err(Broken::ManyInProgress(in_progress));
        }
        *listed = Listed { todos: todos.clone(), since_write: 0, since_reminder: 0 };
        Ok(todos)
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    All,
    Merged,
}

/// A rule that a list would break.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Broken {
    Doubled(String),
    ManyInProgress(Vec<String>),
}

/// `old` with each of `new` in the place of the entry with its id, or behind all others.
fn merged(old: &[Todo], new: Vec<Todo>) -> Vec<Todo> {
    let mut todos = old.to_vec();
    for entry in new {
        match todos.iter_mut().find(|todo| todo.id == entry.id) {
            Some(todo) => *todo = entry,
            None => todos.push(entry),
        }
    }
    todos
}

fn doubled(todos: &[Todo]) -> Option<&str> {
    let mut seen = HashSet::new();
    todos.iter().map(|todo| todo.id.as_str()).find(|id| !seen.insert(*id))
}

fn is_open(todo: &Todo) -> bool {
    matches!(todo.status, TodoStatus::Pending | TodoStatus::InProgress)
}

fn status_name(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Completed => "completed",
        TodoStatus::Cancelled => "cancelled",
    }
}

/// One line for each entry, for the model.
fn listing(todos: &[Todo]) -> String {
    todos.iter().fold(String::new(), |mut text, Todo { id, content, status }| {
        // Writing into a string cannot go wrong.
        let _ = writeln!(text, "- [{}] {id}: {content}", status_name(*status));
        text
    })
}

#[cfg(test)]
mod tests;
