//! What people type for a session or a request, and which one they mean. Never guesses between two.

use std::path::Path;

use protocol::api;
use protocol::method;
use protocol::session::Session;

use crate::connect::Connection;
use crate::exit::Failure;

/// The newest session of this directory, else the newest of all.
pub(crate) const LAST: &str = "@last";

/// Every session there is, a page at a time.
pub(crate) async fn all(connection: &Connection, list: api::SessionList) -> Result<Vec<Session>, Failure> {
    let mut sessions = Vec::new();
    let mut list = api::SessionList { limit: Some(1000), ..list };
    loop {
        let page = connection.call::<method::SessionList>(list.clone()).await?;
        sessions.extend(page.sessions);
        let Some(next) = page.next_cursor else { return Ok(sessions) };
        list.cursor = Some(next);
    }
}

/// The session that `name` means.
///
/// # Errors
/// A usage error when there is none, or when a prefix fits several; it names them.
pub(crate) async fn session(connection: &Connection, cwd: &Path, name: &str) -> Result<Session, Failure> {
    if let Ok(session_id) = name.parse() {
        return Ok(connection.call::<method::SessionGet>(api::SessionGet { session_id }).await?.session);
    }
    let nothing = api::SessionList { cwd: None, archived: None, query: None, cursor: None, limit: None };
    let sessions = all(connection, nothing).await?;
    pick_session(&sessions, name, cwd).cloned()
}

/// The newest session of a directory, sub-agents' left out.
pub(crate) fn newest<'a>(sessions: &'a [Session], cwd: Option<&Path>) -> Option<&'a Session> {
    sessions
        .iter()
        .filter(|session| session.parent_id.is_none() && cwd.is_none_or(|cwd| session.cwd == cwd))
        .max_by_key(|session| (session.updated_at, session.id))
}

fn pick_session<'a>(sessions: &'a [Session], name: &str, cwd: &Path) -> Result<&'a Session, Failure> {
    if name == LAST {
        return newest(sessions, Some(cwd)).or_else(|| newest(sessions, None)).ok_or_else(|| {
            Failure::usage("there is no session yet (hint: `agentctl run \"…\"` or `agentctl` begins one)")
        });
    }
    pick(sessions, name, "session", "agentctl ls", |session| (String::new(), session.id.to_string()))
}

/// The one whose short id is `name`, or whose long id begins with it.
pub(crate) fn pick<'a, T>(
    items: &'a [T],
    name: &str,
    what: &str,
    listing: &str,
    ids: impl Fn(&T) -> (String, String),
) -> Result<&'a T, Failure> {
    let name = name.to_lowercase();
    if name.is_empty() {
        return Err(Failure::usage(format!("an empty name means no {what} (hint: `{listing}` lists them)")));
    }
    if let Some(item) = items.iter().find(|item| ids(item).0.to_lowercase() == name) {
        return Ok(item);
    }
    let fits: Vec<&T> = items
        .iter()
        .filter(|item| {
            let (short, long) = ids(item);
            long.starts_with(&name) || short.to_lowercase().starts_with(&name)
        })
        .collect();
    match fits[..] {
        [one] => Ok(one),
        [] => Err(Failure::usage(format!("no {what} is called `{name}` (hint: `{listing}` lists them)"))),
        _ => {
            let names: Vec<String> = fits.iter().take(5).map(|item| ids(item).1).collect();
            Err(Failure::usage(format!(
                "`{name}` fits {} {what}s: {} (hint: type more of it)",
                fits.len(),
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    fn sessions() -> Vec<Session> {
        [
            ("01940000-0000-7000-8000-00000000aaaa", "/a", 1),
            ("01940000-0000-7000-8000-00000000bbbb", "/b", 3),
            ("01950000-0000-7000-8000-00000000cccc", "/a", 2),
        ]
        .map(|(id, cwd, second)| fake::session(id, cwd, second))
        .to_vec()
    }

    #[track_caller]
    fn check(name: &str, cwd: &str, expected: Result<&str, &str>) {
        let sessions = sessions();
        let got = pick_session(&sessions, name, Path::new(cwd));
        match (got, expected) {
            (Ok(session), Ok(end)) => assert!(session.id.to_string().ends_with(end), "{name}: {}", session.id),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{name}: {error}"),
            (got, expected) => panic!("{name}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_session_is_its_id_a_unique_prefix_or_the_last() {
        check("01950000", "/a", Ok("cccc"));
        check("0195", "/", Ok("cccc"));
        check("01940000-0000-7000-8000-00000000BBBB", "/", Ok("bbbb"));
        check("@last", "/a", Ok("cccc"));
        check("@last", "/b", Ok("bbbb"));
        check("@last", "/elsewhere", Ok("bbbb"));
        check("0194", "/a", Err("fits 2 sessions"));
        check("ffff", "/a", Err("no session is called `ffff`"));
        check("", "/a", Err("empty name"));
        check("000", "/a", Err("no session"));
    }

    #[test]
    fn with_no_session_at_all_last_says_how_to_begin_one() {
        let error = pick_session(&[], "@last", Path::new("/a")).unwrap_err();
        assert!(error.to_string().contains("agentctl run"), "{error}");
    }

    #[test]
    fn an_exact_short_id_wins_over_the_beginning_of_another() {
        let items = [("k3x", "0194"), ("k3", "0195")];
        let ids = |item: &(&str, &str)| (item.0.to_owned(), item.1.to_owned());
        assert_eq!(pick(&items, "K3", "approval", "x", ids).unwrap().1, "0195");
        assert_eq!(pick(&items, "k3x", "approval", "x", ids).unwrap().1, "0194");
        assert!(pick(&items, "k", "approval", "x", ids).is_err());
    }
}
