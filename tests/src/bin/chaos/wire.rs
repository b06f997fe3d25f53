//! A client that expects the daemon to die under it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum Fail {
    /// Nothing came: nobody knows what became of the request.
    Gone,
    /// The daemon refused, with this kind.
    Said(String),
}

pub(crate) struct Wire {
    reader: BufReader<UnixStream>,
    id: u64,
}

impl Wire {
    pub(crate) fn connect(socket: &Path) -> Result<Self, Fail> {
        let stream = UnixStream::connect(socket).map_err(|_| Fail::Gone)?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(|_| Fail::Gone)?;
        Ok(Self { reader: BufReader::new(stream), id: 0 })
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Fail> {
        self.id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params});
        writeln!(self.reader.get_mut(), "{line}").map_err(|_| Fail::Gone)?;
        let mut answer = String::new();
        if self.reader.read_line(&mut answer).map_err(|_| Fail::Gone)? == 0 || !answer.ends_with('\n') {
            return Err(Fail::Gone);
        }
        let mut answer: Value = serde_json::from_str(&answer).map_err(|_| Fail::Gone)?;
        match answer.get("error") {
            Some(error) => Err(Fail::Said(error["data"]["kind"].as_str().unwrap_or_default().to_owned())),
            None => Ok(answer["result"].take()),
        }
    }
}
