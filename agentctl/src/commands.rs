//! One function for each command; `dispatch` is the table. Commands print, and give an exit code.

mod config;
mod daemon;
mod doctor;
mod history;
mod inbox;
mod ledger;
mod list;
pub(crate) mod queue;
mod rpc;
mod run;
mod turn;
mod watch;

use std::sync::Arc;

use protocol::api::{ApprovalRole, ResumeAction};

use crate::args::{Args, Command};
use crate::chat;
use crate::connect::Connection;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::world::World;

pub(crate) use list::{short_id, table};
pub(crate) use run::offline_note;

/// Does what was typed.
pub(crate) async fn dispatch(args: Args, world: World) -> Result<Exit, Failure> {
    let world = Arc::new(world);
    match args.command.unwrap_or_else(|| Command::Chat(crate::args::Chat::default())) {
        Command::Chat(args) => return chat::chat(&world, &args).await,
        Command::Attach { session } => return chat::attach(&world, &session).await,
        Command::Run(args) => return run::run(&world, args).await,
        Command::Wait(args) => return turn::wait(&world, &args).await,
        Command::Daemon(args) => return daemon::daemon(&world, args).await,
        Command::Doctor { form } => return doctor::doctor(&world, form).await,
        Command::Rpc { method, params } => return rpc::rpc(&world, &method, params).await,
        Command::Send { session, delivery, text } => turn::send(&world, &session, delivery, text).await,
        Command::Resume { session, discard } => {
            let action = if discard { ResumeAction::Discard } else { ResumeAction::Continue };
            queue::resume(&world, &session, action).await
        }
        Command::Queue(args) => queue::queue(&world, args).await,
        Command::Interrupt { session } => turn::interrupt(&world, &session).await,
        Command::Ls(args) => list::ls(&world, args).await,
        Command::Show { session, form } => list::show(&world, &session, form).await,
        Command::Rm { sessions } => list::rm(&world, &sessions).await,
        Command::History { session, form } => history::history(&world, &session, form).await,
        Command::Approvals { history: true, session, limit, form } => {
            ledger::ledger(&world, session.as_deref(), limit, form).await
        }
        Command::Approvals { form, .. } => inbox::approvals(&world, form).await,
        Command::Allow { id, scope } => inbox::allow(&world, &id, scope.into()).await,
        Command::Deny { id, message } => inbox::deny(&world, &id, message).await,
        Command::Answer { id, answers } => inbox::answer(&world, &id, &answers).await,
        Command::Watch { session } => watch::watch(&world, session.as_deref()).await,
        Command::Schema => rpc::schema(&world).await,
        Command::Models { form } => config::models(&world, form).await,
        Command::Tools { form } => config::tools(&world, form).await,
        Command::Config { key, form } => config::config(&world, key, form).await,
    }
    .map(|()| Exit::Done)
}

/// A connection for a command that ends soon, with what there is to say about it on stderr.
async fn open(world: &World, role: ApprovalRole) -> Result<Connection, Failure> {
    let connection = Connection::open(world, role).await?;
    for note in &connection.notes {
        output::note(note);
    }
    Ok(connection)
}
