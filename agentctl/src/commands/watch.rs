//! `watch`: events as JSON, one a line, for as long as somebody reads.

use std::sync::Arc;

use protocol::api::{ApprovalRole, From};

use crate::commands::open;
use crate::exit::Failure;
use crate::naming;
use crate::output;
use crate::watch::{Feed, News, STOPPED, Target};
use crate::world::World;

/// Prints each event as it came. Ends when stdout closes or a person interrupts.
pub(super) async fn watch(world: &Arc<World>, session: Option<&str>) -> Result<(), Failure> {
    let role = ApprovalRole::Observe;
    let connection = open(world, role).await?;
    let target = match session {
        Some(name) => Target::Session(naming::session(&connection, &world.cwd, name).await?.id),
        None => Target::All,
    };
    let mut feed = Feed::open(Arc::clone(world), Arc::new(connection), role, target, From::Live).await?;
    while let Some(news) = feed.next().await {
        match news {
            News::Event(raw, _) => output::line(raw.get())?,
            News::Lost(reason) => output::note(&format!("{reason}; reconnecting")),
            News::Stopped => output::note(STOPPED),
            News::Back(notes) => {
                notes.iter().for_each(|note| output::note(note));
                output::note("connected again");
            }
            News::Gone(failure) => return Err(failure),
        }
    }
    Ok(())
}
