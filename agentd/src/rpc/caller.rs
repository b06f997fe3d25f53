//! Who asked for something, as it is written down: taken from the connection at the moment of asking.

use protocol::api::ApprovalRole;
use protocol::{Actor, DecidedBy};

use super::peer::Client;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) tty: Option<String>,
    pub(crate) role: ApprovalRole,
}

impl Caller {
    /// The cause of an event.
    #[must_use]
    pub(crate) fn actor(&self) -> Actor {
        Actor::Client { name: self.name.clone(), pid: self.pid }
    }

    /// The giver of an answer.
    #[must_use]
    pub(crate) fn decided_by(&self) -> DecidedBy {
        DecidedBy::Client {
            client: self.name.clone(),
            pid: self.pid.unwrap_or_default(),
            uid: self.uid,
            tty: self.tty.clone(),
        }
    }
}

impl From<&Client> for Caller {
    fn from(client: &Client) -> Self {
        let info = client.info();
        Self { name: info.name, uid: client.uid, pid: client.pid, tty: info.tty, role: info.role }
    }
}
