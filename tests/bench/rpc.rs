//! What the house costs: a call against a bare echo in the same run, a turn between two requests, a stream in place.
//!
//! Only ratios within one run mean anything. `cargo bench -p e2e`.

#![expect(clippy::expect_used, reason = "a bench that cannot run should say so and end")]

use std::hint::black_box;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agentctl::transport;
use criterion::{Criterion, Throughput, criterion_group};
use e2e::daemon::{Daemon, Home};
use e2e::model::{FakeModel, Play};
use foundation::{Message, ModelRequest, ToolChoice};
use jsonrpsee::core::client::{Client, ClientBuilder, ClientT};
use jsonrpsee::rpc_params;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Runtime;

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

/// A line back and forth: a bare tokio echo, the daemon with a raw client, the daemon with the typed one.
fn round_trip(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("echo.sock");
    let echo = UnixListenerTask::start(&runtime, path.clone());
    let daemon = Daemon::start();
    let mut group = c.benchmark_group("round trip");
    group.sample_size(200).measurement_time(Duration::from_secs(4));
    for (name, socket) in [("bare tokio echo", path), ("ping, raw client", daemon.home.socket())] {
        let stream = runtime.block_on(UnixStream::connect(socket)).expect("it listens");
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                runtime.block_on(async {
                    stream.get_mut().write_all(PING).await.expect("sent");
                    line.clear();
                    stream.read_line(&mut line).await.expect("answered");
                });
            });
        });
    }
    let client = runtime.block_on(typed(&daemon.home.socket()));
    group.bench_function("ping, typed client", |bench| {
        bench.iter(|| {
            runtime.block_on(async { client.request::<Value, _>("ping", rpc_params![]).await }).expect("answered")
        });
    });
    group.finish();
    drop(echo);
}

async fn typed(socket: &std::path::Path) -> Client {
    let (sender, receiver) = transport::split(UnixStream::connect(socket).await.expect("the daemon listens"));
    ClientBuilder::default().build_with_tokio(sender, receiver)
}

struct UnixListenerTask(tokio::task::JoinHandle<()>);

impl UnixListenerTask {
    fn start(runtime: &Runtime, path: PathBuf) -> Self {
        let _inside = runtime.enter();
        let listener = UnixListener::bind(path).expect("a socket");
        Self(runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                while stream.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    if stream.get_mut().write_all(line.as_bytes()).await.is_err() {
                        break;
                    }
                    line.clear();
                }
            }
        }))
    }
}

impl Drop for UnixListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// From the end of an answer that asks for a tool to the next request: tool, commits with a full flush, connection.
fn turn_overhead(c: &mut Criterion) {
    c.bench_function("turn overhead, answer to next request", |bench| {
        bench.iter_custom(|iterations| {
            let asks = |n: u64| {
                let call = json!({"index": 0, "id": format!("call_{n}"), "type": "function", "function": {"name": "read", "arguments": "{\"description\":\"look\",\"path\":\"f.txt\"}"}});
                openai(&[json!({"delta": {"tool_calls": [call]}, "finish_reason": null}), json!({"delta": {}, "finish_reason": "tool_calls"})])
            };
            let ends = openai(&[json!({"delta": {"content": "done"}, "finish_reason": null}), json!({"delta": {}, "finish_reason": "stop"})]);
            let rounds = iterations.clamp(1, 90);
            let mut total = Duration::ZERO;
            let mut done = 0;
            while done < iterations {
                let plays = (0..rounds).map(asks).chain([ends.clone()]).collect();
                let model = FakeModel::start(plays);
                run_turn(&model);
                total += model.gaps().into_iter().sum::<Duration>();
                done += rounds;
            }
            total.mul_f64(iterations as f64 / done as f64)
        });
    });
}

fn openai(choices: &[Value]) -> Play {
    let chunk = |choice: &Value| {
        format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
    };
    Play::sse(choices.iter().map(chunk).collect::<String>() + "data: [DONE]\n\n")
}

fn run_turn(model: &FakeModel) {
    let home = Home::new();
    home.write("f.txt", "x\n");
    let provider = json!({"api": "openai", "baseUrl": format!("{}/v1", model.base)});
    home.settings(&json!({"model": "fake/m", "providers": {"fake": provider}}));
    let daemon = home.start();
    let mut client = daemon.connect();
    let session = client.session(&daemon.home.work());
    let turn = client.turn(&session, "go");
    assert_eq!(turn["state"], "completed", "{turn}");
}

/// A megabyte of text in ten thousand pieces, from bytes on a socket to the whole message, lent at every step.
fn accumulate(c: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let text = "0123456789".repeat(10);
    let pieces: Vec<Value> = (0..10_000).map(|_| json!({"delta": {"content": text}, "finish_reason": null})).collect();
    let play = openai(&[pieces, vec![json!({"delta": {}, "finish_reason": "stop"})]].concat());
    let mut group = c.benchmark_group("accumulate");
    group.sample_size(10).throughput(Throughput::Bytes(1_000_000));
    group.bench_function("1 MB of text in 10,000 pieces", |bench| {
        bench.iter_custom(|iterations| {
            let model = FakeModel::start(vec![play.clone(); usize::try_from(iterations).expect("few")]);
            let entry = community::ProviderConfig {
                name: "fake".into(),
                api: Some(community::Api::Openai),
                base_url: Some(format!("{}/v1", model.base)),
                ..community::ProviderConfig::default()
            };
            let model = community::Providers::new(vec![entry], None).model("fake/m").expect("a model");
            let start = Instant::now();
            for _ in 0..iterations {
                runtime.block_on(drain(&*model));
            }
            start.elapsed()
        });
    });
    group.finish();
}

async fn drain(model: &dyn foundation::Model) {
    let messages = [Message::user_text("go")];
    let request =
        ModelRequest { system: &[], messages: &messages, tools: &[], tool_choice: ToolChoice::Auto, max_output: None };
    let mut stream = model.stream(request).await.expect("an answer");
    let mut bytes = 0;
    while let Some(message) = stream.next().await {
        bytes = message.expect("whole").content.first().and_then(foundation::Part::as_text).map_or(0, str::len);
    }
    assert_eq!(black_box(bytes), 1_000_000);
}

criterion_group!(benches, round_trip, turn_overhead, accumulate);

fn main() {
    // The daemon's first build must not be counted.
    drop(StdStream::connect(Daemon::start().home.socket()));
    benches();
}
