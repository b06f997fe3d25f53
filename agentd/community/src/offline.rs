//! The model that needs no key and no network: it follows rules, or plays a script.
//!
//! Everything but the thinking is real. It decides from the request alone and holds nothing between two calls, so the
//! same transcript always gets the same answer.

mod intent;
mod rules;
mod script;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use foundation::{
    Message, Model, ModelError, ModelErrorKind, ModelLimits, ModelRequest, ModelStream, StopReason, Usage,
};
use serde_json::Map;
use tokio::time::sleep;

use crate::config::Profile;
use crate::draft::{Draft, Place};

/// The offline model in one of its forms.
#[derive(Debug)]
pub(crate) struct Offline {
    profile: Profile,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Rules,
    Script(PathBuf),
}

/// One thing that happens in an answer.
#[derive(Clone, PartialEq, Debug)]
enum Action {
    Say(String),
    Think(String),
    /// `arguments` is what the model writes, JSON or not.
    Call {
        id: Option<String>,
        name: String,
        arguments: String,
    },
    Count(Usage),
    Wait(Duration),
    /// Silence until the caller would give up.
    Stall(Duration),
    Fail(ModelError),
    /// The end of the stream without the end marker.
    Cut,
    Stop(StopReason),
}

impl Offline {
    /// # Errors
    /// The fact and the next step, if the model's name is neither `rules` nor `script:FILE`.
    pub(crate) fn new(profile: Profile) -> Result<Self, (String, &'static str)> {
        let form = match profile.model.strip_prefix("script:") {
            Some(file) if !file.is_empty() => Form::Script(file.into()),
            None if profile.model == "rules" => Form::Rules,
            _ => {
                let fact = format!("there is no model `{}`", profile.model);
                return Err((fact, "use offline/rules or offline/script:FILE"));
            }
        };
        Ok(Self { profile, form })
    }
}

#[async_trait]
impl Model for Offline {
    fn name(&self) -> &str {
        &self.profile.name
    }

    fn limits(&self) -> ModelLimits {
        self.profile.limits
    }

    async fn stream(&self, request: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError> {
        let mut actions = VecDeque::from(match &self.form {
            Form::Rules => rules::answer(&request),
            Form::Script(file) => script::answer(file, &request).await?,
        });
        // A script that fails before it says anything refuses the request, as a server does with its status.
        while let Some(Action::Wait(_) | Action::Fail(_)) = actions.front() {
            match actions.pop_front() {
                Some(Action::Wait(time)) => sleep(time).await,
                Some(Action::Fail(error)) => return Err(error),
                _ => break,
            }
        }
        let draft = Draft::new(&self.profile, &request);
        Ok(Box::new(Playing { actions, draft, open: None, stop: StopReason::End, over: false }))
    }
}

/// An answer being played.
struct Playing {
    actions: VecDeque<Action>,
    draft: Draft,
    /// The part that is being written; `true` for thinking.
    open: Option<(bool, Place)>,
    stop: StopReason,
    over: bool,
}

impl Playing {
    fn write(&mut self, thinking: bool, piece: &str) {
        let place = match self.open {
            Some((open, place)) if open == thinking => place,
            _ if thinking => self.draft.open_thinking(),
            _ => self.draft.open_text(),
        };
        self.open = Some((thinking, place));
        self.draft.append(place, piece);
    }

    /// Plays until the answer has grown; `false` at its end.
    async fn advance(&mut self) -> Result<bool, ModelError> {
        while let Some(action) = self.actions.pop_front() {
            match action {
                Action::Say(piece) => self.write(false, &piece),
                Action::Think(piece) => self.write(true, &piece),
                Action::Call { id, name, arguments } => {
                    let place = self.draft.open_call(id.as_deref(), &name, Map::new());
                    self.draft.append(place, &arguments);
                    self.open = None;
                }
                Action::Count(usage) => {
                    *self.draft.usage() = usage;
                    continue;
                }
                Action::Wait(time) => {
                    sleep(time).await;
                    continue;
                }
                Action::Stall(time) => {
                    sleep(time).await;
                    return Err(broken(ModelErrorKind::Network, &format!("nothing came for {} ms", time.as_millis())));
                }
                Action::Fail(error) => return Err(error),
                Action::Cut => {
                    return Err(broken(ModelErrorKind::Incomplete, "the answer ended without its end marker"));
                }
                Action::Stop(reason) => {
                    self.stop = reason;
                    continue;
                }
            }
            return Ok(true);
        }
        Ok(false)
    }
}

fn broken(kind: ModelErrorKind, fact: &str) -> ModelError {
    ModelError::new(kind, format!("offline: {fact}"), "try again")
}

#[async_trait]
impl ModelStream for Playing {
    async fn next(&mut self) -> Option<Result<&Message, ModelError>> {
        if self.over {
            return None;
        }
        // A network would give others a turn here too.
        tokio::task::yield_now().await;
        match self.advance().await {
            Ok(true) => {}
            Ok(false) => {
                self.over = true;
                self.draft.finish(self.stop);
            }
            Err(error) => {
                self.over = true;
                return Some(Err(error));
            }
        }
        Some(Ok(self.draft.message()))
    }
}
