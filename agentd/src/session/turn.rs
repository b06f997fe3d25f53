//! A running turn's way back to its session.
//!
//! The loop observes, asks and streams through this; each event is answered once it is committed, so the loop never
//! runs ahead of the journal. Snapshots go straight to the feed: they promise nothing and wait for nobody.

use std::sync::Arc;

use agent::{AgentEvent, Halt, Observer};
use async_trait::async_trait;
use coding::permissions::{Approver, Asker, Consent, Unanswered, Verdict};
use foundation::LiveOutput;
use protocol::{Answer, CallId, Message, Question, TurnId};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::command::{Command, TurnSays};
use super::feed::Feed;

#[derive(Clone, Debug)]
pub(crate) struct TurnLink {
    turn: TurnId,
    feed: Arc<Feed>,
    mailbox: mpsc::Sender<Command>,
}

impl TurnLink {
    pub(crate) fn new(turn: TurnId, feed: Arc<Feed>, mailbox: mpsc::Sender<Command>) -> Self {
        Self { turn, feed, mailbox }
    }

    /// Says something and waits for the answer; `None` when the session is gone.
    async fn say<T>(&self, says: impl FnOnce(oneshot::Sender<T>) -> TurnSays) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Command::Turn(says(reply))).await.ok()?;
        answer.await.ok()
    }
}

impl LiveOutput for TurnLink {
    fn append(&self, call: &CallId, bytes: &[u8]) {
        self.feed.tool_output(call, self.turn, bytes);
    }
}

#[async_trait]
impl Observer for TurnLink {
    fn snapshot(&self, message: &Message) {
        self.feed.message_updated(message, self.turn);
    }

    async fn event(&self, event: AgentEvent) -> Result<(), Halt> {
        self.say(|reply| TurnSays::Happened { event, reply })
            .await
            .unwrap_or_else(|| Err(Halt("the session was closed while its turn ran".into())))
    }

    async fn said_meanwhile(&self) -> Result<Vec<Message>, Halt> {
        self.say(|reply| TurnSays::SaidMeanwhile { reply })
            .await
            .unwrap_or_else(|| Err(Halt("the session was closed while its turn ran".into())))
    }
}

#[async_trait]
impl Approver for TurnLink {
    async fn ask(&self, consent: Consent, cancel: &CancellationToken) -> Verdict {
        tokio::select! {
            verdict = self.say(|reply| TurnSays::AskConsent { consent, reply }) => verdict.unwrap_or(Verdict::Cancelled),
            () = cancel.cancelled() => Verdict::Cancelled,
        }
    }
}

#[async_trait]
impl Asker for TurnLink {
    async fn ask(
        &self,
        call: &CallId,
        title: &str,
        questions: Vec<Question>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Answer>, Unanswered> {
        let (call, title) = (call.clone(), title.to_owned());
        tokio::select! {
            answers = self.say(|reply| TurnSays::AskPerson { call, title, questions, reply }) => {
                answers.unwrap_or(Err(Unanswered::Cancelled))
            }
            () = cancel.cancelled() => Err(Unanswered::Cancelled),
        }
    }
}
