//! The connection and the daemon itself.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{ClientId, InstanceId, Seq, SessionId};

params! {
    Initialize {
        #[serde(default)]
        protocol: VersionRange,
        client: ClientInfo,
        #[serde(default)]
        capabilities: ClientCapabilities,
    }
    /// Versions are `major.minor`; a minor only adds.
    VersionRange {
        min: String,
        max: String,
    }
    ClientInfo {
        name: String,
        #[serde(default)]
        version: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tty: Option<String>,
    }
    Initialized {
        /// The version that both sides speak.
        protocol: String,
        daemon: DaemonInfo,
        client_id: ClientId,
        capabilities: DaemonCapabilities,
        limits: Limits,
    }
    DaemonInfo {
        version: String,
        instance_id: InstanceId,
        pid: u32,
        #[schemars(with = "String")]
        started_at: Timestamp,
        /// Names the database; a cursor of another epoch is refused.
        store_epoch: String,
        draining: bool,
    }
    DaemonCapabilities {
        methods: Vec<String>,
        events: Vec<String>,
    }
    Limits {
        max_frame_bytes: u64,
        max_batch: u32,
        max_in_flight: u32,
        max_subscriptions: u32,
    }
    DaemonStatus {
        version: String,
        pid: u32,
        instance_id: InstanceId,
        #[schemars(with = "String")]
        started_at: Timestamp,
        store_epoch: String,
        draining: bool,
        sessions: SessionCounts,
        clients: u32,
        approvals_pending: u32,
        memory_bytes: u64,
        /// CPU time of the daemon so far, user and system, in milliseconds.
        cpu_ms: u64,
        /// Snapshots serialised so far, for all subscribers together.
        snapshots_serialised: u64,
        socket: PathBuf,
        database: PathBuf,
        store: StoreStatus,
    }
    StoreStatus {
        /// What is not yet in the database file.
        wal_bytes: u64,
        /// The disk was found full: no turn and no call starts until there is room again.
        #[serde(default)]
        is_full: bool,
        #[schemars(with = "Option<String>")]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_backup: Option<Timestamp>,
        /// What was done at the start because the database was damaged, and what was lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rescue: Option<String>,
    }
    SessionCounts {
        total: u32,
        in_memory: u32,
        running: u32,
    }
    DaemonShutdown {
        /// How long running turns may take to end, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drain_ms: Option<u64>,
    }
    DaemonVerify {
        /// Only this one; all if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<SessionId>,
        /// Also make each session's index anew and compare the two.
        #[serde(default)]
        rebuild: bool,
    }
    DaemonVerified {
        /// Nothing is wrong.
        sound: bool,
        /// What is wrong with the database file as a whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        database: Option<String>,
        sessions: Vec<SessionVerdict>,
    }
    SessionVerdict {
        /// As the journal has it; after a damage it may be no id at all.
        session_id: String,
        /// Events whose place in the chain of hashes holds.
        events: u64,
        sound: bool,
        /// The first event that is not what was stored, or that is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken_at: Option<Seq>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    }
    DaemonSubscribe {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        types: Option<Vec<String>>,
    }
}

impl Default for VersionRange {
    fn default() -> Self {
        Self { min: "1.0".into(), max: "1.0".into() }
    }
}

/// What the client wants to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    pub approvals: ApprovalRole,
    /// The shortest pause between two snapshots, in milliseconds; 33 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_min_ms: Option<u64>,
}

/// Whether a client may answer requests for consent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRole {
    #[default]
    Answer,
    Observe,
}
