//! Threads that read, each with a connection of its own that cannot write.
//!
//! Every read is one short transaction: it sees one moment, and does not keep the WAL from being cut back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::error::{Fault, StoreError};
use super::{schema, worker};

const THREADS: usize = 2;
/// Reads that may wait. When there are more, callers wait to hand theirs in.
const QUEUE: usize = 64;

type Read = Box<dyn FnOnce(&Connection) + Send>;

enum Message {
    Read(Read),
    Close,
}

/// Where reads are handed in.
#[derive(Debug)]
pub(super) struct Readers {
    file: PathBuf,
    sender: mpsc::Sender<Message>,
    threads: Vec<Mutex<Option<JoinHandle<()>>>>,
}

impl Readers {
    pub(super) fn start(file: &Path) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut threads = Vec::new();
        for number in 0..THREADS {
            let (db, receiver) = (schema::open_reader(file)?, Arc::clone(&receiver));
            let thread = thread::Builder::new()
                .name(format!("store-reader-{number}"))
                .spawn(move || run(db, receiver))
                .map_err(|error| StoreError::Other { file: file.to_owned(), detail: error.to_string() })?;
            threads.push(Mutex::new(Some(thread)));
        }
        Ok(Self { file: file.to_owned(), sender, threads })
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = move |db: &Connection| {
            // Dropped at the end: a read has nothing to commit.
            let answer = db.unchecked_transaction().map_err(Fault::from).and_then(|moment| read(&moment));
            let _gone = reply.send(answer);
        };
        let closed = || StoreError::Closed { file: self.file.clone() };
        self.sender.send(Message::Read(Box::new(job))).await.map_err(|_| closed())?;
        match answer.await {
            Ok(answer) => answer.map_err(|fault| fault.of(&self.file)),
            Err(_) if self.sender.is_closed() => Err(closed()),
            Err(_) => Err(StoreError::Other { file: self.file.clone(), detail: "a read stopped with a panic".into() }),
        }
    }

    /// Finishes what was handed in before, then ends the threads.
    pub(super) async fn close(&self) {
        for _ in &self.threads {
            // It fails when they have ended already.
            let _already_closed = self.sender.send(Message::Close).await;
        }
        self.sender.closed().await;
        self.threads.iter().for_each(worker::join);
    }
}

fn run(db: Connection, receiver: Arc<Mutex<mpsc::Receiver<Message>>>) {
    loop {
        // Whoever holds the lock waits for the next read; it lets go before it runs it.
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
        let Some(Message::Read(read)) = next else { break };
        if catch_unwind(AssertUnwindSafe(|| read(&db))).is_err() {
            tracing::error!("a read of the store stopped with a panic");
        }
    }
    drop(db);
    drop(receiver);
}
