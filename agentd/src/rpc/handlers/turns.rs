//! `turn/*`.

use std::sync::Arc;
use std::time::Duration;

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use protocol::api::TurnWait;
use protocol::{ErrorKind, RpcError, method};

use super::House;
use crate::rpc::Caller;
use crate::rpc::register::method;
use crate::session::command::Command;

pub(super) fn register(module: &mut RpcModule<House>) -> Result<(), RegisterMethodError> {
    method::<method::TurnStart, _, _>(module, async |house: Arc<House>, client, start| {
        let by = Caller::from(&*client);
        house.session(start.session_id).await?.ask(|reply| Command::StartTurn { start, by, reply }).await
    })?;
    method::<method::TurnInterrupt, _, _>(module, async |house: Arc<House>, client, interrupt| {
        let (by, turn) = (Caller::from(&*client), interrupt.turn_id);
        house.session(interrupt.session_id).await?.ask(|reply| Command::Interrupt { turn, by, reply }).await
    })?;
    method::<method::TurnResume, _, _>(module, async |house: Arc<House>, client, resume| {
        let (by, turn, action) = (Caller::from(&*client), resume.turn_id, resume.action);
        house.session_of(turn).await?.ask(|reply| Command::Resume { turn, action, by, reply }).await
    })?;
    method::<method::QueueList, _, _>(module, async |house: Arc<House>, _, list| {
        house.session(list.session_id).await?.ask(Command::ListQueue).await
    })?;
    method::<method::QueueUpdate, _, _>(module, async |house: Arc<House>, client, update| {
        let (by, turn, input) = (Caller::from(&*client), update.turn_id, update.input);
        house.session_of(turn).await?.ask(|reply| Command::UpdateQueued { turn, input, by, reply }).await
    })?;
    method::<method::QueueDelete, _, _>(module, async |house: Arc<House>, client, delete| {
        let (by, turn) = (Caller::from(&*client), delete.turn_id);
        house.session_of(turn).await?.ask(|reply| Command::DeleteQueued { turn, by, reply }).await
    })?;
    method::<method::TurnWait, _, _>(module, async |house: Arc<House>, client, wait| {
        let TurnWait { session_id, turn_id: turn, until, timeout_ms } = wait;
        let session = house.session(session_id).await?;
        let answer = session.ask(|reply| Command::Wait { turn, until, reply });
        let timeout = Duration::from_millis(timeout_ms.unwrap_or(u64::MAX));
        tokio::select! {
            answer = answer => answer,
            () = tokio::time::sleep(timeout) => Err(wait_timeout(timeout)),
            () = client.gone.cancelled() => Err(wait_timeout(timeout)),
        }
    })
}

fn wait_timeout(timeout: Duration) -> RpcError {
    RpcError::new(
        ErrorKind::WaitTimeout,
        format!("the wait of {} ms is over, the turn goes on", timeout.as_millis()),
        "wait again, or follow the session with session/subscribe",
    )
}
