//! `session/*`.

use std::collections::HashSet;
use std::sync::Arc;

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use protocol::api::{
    ApprovalRole, Empty, From as StartFrom, SessionHistory, SessionHistoryPage, SessionList, SessionListed,
    SessionShown, SessionSubscribe,
};
use protocol::{RpcError, method};
use serde_json::value::RawValue;

use super::House;
use crate::rpc::register::{method, subscription};
use crate::rpc::subscription::{Source, Start};
use crate::rpc::{Caller, Client};
use crate::session::attachment::Attachment;
use crate::session::command::{Command, SessionHandle};
use crate::session::{no_session, place_of, prelude, storage};
use crate::store::SessionFilter;

pub(super) fn register(module: &mut RpcModule<House>) -> Result<(), RegisterMethodError> {
    method::<method::SessionNew, _, _>(module, async |house: Arc<House>, client, new| {
        house.sessions.create(new, &Caller::from(&*client)).await
    })?;
    method::<method::SessionList, _, _>(module, async |house: Arc<House>, _, list| page(&house, list).await)?;
    method::<method::SessionGet, _, _>(module, async |house: Arc<House>, _, get| {
        let view = house.session(get.session_id).await?.ask(Command::Show).await?;
        Ok(SessionShown { seq: Some(view.session.last_seq), session: view.session })
    })?;
    method::<method::SessionUpdate, _, _>(module, async |house: Arc<House>, client, change| {
        let by = Caller::from(&*client);
        house.session(change.session_id).await?.ask(|reply| Command::Update { change, by, reply }).await
    })?;
    method::<method::SessionHistory, _, _>(module, async |house: Arc<House>, _, wanted| history(&house, wanted).await)?;
    method::<method::SessionDelete, _, _>(module, async |house: Arc<House>, _, delete| {
        house.sessions.delete(delete.session_id).await?;
        Ok(Empty {})
    })?;
    subscription::<method::SessionSubscribe, _, _>(module, async |house: Arc<House>, client, wanted| {
        let session = house.session(wanted.session_id).await?;
        source(&house, &client, &session, wanted).await
    })
}

async fn page(house: &House, list: SessionList) -> Result<SessionListed, RpcError> {
    let limit = list.limit.unwrap_or(100).min(1000);
    let filter =
        SessionFilter { cwd: list.cwd, archived: list.archived, query: list.query, cursor: list.cursor, limit };
    let (mut sessions, next_cursor) = house.env.store.sessions(filter).await.map_err(|error| storage(&error))?;
    for session in &mut sessions {
        session.attached = house.sessions.attached(session.id);
    }
    Ok(SessionListed { sessions, next_cursor })
}

async fn history(house: &House, wanted: SessionHistory) -> Result<SessionHistoryPage, RpcError> {
    let SessionHistory { session_id, before, after, limit } = wanted;
    let limit = limit.unwrap_or(1000).clamp(1, 10_000);
    let store = &house.env.store;
    if store.session(session_id).await.map_err(|error| storage(&error))?.is_none() {
        return Err(no_session(session_id));
    }
    let page = store.history(session_id, after, before, limit).await.map_err(|error| storage(&error))?;
    let events =
        page.events.iter().map(|event| RawValue::from_string(event.json.to_string())).collect::<Result<_, _>>();
    let events = events.map_err(|error| crate::session::internal(format!("a stored event is no JSON: {error}")))?;
    Ok(SessionHistoryPage { events, next_seq: page.next_seq })
}

/// What a subscription reads from, and where it begins.
async fn source(
    house: &House,
    client: &Client,
    session: &SessionHandle,
    wanted: SessionSubscribe,
) -> Result<Source, RpcError> {
    let start = match wanted.from {
        StartFrom::Live => Start::Live,
        StartFrom::Snapshot => {
            let view = session.ask(Command::Show).await?;
            Start::Snapshot { at: view.session.last_seq, prelude: prelude(view)? }
        }
        StartFrom::Cursor { cursor } => {
            Start::After(place_of(&cursor, house.env.store.epoch(), session.feed.last_seq())?)
        }
    };
    let answers = client.info().role == ApprovalRole::Answer;
    Ok(Source {
        feed: Arc::clone(&session.feed),
        journal: Arc::new(house.env.store.clone()),
        start,
        types: wanted.types.map(HashSet::from_iter),
        // Whoever watches keeps the session in memory; only who may answer counts as attached.
        keep: Some(if answers { Box::new(Attachment::new(session)) } else { Box::new(session.clone()) }),
    })
}
