//! `history`: what was said in a session, as a transcript or as its events.

use protocol::api::ApprovalRole;
use serde_json::value::RawValue;

use crate::args::Form;
use crate::commands::open;
use crate::connect::understand;
use crate::exit::Failure;
use crate::naming;
use crate::output;
use crate::render::Renderer;
use crate::transcript;
use crate::view::View;
use crate::world::World;

/// Prints the whole transcript; with `--json`, an array of the durable events as they were first sent.
pub(super) async fn history(world: &World, name: &str, form: Form) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    if form.json {
        let mut before = "[\n";
        let print = |raw: &RawValue| {
            let begin = std::mem::replace(&mut before, ",\n");
            output::text(&format!("{begin}{}", raw.get()))
        };
        transcript::whole(&connection, session.id, print).await?;
        return output::line(if before == "[\n" { "[]" } else { "\n]" });
    }
    let mut renderer = Renderer::new(world.paint, world.columns);
    let mut view = View::new(session.clone());
    let print = |raw: &RawValue| {
        let Some(event) = understand(raw) else { return Ok(()) };
        view.apply(&event);
        output::text(&renderer.event(&event, &view))
    };
    transcript::whole(&connection, session.id, print).await
}
