//! The connection and the daemon itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use protocol::api::{
    DaemonCapabilities, DaemonStatus, DaemonVerified, DaemonVerify, Empty, Initialize, Initialized, Limits,
    SessionCounts, SessionVerdict, StoreStatus,
};
use protocol::{ApprovalState, ErrorKind, METHODS, PROTOCOL_VERSION, RpcError, frame, method, openrpc};

use super::House;
use crate::rpc::peer::{Client, ClientInfo};
use crate::rpc::register::{everyone, method};
use crate::session::{no_session, storage};

pub(super) fn register(module: &mut RpcModule<House>) -> Result<(), RegisterMethodError> {
    method::<method::Ping, _, _>(module, async |_: Arc<House>, _, _| Ok(Empty {}))?;
    method::<method::Discover, _, _>(module, async |house: Arc<House>, _, _| {
        Ok(openrpc::document(&house.info.version))
    })?;
    method::<method::Initialize, _, _>(module, async |house: Arc<House>, client, hello| {
        initialize(&house, &client, hello)
    })?;
    method::<method::DaemonStatus, _, _>(module, async |house: Arc<House>, _, _| status(&house).await)?;
    method::<method::DaemonVerify, _, _>(module, async |house: Arc<House>, _, wanted| verify(&house, wanted).await)?;
    method::<method::DaemonShutdown, _, _>(module, async |house: Arc<House>, _, wanted| {
        if let Some(drain) = wanted.drain_ms {
            house.drain_ms.store(drain, Ordering::Relaxed);
        }
        house.stop.cancel();
        Ok(Empty {})
    })?;
    everyone::<method::DaemonSubscribe, _>(module, |house| house.env.everyone.clone())
}

/// # Errors
/// `unsupported_version` when the two sides have no version in common.
fn initialize(house: &House, client: &Client, hello: Initialize) -> Result<Initialized, RpcError> {
    let ours = major_minor(PROTOCOL_VERSION);
    let (min, max) = (major_minor(&hello.protocol.min), major_minor(&hello.protocol.max));
    // A minor only adds, so any client of our major understands us.
    if min.is_none_or(|min| ours < Some(min)) || max.is_none_or(|max| ours.map(|v| v.0) > Some(max.0)) {
        return Err(RpcError::new(
            ErrorKind::UnsupportedVersion,
            format!(
                "the client speaks {} to {}, this daemon {PROTOCOL_VERSION}",
                hello.protocol.min, hello.protocol.max
            ),
            "update the older of the two",
        )
        .with("supported", PROTOCOL_VERSION));
    }
    let defaults = ClientInfo::default();
    client.set_info(ClientInfo {
        name: hello.client.name,
        version: hello.client.version,
        tty: hello.client.tty,
        role: hello.capabilities.approvals,
        snapshot_min: hello
            .capabilities
            .snapshot_min_ms
            .map_or(defaults.snapshot_min, std::time::Duration::from_millis),
    });
    Ok(Initialized {
        protocol: PROTOCOL_VERSION.into(),
        daemon: protocol::api::DaemonInfo { draining: house.stop.is_cancelled(), ..house.info.clone() },
        client_id: client.id,
        capabilities: capabilities(),
        limits: limits(),
    })
}

fn capabilities() -> DaemonCapabilities {
    let ends = METHODS.iter().filter_map(|method| method.subscription.map(|(_, end)| end));
    DaemonCapabilities {
        methods: METHODS.iter().map(|method| method.name).chain(ends).map(str::to_owned).collect(),
        events: protocol::event::TYPES.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

fn limits() -> Limits {
    Limits {
        max_frame_bytes: frame::MAX_FRAME_BYTES as u64,
        max_batch: crate::rpc::MAX_BATCH,
        max_in_flight: crate::rpc::MAX_IN_FLIGHT,
        max_subscriptions: crate::rpc::MAX_SUBSCRIPTIONS,
    }
}

async fn status(house: &House) -> Result<DaemonStatus, RpcError> {
    let store = &house.env.store;
    let counts = store.session_counts().await.map_err(|error| storage(&error))?;
    let pending = store.approvals(None, Some(ApprovalState::Pending)).await.map_err(|error| storage(&error))?;
    let info = house.info.clone();
    Ok(DaemonStatus {
        version: info.version,
        pid: info.pid,
        instance_id: info.instance_id,
        started_at: info.started_at,
        store_epoch: info.store_epoch,
        draining: house.stop.is_cancelled(),
        sessions: SessionCounts {
            total: counts.total,
            in_memory: u32::try_from(house.sessions.in_memory().len()).unwrap_or(u32::MAX),
            running: counts.running,
        },
        clients: house.clients.len(),
        approvals_pending: u32::try_from(pending.len()).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(),
        cpu_ms: cpu_ms(),
        snapshots_serialised: house.env.everyone.snapshots_serialised(),
        socket: house.socket.clone(),
        database: store.path().to_owned(),
        store: StoreStatus {
            wal_bytes: store.wal_bytes(),
            last_backup: store.last_backup().and_then(|made| made.try_into().ok()),
            is_full: store.is_short_of_room(),
            rescue: store.rescue().map(ToString::to_string),
        },
    })
}

/// # Errors
/// `not_found` for a session that the database knows nothing of, `storage_error` when not even the names can be read.
async fn verify(house: &House, wanted: DaemonVerify) -> Result<DaemonVerified, RpcError> {
    let store = &house.env.store;
    let database = store.check_file().await.map_err(|error| storage(&error))?;
    let names = match store.check_names().await {
        Ok(names) => names,
        Err(_) if database.is_some() => return Ok(DaemonVerified { sound: false, database, sessions: Vec::new() }),
        Err(error) => return Err(storage(&error)),
    };
    let only = wanted.session_id.map(|id| id.to_string());
    if let (Some(id), Some(name)) = (wanted.session_id, &only)
        && !names.contains(name)
    {
        return Err(no_session(id));
    }
    let mut sessions = Vec::new();
    for name in names.into_iter().filter(|name| only.as_ref().is_none_or(|only| only == name)) {
        let verdict = store.check_session(name, wanted.rebuild).await.map_err(|error| storage(&error))?;
        sessions.extend(verdict.map(|found| SessionVerdict {
            sound: found.is_sound(),
            session_id: found.session,
            events: found.events,
            broken_at: found.broken_at,
            fault: found.fault,
        }));
    }
    let sound = database.is_none() && sessions.iter().all(|session| session.sound);
    Ok(DaemonVerified { sound, database, sessions })
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Resident memory, as the kernel counts it; 0 where it does not say.
fn memory_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

fn cpu_ms() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1000 + time.tv_nsec / 1_000_000).unwrap_or(0)
}
