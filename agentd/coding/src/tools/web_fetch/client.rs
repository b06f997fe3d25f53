//! One GET over HTTP, with every bound there is: where it may connect to, how far it is led on, how long, how much.
//!
//! A name is looked up once, and what is dialled is what was checked. No proxy, no cookie, no key and no compression: a
//! proxy would dial for us, and what is small when it comes may not be when it is unpacked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use foundation::{ErrorCode, ToolError};
use futures_util::StreamExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::address::is_public;

const CONNECT: Duration = Duration::from_secs(10);
/// For all hops together.
const WHOLE: Duration = Duration::from_secs(30);
const MOST_HOPS: usize = 5;
/// As much of a page as is read.
pub(super) const MOST_BYTES: usize = 5 << 20;

/// What came back.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// There was more.
    pub(super) is_cut: bool,
}

/// Fetches `url`, following redirects within its host.
///
/// # Errors
/// `Denied` for an address that is not public, and a redirect to another host; `TimedOut`, `IoError`, `CommandFailed`
/// for an answer that is no success.
pub(super) async fn get(url: Url, allowed: &Arc<[String]>) -> Result<Page, ToolError> {
    let gave_up = || {
        let fact = format!("{url}: no whole answer within {} s", WHOLE.as_secs());
        ToolError::new(ErrorCode::TimedOut, fact, "Try another source, or once more later.")
    };
    tokio::time::timeout(WHOLE, hops(url.clone(), allowed)).await.unwrap_or_else(|_| Err(gave_up()))
}

async fn hops(mut url: Url, allowed: &Arc<[String]>) -> Result<Page, ToolError> {
    let client = client(allowed).map_err(|error| unreachable(&url, &error))?;
    for _ in 0..=MOST_HOPS {
        check(&url, allowed)?;
        let request =
            client.get(url.clone()).header(ACCEPT, "text/html, text/markdown, text/plain, application/json, */*;q=0.5");
        let response = request.send().await.map_err(|error| unreachable(&url, &error))?;
        let Some(next) = redirect(&url, &response) else { return page(url, response).await };
        let next = next?;
        if next.host_str() != url.host_str() || (next.scheme() == "http" && url.scheme() == "https") {
            let fact = format!("{url} leads to {next}, on another host or without TLS; that was not fetched");
            return Err(ToolError::new(
                ErrorCode::Denied,
                fact,
                "Fetch that URL with a call of its own if it is wanted.",
            ));
        }
        url = next;
    }
    let fact = format!("{url}: led on more than {MOST_HOPS} times");
    Err(ToolError::new(ErrorCode::IoError, fact, "Find the page's own URL, or another source."))
}

fn client(allowed: &Arc<[String]>) -> reqwest::Result<Client> {
    Client::builder()
        .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .no_proxy()
        .no_gzip()
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(Checked { allowed: Arc::clone(allowed) }))
        .build()
}

/// What the name or the number says by itself; what a name leads to is checked where it is looked up.
fn check(url: &Url, allowed: &[String]) -> Result<(), ToolError> {
    let host = url.host_str().unwrap_or_default();
    let number = host.trim_matches(['[', ']']).parse::<IpAddr>();
    if number.is_ok_and(|address| !is_public(address)) && !is_allowed(host, allowed) {
        return Err(not_public(host));
    }
    Ok(())
}

fn is_allowed(host: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
}

fn not_public(host: &str) -> ToolError {
    ToolError::new(
        ErrorCode::Denied,
        format!("{host} is not on the open internet, so nothing is fetched from it"),
        "If the person wants this, they can name the host in their setting `web.allowHosts`; or use a command.",
    )
}

/// Looks names up, and leaves out every address that is not public.
struct Checked {
    allowed: Arc<[String]>,
}

/// Marks the refusal on its way through the HTTP library.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not on the open internet")]
struct NotPublic(String);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, allowed) = (name.as_str().to_owned(), Arc::clone(&self.allowed));
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let kept: Vec<SocketAddr> = match is_allowed(&host, &allowed) {
                true => found,
                false => found.into_iter().filter(|address| is_public(address.ip())).collect(),
            };
            if kept.is_empty() {
                return Err(NotPublic(host).into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

fn unreachable(url: &Url, error: &reqwest::Error) -> ToolError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut last = String::new();
    while let Some(inner) = cause {
        if inner.is::<NotPublic>() {
            return not_public(url.host_str().unwrap_or_default());
        }
        last = inner.to_string();
        cause = inner.source();
    }
    ToolError::new(ErrorCode::IoError, format!("{url}: {last}"), "Look at the URL, or find another source.")
}

/// Where an answer leads on to.
fn redirect(url: &Url, response: &Response) -> Option<Result<Url, ToolError>> {
    if !response.status().is_redirection() {
        return None;
    }
    let place = response.headers().get(LOCATION)?.to_str().ok()?;
    Some(url.join(place).map_err(|error| {
        let fact = format!("{url} leads to {place:?}, which is no URL: {error}");
        ToolError::new(ErrorCode::IoError, fact, "Find another source.")
    }))
}

async fn page(url: Url, response: Response) -> Result<Page, ToolError> {
    let status = response.status();
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (content_type, encoding) = (text(CONTENT_TYPE), text(CONTENT_ENCODING));
    if !status.is_success() {
        let fact = format!("{url} answered with {status}");
        return Err(ToolError::new(ErrorCode::CommandFailed, fact, "Look at the URL, or find another source."));
    }
    if !matches!(encoding.as_str(), "" | "identity") {
        let fact = format!("{url} is packed as {encoding}, which was not asked for");
        return Err(ToolError::new(ErrorCode::Binary, fact, "Find another source, or use a command."));
    }
    let (mut bytes, mut pieces) = (Vec::new(), response.bytes_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| unreachable(&url, &error))?;
        let room = MOST_BYTES - bytes.len();
        bytes.extend_from_slice(piece.get(..room).unwrap_or(&piece));
        if piece.len() > room {
            return Ok(Page { url, content_type, bytes, is_cut: true });
        }
    }
    Ok(Page { url, content_type, bytes, is_cut: false })
}
