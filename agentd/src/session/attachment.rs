//! A client's presence in a session: counted while its subscription lasts.

use std::sync::atomic::Ordering;

use super::command::{Command, SessionHandle};

/// Counts one attached client from its making to its drop.
#[derive(Debug)]
pub(crate) struct Attachment {
    session: SessionHandle,
}

impl Attachment {
    pub(crate) fn new(session: &SessionHandle) -> Self {
        let before = session.attached.fetch_add(1, Ordering::Relaxed);
        session.feed.attached(before.saturating_add(1));
        wake(session);
        Self { session: session.clone() }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let before = self.session.attached.fetch_sub(1, Ordering::Relaxed);
        self.session.feed.attached(before.saturating_sub(1));
        wake(&self.session);
    }
}

/// Lets the session look at the count. It looks with every command, so a full mailbox needs no further one.
fn wake(session: &SessionHandle) {
    drop(session.mailbox.try_send(Command::AttachmentChanged));
}
