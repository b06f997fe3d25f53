//! The only way into a session: commands to its mailbox, and the handle that sends them.
//!
//! Whoever holds a handle can ask; only the actor at the other end changes anything.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use agent::{AgentEvent, Halt};
use coding::permissions::{Consent, Unanswered, Verdict};
use protocol::api::{
    ApprovalRespond, ApprovalSettled, Input, QuestionRespond, QuestionSettled, QueueDeleted, QueueListed, QueueUpdated,
    ResumeAction, SessionShown, SessionUpdate, TurnInterrupted, TurnResumed, TurnStart, TurnStarted, TurnWaited, Until,
};
use protocol::{
    Answer, Approval, CallId, ErrorKind, Message, Question, QuestionRequest, RpcError, Session, SessionId, TurnId,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::feed::Feed;
use crate::rpc::Caller;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, RpcError>>;

/// What a session can be asked.
#[derive(Debug)]
pub(crate) enum Command {
    Show(Reply<SessionView>),
    Update {
        change: SessionUpdate,
        by: Caller,
        reply: Reply<SessionShown>,
    },
    StartTurn {
        start: TurnStart,
        by: Caller,
        reply: Reply<TurnStarted>,
    },
    Interrupt {
        turn: Option<TurnId>,
        by: Caller,
        reply: Reply<TurnInterrupted>,
    },
    Resume {
        turn: TurnId,
        action: ResumeAction,
        by: Caller,
        reply: Reply<TurnResumed>,
    },
    ListQueue(Reply<QueueListed>),
    UpdateQueued {
        turn: TurnId,
        input: Input,
        by: Caller,
        reply: Reply<QueueUpdated>,
    },
    DeleteQueued {
        turn: TurnId,
        by: Caller,
        reply: Reply<QueueDeleted>,
    },
    Wait {
        turn: Option<TurnId>,
        until: Until,
        reply: Reply<TurnWaited>,
    },
    Decide {
        answer: ApprovalRespond,
        by: Caller,
        reply: Reply<ApprovalSettled>,
    },
    Answer {
        answer: QuestionRespond,
        by: Caller,
        reply: Reply<QuestionSettled>,
    },
    /// A client that may answer came or went; the handle holds the count.
    AttachmentChanged,
    /// From the session's own turn.
    Turn(TurnSays),
    /// Ends the actor. A turn that runs is let go of by then, so that it can go on in another life of the daemon; without
    /// a moment it is not touched, and the answer is `session_busy`.
    Close {
        park_until: Option<Instant>,
        reply: Reply<()>,
    },
}

/// What a running turn tells its session; each is answered once it is durable.
#[derive(Debug)]
pub(crate) enum TurnSays {
    Happened {
        event: AgentEvent,
        reply: oneshot::Sender<Result<(), Halt>>,
    },
    /// Asks for what people have said to the running turn; it is in the journal before it is answered.
    SaidMeanwhile {
        reply: oneshot::Sender<Result<Vec<Message>, Halt>>,
    },
    AskConsent {
        consent: Consent,
        reply: oneshot::Sender<Verdict>,
    },
    AskPerson {
        call: CallId,
        title: String,
        questions: Vec<Question>,
        reply: oneshot::Sender<Result<Vec<Answer>, Unanswered>>,
    },
}

/// A session and what waits in it for a person.
#[derive(Debug)]
pub(crate) struct SessionView {
    pub(crate) session: Session,
    pub(crate) approvals: Vec<Approval>,
    pub(crate) questions: Vec<QuestionRequest>,
}

/// A session that is in memory.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    pub(crate) id: SessionId,
    pub(crate) feed: Arc<Feed>,
    pub(crate) mailbox: mpsc::Sender<Command>,
    /// Clients that watch this session and may answer for it.
    pub(crate) attached: Arc<AtomicU32>,
}

impl SessionHandle {
    /// True when this is the only way to the session.
    pub(crate) fn is_unused(&self) -> bool {
        self.mailbox.strong_count() == 1
    }

    /// Sends one command and waits for its answer.
    pub(crate) async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, RpcError> {
        let (reply, answer) = oneshot::channel();
        let gone = || {
            RpcError::new(
                ErrorKind::Draining,
                format!("session {} is being closed", self.id),
                "try again in a second; if the daemon is stopping, start it again",
            )
        };
        self.mailbox.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
