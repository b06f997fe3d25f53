//! `ls`, `show`, `rm`, and the table that listings are printed as.

use protocol::SessionId;
use protocol::api::{self, ApprovalRole};
use protocol::method;
use unicode_width::UnicodeWidthStr;

use crate::args::{Form, List};
use crate::commands::open;
use crate::exit::Failure;
use crate::naming;
use crate::output;
use crate::render::wire_name;
use crate::untrusted::Untrusted;
use crate::world::World;

/// The part of a session's id that holds the time it was made: in practice enough to name it.
const SHORT_ID: usize = 13;

/// Sessions, newest first.
pub(super) async fn ls(world: &World, args: List) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let cwd = args.here.then(|| world.cwd.clone());
    let ask = api::SessionList { cwd, archived: None, query: args.query, cursor: None, limit: None };
    let mut sessions = naming::all(&connection, ask).await?;
    sessions.sort_by_key(|session| std::cmp::Reverse((session.updated_at, session.id)));
    if args.form.json {
        return output::json(&sessions);
    }
    if sessions.is_empty() {
        output::note("no sessions yet (hint: `agentctl` begins one)");
        return Ok(());
    }
    let rows = sessions.iter().map(|session| {
        vec![
            short_id(session.id),
            wire_name(&session.status),
            session.updated_at.strftime("%Y-%m-%d %H:%M").to_string(),
            session.model.clone(),
            session.cwd.display().to_string(),
            Untrusted::new(&session.title).one_line(60),
        ]
    });
    output::text(&table(&["SESSION", "STATUS", "CHANGED (UTC)", "MODEL", "DIRECTORY", "TITLE"], rows))
}

/// One session.
pub(super) async fn show(world: &World, name: &str, form: Form) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Observe).await?;
    let session = naming::session(&connection, &world.cwd, name).await?;
    if form.json {
        return output::json(&session);
    }
    let usage = session.usage;
    let rows = [
        ("session", session.id.to_string()),
        ("title", session.title.clone()),
        ("directory", session.cwd.display().to_string()),
        ("status", wire_name(&session.status)),
        ("model", session.model.clone()),
        ("mode", wire_name(&session.mode)),
        ("made", session.created_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
        ("changed", session.updated_at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()),
        ("events", session.last_seq.to_string()),
        ("tokens", format!("{} in, {} out", usage.context_tokens() - usage.output_tokens, usage.output_tokens)),
        ("context", format!("{} of {}", session.context_used, session.context_window)),
        ("attached", session.attached.to_string()),
    ];
    output::text(&table(&[], rows.into_iter().map(|(name, value)| vec![name.to_owned(), value])))
}

/// Deletes sessions; names each, and stops at the first that cannot be deleted.
pub(super) async fn rm(world: &World, names: &[String]) -> Result<(), Failure> {
    let connection = open(world, ApprovalRole::Answer).await?;
    for name in names {
        let session = naming::session(&connection, &world.cwd, name).await?;
        connection.call::<method::SessionDelete>(api::SessionDelete { session_id: session.id }).await?;
        output::line(&format!("deleted {} {}", session.id, Untrusted::new(&session.title).one_line(60)))?;
    }
    Ok(())
}

/// The beginning of a session's id that people type.
pub(crate) fn short_id(id: SessionId) -> String {
    id.to_string().chars().take(SHORT_ID).collect()
}

/// Columns as wide as their widest cell; the last one is left as it is. Cells are made safe here.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = (!head.is_empty()).then(|| head.iter().map(|cell| (*cell).to_owned()).collect());
    let rows: Vec<Vec<String>> = head
        .into_iter()
        .chain(rows)
        .map(|row| row.iter().map(|cell| Untrusted::new(cell).one_line(300)).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width() + 2));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let rows = [["漢字", "x", "last \u{1b}[2J"], ["b", "longer", ""]];
        let rows = rows.into_iter().map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&["A", "B"], rows), "A     B\n漢字  x       last <U+001B>[2J\nb     longer\n");
        assert_eq!(table(&[], std::iter::empty()), "");
    }
}
