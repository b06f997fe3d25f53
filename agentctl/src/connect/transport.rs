//! NDJSON on a Unix socket as the transport of jsonrpsee's client.
//!
//! One message a line. The receiver can be dropped at any await without losing bytes.

use std::io;

use jsonrpsee::core::client::{ReceivedMessage, TransportReceiverT, TransportSenderT};
use protocol::frame::{Frame, LineCutter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// The longest line taken from the daemon. Its own limit is for what it takes; an answer may hold a page of those.
const MAX_LINE_BYTES: usize = 256 << 20;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// Why the socket gives no more messages.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error("the daemon closed the connection")]
    Closed,
    #[error("the daemon sent a line over {MAX_LINE_BYTES} bytes")]
    TooLong,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The writing half.
#[derive(Debug)]
pub struct Sender(OwnedWriteHalf);

/// The reading half.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedReadHalf,
    lines: LineCutter,
}

/// Both directions of a connected socket.
#[must_use]
pub fn split(stream: UnixStream) -> (Sender, Receiver) {
    let (reader, writer) = stream.into_split();
    (Sender(writer), Receiver { socket: reader, lines: LineCutter::new(MAX_LINE_BYTES) })
}

impl TransportSenderT for Sender {
    type Error = TransportError;

    async fn send(&mut self, mut message: String) -> Result<(), TransportError> {
        message.push('\n');
        Ok(self.0.write_all(message.as_bytes()).await?)
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        Ok(self.0.shutdown().await?)
    }
}

impl TransportReceiverT for Receiver {
    type Error = TransportError;

    async fn receive(&mut self) -> Result<ReceivedMessage, TransportError> {
        loop {
            match self.lines.next_frame() {
                Some(Frame::Line(line)) => return Ok(ReceivedMessage::Bytes(line)),
                Some(Frame::TooLong) => return Err(TransportError::TooLong),
                None => {}
            }
            let buffer = self.lines.buffer();
            buffer.reserve(READ_BYTES);
            if self.socket.read_buf(buffer).await? == 0 {
                return Err(TransportError::Closed);
            }
        }
    }
}
