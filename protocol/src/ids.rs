//! A newtype for every id, so that a turn is never looked up as a session.
//!
//! Ids made by agentd are UUIDv7: they sort by the time they were made, which is why listings need no other key.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Makes a new id, later in order than every id made before it.
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }
    )*};
}

uuid_ids! {
    /// One conversation, owned by the daemon.
    SessionId,
    /// One user message and all that follows until the session is idle again.
    TurnId,
    /// One message of a transcript. Snapshots of a growing message carry the id that it will keep.
    MessageId,
    /// One request for a person's consent.
    ApprovalId,
    /// One set of questions to a person.
    QuestionId,
    /// One connection to the socket, for as long as it lasts.
    ClientId,
    /// One life of the daemon process.
    InstanceId,
}

/// One call of a tool by a model: unique within its session, made of characters that every provider accepts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CallId(pub String);

impl CallId {
    /// Makes an id for a call to which the provider gave none, or one already used.
    #[must_use]
    pub fn new() -> Self {
        Self(format!("call_{}", Uuid::now_v7().simple()))
    }
}

impl Default for CallId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Place of a durable event in its session: from 1, strictly rising, without gaps. 0 is "before everything".
pub type Seq = u64;

/// A place in a session's journal that is only good for the database it came from.
///
/// Opaque to clients: keep it, send it back with `from: {kind: "cursor", cursor}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Cursor(pub String);

impl Cursor {
    /// The place just after event `seq` in the database with that epoch.
    #[must_use]
    pub fn new(epoch: &str, seq: Seq) -> Self {
        Self(format!("{epoch}.{seq}"))
    }

    /// Epoch and sequence number, or `None` for a text that no daemon made.
    #[must_use]
    pub fn parts(&self) -> Option<(&str, Seq)> {
        let (epoch, seq) = self.0.rsplit_once('.')?;
        Some((epoch, seq.parse().ok()?))
    }
}
