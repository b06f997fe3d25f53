//! A store to try things in, and the smallest events that are still real ones.

use std::path::PathBuf;

use jiff::Timestamp;
use protocol::{
    Actor, Approval, ApprovalId, ApprovalState, Cursor, Event, EventBody, Mode, NoClientPolicy, NoticeLevel, Part,
    QuestionId, QuestionRequest, QuestionState, Seq, Session, SessionId, SessionStatus, Turn, TurnId, TurnState, Usage,
};
use protocol::{Delivery, ResumePolicy};
use serde_json::json;
use tempfile::TempDir;

use crate::store::{Entry, NewEvent, Store, WorkbenchRows};

/// A store in a directory of its own.
pub(in crate::store) struct House {
    pub(in crate::store) dir: TempDir,
    pub(in crate::store) store: Store,
}

impl House {
    pub(in crate::store) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("agentd.db")).unwrap();
        Self { dir, store }
    }

    pub(in crate::store) fn path(&self) -> PathBuf {
        self.dir.path().join("agentd.db")
    }

    /// A session whose first event is there.
    pub(in crate::store) async fn session(&self) -> Session {
        let session = session("first");
        self.store.append(entry(&session, 1, vec![created(&session)])).await.unwrap();
        session
    }

    /// Appends after the session's last event.
    pub(in crate::store) async fn tell(&self, session: &Session, bodies: Vec<EventBody>) {
        let last = self.store.session(session.id).await.unwrap().unwrap().last_seq;
        self.store.append(entry(session, last + 1, bodies)).await.unwrap();
    }
}

pub(in crate::store) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(in crate::store) fn session(title: &str) -> Session {
    Session {
        id: SessionId::new(),
        title: title.into(),
        cwd: "/home/me/project".into(),
        model: "offline/rules".into(),
        mode: Mode::Ask,
        status: SessionStatus::Idle,
        created_at: at(1),
        updated_at: at(1),
        last_seq: 0,
        parent_id: None,
        archived: false,
        usage: Usage::default(),
        context_window: 100_000,
        context_used: 0,
        attached: 0,
        no_client_policy: NoClientPolicy::Park,
        resume_policy: ResumePolicy::Ask,
    }
}

pub(in crate::store) fn created(session: &Session) -> EventBody {
    EventBody::SessionCreated { session: session.clone() }
}

pub(in crate::store) fn notice(text: &str) -> EventBody {
    EventBody::Notice { level: NoticeLevel::Info, text: text.into() }
}

pub(in crate::store) fn turn(session: &Session) -> Turn {
    Turn {
        id: TurnId::new(),
        session_id: session.id,
        state: TurnState::Running,
        input: vec![Part::Text { text: "fix it".into() }],
        started_at: at(2),
        ended_at: None,
        usage: Usage::default(),
        error: None,
        delivery: Delivery::Start,
        max_steps: None,
        resumes: 0,
    }
}

pub(in crate::store) fn new_event(session: &Session, seq: Seq, turn: Option<TurnId>, body: EventBody) -> NewEvent {
    let event = Event {
        body,
        session_id: session.id,
        seq: Some(seq),
        cursor: Some(Cursor::new("epoch", seq)),
        ts: at(100 + i64::try_from(seq).unwrap()),
        turn_id: turn,
        actor: Some(Actor::Daemon),
    };
    let json = serde_json::to_string(&event).unwrap().into();
    NewEvent { event, json }
}

pub(in crate::store) fn entry_of(session: &Session, events: Vec<NewEvent>) -> Entry {
    Entry {
        session: session.id,
        events,
        calls: vec![],
        receipts: vec![],
        grants: vec![],
        workbench: WorkbenchRows::default(),
    }
}

pub(in crate::store) fn entry(session: &Session, from: Seq, bodies: Vec<EventBody>) -> Entry {
    entry_of(session, (from..).zip(bodies).map(|(seq, body)| new_event(session, seq, None, body)).collect())
}

pub(in crate::store) fn approval(session: &Session, turn: TurnId, state: ApprovalState) -> Approval {
    serde_json::from_value(json!({
        "id": ApprovalId::new(), "shortId": "k7", "sessionId": session.id, "turnId": turn, "toolUseId": "call_1",
        "tool": "bash", "title": "build", "detail": "make", "risks": [], "options": [], "state": state,
        "revision": 1, "createdAt": at(3),
    }))
    .unwrap()
}

pub(in crate::store) fn question(session: &Session, turn: TurnId, state: QuestionState) -> QuestionRequest {
    serde_json::from_value(json!({
        "id": QuestionId::new(), "shortId": "q1", "sessionId": session.id, "turnId": turn, "toolUseId": "call_2",
        "title": "which", "questions": [], "state": state, "createdAt": at(3),
    }))
    .unwrap()
}
