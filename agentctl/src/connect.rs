//! One connection to the daemon: typed calls, raw calls and subscriptions.
//!
//! Never makes a batch and never reconnects: whoever needs a lasting stream uses `watch`.

pub mod transport;
mod version;

use std::time::Duration;

use jsonrpsee::core::client::{Client, ClientBuilder, ClientT, Error, Subscription, SubscriptionClientT};
use jsonrpsee::core::traits::ToRpcParams;
use protocol::api::{self, ApprovalRole, ClientCapabilities, ClientInfo, Initialized};
use protocol::method::{self, Method};
use protocol::{Event, Mode, Session, SessionId};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::net::UnixStream;

use crate::connect::transport::TransportError;
use crate::exit::Failure;
use crate::start;
use crate::world::World;

/// How long a daemon that listens gets to say who it is.
const GREETING: Duration = Duration::from_secs(10);

/// Waiting for a turn may take as long as it takes; the caller's own time-outs are shorter.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24 * 30);

/// How many events may wait in memory between the socket and us before the subscription is dropped.
const EVENTS_BUFFERED: usize = 4096;

/// Events as they came; each is parsed by whoever wants more than to pass it on.
pub(crate) type RawEvents = Subscription<Box<RawValue>>;

/// An open connection with its handshake done.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    pub(crate) daemon: Initialized,
    /// What a person should know about how it came to be; for whoever owns the terminal to say.
    pub(crate) notes: Vec<String>,
    /// The daemon was started for it; the first note says so.
    pub(crate) is_first: bool,
}

impl Connection {
    /// Connects, and starts the daemon where none listens.
    ///
    /// # Errors
    /// `Unreachable` when it can be neither reached nor started; the daemon's own error when it refuses the handshake.
    pub(crate) async fn open(world: &World, role: ApprovalRole) -> Result<Self, Failure> {
        let (stream, started) = start::connect_or_start(world).await?;
        let mut connection = Self::greet(stream, world, role).await?;
        let started = started.filter(|started| started.pid == connection.daemon.daemon.pid);
        connection.is_first = started.is_some();
        connection.notes.splice(0..0, started.map(|started| started.note));
        Ok(connection)
    }

    /// Connects to a daemon that already listens.
    pub(crate) async fn open_running(world: &World, role: ApprovalRole) -> Result<Self, Failure> {
        let stream = start::connect(&world.socket).await.map_err(|error| error.into_failure(&world.socket))?;
        Self::greet(stream, world, role).await
    }

    async fn greet(stream: UnixStream, world: &World, role: ApprovalRole) -> Result<Self, Failure> {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (sender, receiver) = transport::split(stream);
        let client = ClientBuilder::new()
            .request_timeout(REQUEST_TIMEOUT)
            .max_buffer_capacity_per_subscription(EVENTS_BUFFERED)
            .build_with_tokio(sender, receiver);
        let hello = api::Initialize {
            protocol: api::VersionRange::default(),
            client: ClientInfo { name: "agentctl".into(), version: version::VERSION.into(), tty: world.tty.clone() },
            capabilities: ClientCapabilities { approvals: role, snapshot_min_ms: None },
        };
        // The version is looked at before the rest is: what another version has there is not known.
        let hello = encode(&hello)?;
        let answer = client.request::<Box<RawValue>, _>(method::Initialize::NAME, hello);
        let answer = tokio::time::timeout(GREETING, answer).await.map_err(|_| Failure::Unreachable {
            message: format!("socket {}: the daemon does not answer", world.socket.display()),
            hint: "it may be stopped or very busy: look at its process, or `agentctl daemon stop`".into(),
        })?;
        let answer = answer.map_err(|error| version::refused(failure(error), pid))?;
        version::check(&answer, pid)?;
        let daemon: Initialized =
            serde_json::from_str(answer.get()).map_err(|error| failure(Error::ParseError(error)))?;
        let notes = version::warning(&daemon.daemon.version).into_iter().collect();
        Ok(Self { client, daemon, notes, is_first: false })
    }

    /// False once the daemon has gone away; a connection never comes back.
    pub(crate) fn is_connected(&self) -> bool {
        self.client.is_connected()
    }

    /// One typed call.
    ///
    /// # Errors
    /// The daemon's error object with its kind and hint, or `Unreachable` when the connection broke.
    pub(crate) async fn call<M: Method>(&self, params: M::Params) -> Result<M::Result, Failure> {
        call::<M>(&self.client, params).await
    }

    /// Gives a session the model and mode that were asked for, if any were.
    pub(crate) async fn choose(
        &self,
        session: Session,
        model: Option<String>,
        mode: Option<Mode>,
    ) -> Result<Session, Failure> {
        if model.is_none() && mode.is_none() {
            return Ok(session);
        }
        let change = api::SessionUpdate {
            session_id: session.id,
            title: None,
            model,
            mode,
            no_client_policy: None,
            resume_policy: None,
        };
        Ok(self.call::<method::SessionUpdate>(change).await?.session)
    }

    /// One call by name; the answer as it came.
    pub(crate) async fn raw(&self, method: &str, params: Option<Box<RawValue>>) -> Result<Box<RawValue>, Failure> {
        self.client.request(method, Json(params)).await.map_err(failure)
    }

    /// Every event of one session from a place on.
    pub(crate) async fn follow(&self, session: SessionId, from: api::From) -> Result<RawEvents, Failure> {
        let params = api::SessionSubscribe { session_id: session, from, types: None };
        self.subscribe(method::SessionSubscribe::NAME, &params, "session/unsubscribe").await
    }

    /// Status, approvals and questions of all sessions.
    pub(crate) async fn follow_all(&self) -> Result<RawEvents, Failure> {
        let params = api::DaemonSubscribe { types: None };
        self.subscribe(method::DaemonSubscribe::NAME, &params, "daemon/unsubscribe").await
    }

    async fn subscribe(&self, name: &str, params: &impl Serialize, end: &str) -> Result<RawEvents, Failure> {
        self.client.subscribe(name, encode(params)?, end).await.map_err(failure)
    }
}

/// An event as it came, understood. `None` for what no event of ours looks like.
pub(crate) fn understand(raw: &RawValue) -> Option<Event> {
    serde_json::from_str(raw.get()).ok()
}

async fn call<M: Method>(client: &Client, params: M::Params) -> Result<M::Result, Failure> {
    client.request(M::NAME, encode(&params)?).await.map_err(failure)
}

/// Parameters that are already JSON.
struct Json(Option<Box<RawValue>>);

impl ToRpcParams for Json {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(self.0)
    }
}

fn encode(params: &impl Serialize) -> Result<Json, Failure> {
    let raw = serde_json::value::to_raw_value(params).map_err(|error| Failure::other(error.to_string()))?;
    Ok(Json(Some(raw)))
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Call(object) => Failure::Rpc {
            code: object.code(),
            message: object.message().to_owned(),
            data: object.data().and_then(|data| serde_json::from_str(data.get()).ok()),
        },
        Error::ParseError(error) => Failure::other(format!(
            "the daemon's answer is not understood: {error} (hint: compare `agentctl --version` with `agentctl daemon status`)"
        )),
        other => Failure::Unreachable {
            message: broken(&other),
            hint: "`agentctl daemon status` tells whether it runs; sessions and their history are kept".into(),
        },
    }
}

/// Why a connection is of no use any more; the library wraps the reason in words about its own tasks.
fn broken(error: &Error) -> String {
    match error {
        Error::RestartNeeded(reason) => broken(reason),
        Error::ServiceDisconnect => "the connection to the daemon broke".into(),
        Error::Transport(reason) if reason.downcast_ref().is_some_and(|e| matches!(e, TransportError::Closed)) => {
            reason.to_string()
        }
        other => format!("the connection to the daemon broke: {other}"),
    }
}
