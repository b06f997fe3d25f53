//! What the tests need of a daemon: objects as it makes them, and a socket that answers by a table.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::approval::{Approval, QuestionRequest};
use protocol::event::Event;
use protocol::session::Session;
use protocol::socket::Homes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::render::Paint;
use crate::world::World;

pub(crate) const SESSION: &str = "01940000-0000-7000-8000-00000000aaaa";
pub(crate) const TURN: &str = "01940000-0000-7000-8000-0000000000f1";
pub(crate) const MESSAGE: &str = "01940000-0000-7000-8000-0000000000e1";

pub(crate) fn session(id: &str, cwd: &str, second: u32) -> Session {
    let time = format!("2026-12-01T03:00:{second:02}Z");
    serde_json::from_value(json!({
        "id": id, "title": "a title", "cwd": cwd, "model": "offline/rules", "mode": "ask", "status": "idle",
        "createdAt": time, "updatedAt": time, "lastSeq": 1, "archived": false, "usage": {},
        "contextWindow": 1000, "contextUsed": 0, "attached": 0, "noClientPolicy": "park",
    }))
    .unwrap()
}

pub(crate) fn approval(short_id: &str) -> Approval {
    serde_json::from_value(json!({
        "id": "01940000-0000-7000-8000-0000000000a1", "shortId": short_id, "sessionId": SESSION, "turnId": TURN,
        "toolUseId": "c1", "tool": "bash", "title": "clean the build", "detail": "rm -rf build",
        "risks": ["deletes files"], "state": "pending", "revision": 1, "createdAt": "2026-12-01T03:00:00Z",
        "options": [
            {"decision": "allow", "scope": "once"},
            {"decision": "allow", "scope": "session", "rule": "bash(rm *)"},
            {"decision": "deny", "scope": "once"},
        ],
    }))
    .unwrap()
}

pub(crate) fn question(short_id: &str) -> QuestionRequest {
    serde_json::from_value(json!({
        "id": "01940000-0000-7000-8000-0000000000b1", "shortId": short_id, "sessionId": SESSION, "turnId": TURN,
        "toolUseId": "c1", "title": "", "questions": [], "state": "pending", "createdAt": "2026-12-01T03:00:00Z",
    }))
    .unwrap()
}

/// An event of the fake session; what every event has may be left out.
pub(crate) fn event(mut value: Value) -> Event {
    value["sessionId"] = SESSION.into();
    value["ts"] = "2026-12-01T03:00:00Z".into();
    serde_json::from_value(value).unwrap()
}

/// A place for a socket, and the surroundings of a client there.
pub(crate) fn world(dir: &Path) -> Arc<World> {
    Arc::new(World {
        cwd: PathBuf::from("/a"),
        homes: Homes { socket: None, runtime: None, state: dir.join("state"), config: dir.join("config") },
        socket: dir.join("s"),
        executable: Some(dir.join("agentctl")),
        environment: Vec::new(),
        tty: None,
        paint: Paint::Plain,
        columns: None,
    })
}

/// What a daemon does with one request: the result or error, then events on the subscription `"s1"`, then maybe the end.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) answer: Value,
    pub(crate) events: Vec<Value>,
    pub(crate) hang_up: bool,
}

/// Listens, and answers every request as `play` says. `initialize` is answered by itself.
pub(crate) fn daemon(world: &World, play: impl Fn(&str, &Value) -> Script + Send + Sync + 'static) -> JoinSet<()> {
    let listener = UnixListener::bind(&world.socket).unwrap();
    let play = Arc::new(play);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let play = Arc::clone(&play);
            connections.spawn(serve(stream, move |method, params| play(method, params)));
        }
    });
    tasks
}

async fn serve(stream: UnixStream, play: impl Fn(&str, &Value) -> Script) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let method = request["method"].as_str().unwrap();
        let script = match method {
            "initialize" => Script { answer: json!({"result": hello()}), ..Script::default() },
            other => play(other, &request["params"]),
        };
        let mut out = script.answer;
        out["jsonrpc"] = "2.0".into();
        out["id"] = request["id"].clone();
        let mut text = format!("{out}\n");
        for mut event in script.events {
            event["sessionId"] = SESSION.into();
            event["ts"] = "2026-12-01T03:00:00Z".into();
            let params = json!({"subscription": "s1", "result": event});
            text.push_str(&format!("{}\n", json!({"jsonrpc": "2.0", "method": "session/event", "params": params})));
        }
        if writer.write_all(text.as_bytes()).await.is_err() || script.hang_up {
            return;
        }
    }
}

fn hello() -> Value {
    json!({
        "protocol": "1.0", "clientId": SESSION, "capabilities": {"methods": [], "events": []},
        "daemon": {"version": env!("CARGO_PKG_VERSION"), "instanceId": SESSION, "pid": 1, "startedAt": "2026-12-01T03:00:00Z",
            "storeEpoch": "e", "draining": false},
        "limits": {"maxFrameBytes": 1, "maxBatch": 1, "maxInFlight": 1, "maxSubscriptions": 1},
    })
}
