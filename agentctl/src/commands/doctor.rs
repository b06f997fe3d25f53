//! `doctor`: is the daemon there, and is all that it has stored what it stored.

use protocol::api::{self, ApprovalRole, DaemonVerified, DaemonVerify};
use protocol::method;

use crate::args::Form;
use crate::commands::list::table;
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::world::World;

/// Checks all there is. A fault is the answer, and the exit code says so too.
pub(super) async fn doctor(world: &World, form: Form) -> Result<Exit, Failure> {
    let connection = Connection::open_running(world, ApprovalRole::Observe).await?;
    connection.notes.iter().for_each(|note| output::note(note));
    let status = connection.call::<method::DaemonStatus>(api::Empty {}).await?;
    let found = connection.call::<method::DaemonVerify>(DaemonVerify { session_id: None, rebuild: true }).await?;
    let exit = if found.sound { Exit::Done } else { Exit::Failed };
    if form.json {
        return output::json(&found).map(|()| exit);
    }
    let events: u64 = found.sessions.iter().map(|session| session.events).sum();
    let rows = [
        ("socket", format!("ok    {}", status.socket.display())),
        ("database", format!("{}  {}", word(found.database.is_none()), status.database.display())),
        (
            "journal",
            format!(
                "{}  {}, {}",
                word(found.sound),
                count(found.sessions.len() as u64, "session"),
                count(events, "event")
            ),
        ),
    ];
    let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    output::text(&table(&[], rows.chain(faults(&found))))?;
    if !found.sound {
        output::note(
            "agentctl: the database is damaged (hint: agentctl daemon stop, then `agentd restore`; it moves the damaged file aside)",
        );
    }
    Ok(exit)
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn word(is_sound: bool) -> &'static str {
    if is_sound { "ok  " } else { "FAIL" }
}

/// What is wrong, one a line.
fn faults(found: &DaemonVerified) -> impl Iterator<Item = Vec<String>> {
    let database = found.database.iter().map(|what| vec!["  file".to_owned(), what.clone()]);
    let sessions = found.sessions.iter().filter(|session| !session.sound).map(|session| {
        let place = session.broken_at.map(|seq| format!("damaged at event {seq}"));
        let what = place.into_iter().chain(session.fault.clone()).collect::<Vec<_>>().join(": ");
        vec![format!("  {}", session.session_id), what]
    });
    database.chain(sessions)
}
