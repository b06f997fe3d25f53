//! One provider over HTTP: a request out, a byte stream or a refusal back.
//!
//! There is no time limit on a whole answer, only on connecting, on the first byte and on silence. What leaves this
//! file as text never holds a key.

use std::error::Error as StdError;
use std::net::IpAddr;

use foundation::{ModelError, ModelErrorKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::Response;
use crate::config::Timeouts;
use crate::failure::{Refusal, retry_after};
use crate::sse::Fault;

/// How much of an error body is read.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// The headers in which providers name a request, for their support.
const REQUEST_IDS: [&str; 4] = ["request-id", "x-request-id", "x-amzn-requestid", "cf-ray"];

/// Where and how to reach a provider.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) provider: String,
    pub(crate) url: String,
    /// Values are secret, because any of them may be a key.
    pub(crate) headers: Vec<(String, SecretString)>,
    pub(crate) timeouts: Timeouts,
}

/// A provider's connection pool.
#[derive(Debug)]
pub(crate) struct Http {
    provider: String,
    client: Client,
    url: Url,
    headers: HeaderMap,
    secrets: Vec<SecretString>,
    timeouts: Timeouts,
}

impl Http {
    /// # Errors
    /// Says which setting is wrong.
    pub(crate) fn new(endpoint: Endpoint) -> Result<Self, String> {
        let url = Url::parse(&endpoint.url).map_err(|error| format!("baseUrl gives `{}`: {error}", endpoint.url))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(format!("baseUrl gives `{}`, which is not an http or https address", endpoint.url));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &endpoint.headers {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header name"))?;
            let mut value = HeaderValue::from_str(value.expose_secret())
                .map_err(|_| format!("the value for header `{name}` holds characters that a header cannot"))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        // Redirects are not followed: they could carry a key to another host. No compression: it holds events back.
        let mut builder = Client::builder()
            .connect_timeout(endpoint.timeouts.connect)
            .redirect(reqwest::redirect::Policy::none())
            .gzip(false)
            .user_agent(concat!("agentd/", env!("CARGO_PKG_VERSION")));
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| format!("no HTTP client: {}", innermost(&error)))?;
        let secrets = endpoint.headers.into_iter().map(|(_, value)| value).collect();
        Ok(Self { provider: endpoint.provider, client, url, headers, secrets, timeouts: endpoint.timeouts })
    }

    /// Sends a request and waits until the provider has accepted it.
    pub(crate) async fn post(&self, body: Vec<u8>) -> Result<Response, ModelError> {
        let asked = Instant::now();
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        let response = match timeout_at(asked + self.timeouts.first_byte, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => return Err(self.no_answer()),
        };
        let is_events = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_none_or(|kind| !kind.contains("json") && !kind.contains("html"));
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        if !is_events {
            return Err(self.no_stream(response).await);
        }
        let bytes =
            response.bytes_stream().map(|piece| piece.map_err(|error| Fault::Broken(innermost(&error)))).boxed();
        Ok(Response { provider: self.provider.clone(), bytes, timeouts: self.timeouts, asked })
    }

    async fn refusal(&self, response: reqwest::Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let body = self.error_body(response).await;
        let refusal = Refusal {
            provider: &self.provider,
            status: Some(status),
            request_id: REQUEST_IDS.iter().find_map(|&name| Some((name, text(name)?))),
            retry_after: text(RETRY_AFTER.as_str()).and_then(|value| retry_after(value, Timestamp::now())),
        };
        let mut error = refusal.read(&body);
        if (300..400).contains(&status) {
            error.hint = "this address redirects, which is not followed: put the new one into baseUrl".into();
        }
        error
    }

    /// An accepted request whose answer is no event stream: some servers report errors that way.
    async fn no_stream(&self, response: reqwest::Response) -> ModelError {
        let body = self.error_body(response).await;
        if serde_json::from_str::<serde_json::Value>(&body).is_ok_and(|body| body.get("error").is_some()) {
            return Refusal { provider: &self.provider, ..Refusal::default() }.read(&body);
        }
        let message = format!("{}: {} answered, but not with an event stream", self.provider, self.address());
        ModelError::new(ModelErrorKind::Protocol, message, "check baseUrl, and that this server can stream")
    }

    /// As much of an error body as is worth reading, without secrets that it may repeat.
    async fn error_body(&self, response: reqwest::Response) -> String {
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        let reading = async {
            while let Some(Ok(piece)) = pieces.next().await {
                let room = MAX_ERROR_BYTES - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                if body.len() == MAX_ERROR_BYTES {
                    break;
                }
            }
        };
        // What came within the limit is enough.
        let _in_time = timeout(self.timeouts.idle, reading).await;
        let mut text = String::from_utf8_lossy(&body).into_owned();
        for secret in &self.secrets {
            let secret = secret.expose_secret();
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            if bare.len() >= 8 {
                text = text.replace(bare, "[key]");
            }
        }
        text
    }

    fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        let cause = innermost(error);
        let lower = cause.to_lowercase();
        let hint = if lower.contains("certificate") || lower.contains("issuer") {
            "if a proxy or a private authority signs here, put its certificate into the system's store or SSL_CERT_FILE"
        } else if error.is_connect() && is_loopback(&self.url) {
            "start the local server, or correct baseUrl in the settings"
        } else if error.is_connect() {
            "check the network, the proxy variables and baseUrl, then send the message again"
        } else {
            "try again"
        };
        let message = format!("{}: {}: {cause}", self.provider, self.address());
        ModelError::new(ModelErrorKind::Network, message, hint)
    }

    fn no_answer(&self) -> ModelError {
        let (provider, seconds) = (&self.provider, self.timeouts.first_byte.as_secs());
        let message = format!("{provider}: {} did not answer for {seconds} s", self.address());
        ModelError::new(
            ModelErrorKind::Network,
            message,
            "try again, or raise `timeouts.firstByteSecs` in the settings",
        )
    }

    /// Scheme, host and port: no path or query, where a key could stand.
    fn address(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The cause at the bottom: the outer ones say "error sending request" and the URL.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    if cause.is::<reqwest::Error>() { "the request could not be sent".into() } else { cause.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_bypass_the_proxy() {
        let check = |url: &str, expected| assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        check("http://127.0.0.1:8080/v1", true);
        check("http://127.9.9.9/v1", true);
        check("http://[::1]:1/v1", true);
        check("http://localhost/v1", true);
        check("http://10.0.0.1/v1", false);
        check("https://localhost.example.com/v1", false);
    }

    #[test]
    fn a_wrong_address_or_header_is_named() {
        let endpoint = |url: &str, name: &str| Endpoint {
            provider: "p".into(),
            url: url.into(),
            headers: vec![(name.into(), SecretString::from("v\n"))],
            timeouts: Timeouts::default(),
        };
        let check = |url, name, says: &str| assert!(Http::new(endpoint(url, name)).unwrap_err().contains(says));
        check("localhost:8080/v1", "x", "localhost:8080/v1");
        check("no url", "x", "no url");
        check("http://h/v1", "a b", "`a b` is no header name");
        check("http://h/v1", "x-a", "header `x-a`");
    }
}
