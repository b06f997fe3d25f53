//! The wire of agentd, and only the wire.
//!
//! Every layer names these types, and none of them depends on anything but serialisation: the same message stands in
//! memory, in the journal and on the socket. Holds data, ids, framing and where the socket is; nothing here decides.

pub mod api;
pub mod approval;
pub mod error;
pub mod event;
pub mod frame;
pub mod ids;
pub mod message;
pub mod method;
pub mod openrpc;
pub mod session;
pub mod socket;

pub use approval::*;
pub use error::{ErrorData, ErrorKind, RpcError};
pub use event::{Actor, Event, EventBody, NoticeLevel, QueueChange};
pub use ids::*;
pub use message::{Message, Part, Role, StopReason, Usage};
pub use method::{METHODS, Method, MethodEntry};
pub use session::*;

/// The version of the protocol: a minor only adds.
pub const PROTOCOL_VERSION: &str = "1.0";
