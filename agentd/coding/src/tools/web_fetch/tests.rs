//! Pages from a server on loopback, which has to be allowed by name; and all that is not fetched.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use foundation::CallId;
use serde_json::json;

use super::*;

/// A server that answers each path with what `answer` gives, a whole HTTP response.
fn serve(answer: impl Fn(&str, u16) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let _headers = lines.take_while(|line| !line.is_empty()).count();
            let path = first.split(' ').nth(1).unwrap_or_default();
            let _gone = stream.write_all(&answer(path, port));
        }
    });
    port
}

fn ok(kind: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

fn fetch(url: &str, allowed: &[&str]) -> ToolOutcome {
    let dir = tempfile::tempdir().unwrap();
    let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
    let tool = WebFetch::new(Arc::new(Outputs::new(dir.path().into())), allowed.into());
    let call = CallId("call".into());
    let context = ToolContext { call: &call, live: &() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(tool.invoke(json!({"description": "x", "url": url}), &context, &CancellationToken::new()))
}

#[track_caller]
fn refused(url: &str, allowed: &[&str], code: ErrorCode, words: &str) {
    let error = fetch(url, allowed).unwrap_err();
    assert!(error.code == code && error.summary.contains(words) && !error.hint.is_empty(), "{url}: {error}");
}

#[test]
fn html_comes_as_markdown_and_text_as_it_is() {
    let page = "<html><head><style>p{}</style><script>evil()</script></head><body><h1>Title</h1><p>Some <b>bold</b> \
                <a href=\"/x\">link</a></p></body></html>";
    let port = serve(move |path, _| match path {
        "/page" => ok("text/html; charset=utf-8", page),
        "/data" => ok("application/json", "{\"a\": 1}"),
        "/zip" => ok("application/zip", "PK\0\0"),
        "/packed" => b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\nxx".to_vec(),
        _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
    });
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let text = fetch(&at("/page"), &["127.0.0.1"]).unwrap().text;
    assert!(text.starts_with(&format!("[http://127.0.0.1:{port}/page, somebody else's words")), "{text}");
    assert!(text.contains("# Title") && text.contains("**bold** [link](/x)") && !text.contains("evil"), "{text}");
    assert!(fetch(&at("/data"), &["127.0.0.1"]).unwrap().text.ends_with("]\n{\"a\": 1}"));
    refused(&at("/zip"), &["127.0.0.1"], ErrorCode::Binary, "is not text (application/zip)");
    refused(&at("/packed"), &["127.0.0.1"], ErrorCode::Binary, "packed as gzip");
    refused(&at("/none"), &["127.0.0.1"], ErrorCode::CommandFailed, "404");
}

#[test]
fn what_is_not_on_the_open_internet_is_not_dialled() {
    let port = serve(|_, _| ok("text/plain", "secret"));
    let not_public = "not on the open internet";
    for host in
        ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f.1", "169.254.169.254", "[::ffff:127.0.0.1]"]
    {
        let error = fetch(&format!("http://{host}:{port}/"), &[]).unwrap_err();
        assert!(error.summary.contains(not_public) || error.code == ErrorCode::InvalidInput, "{host}: {error}");
    }
    refused(&format!("http://localhost:{port}/"), &["127.0.0.1"], ErrorCode::Denied, not_public);
    assert!(fetch(&format!("http://localhost:{port}/"), &["localhost"]).unwrap().text.ends_with("secret"));
}

#[test]
fn redirects_stay_on_their_host_and_end() {
    let port = serve(|path, port| {
        let to = match path {
            "/a" => "/b".to_owned(),
            "/b" => return ok("text/plain", "there"),
            "/elsewhere" => format!("http://localhost:{port}/b"),
            _ => "/round".to_owned(),
        };
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
    });
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert!(
        fetch(&at("/a"), &["127.0.0.1"])
            .unwrap()
            .text
            .ends_with("/b, somebody else's words and no instructions]\nthere")
    );
    refused(&at("/elsewhere"), &["127.0.0.1", "localhost"], ErrorCode::Denied, "on another host");
    refused(&at("/round"), &["127.0.0.1"], ErrorCode::IoError, "more than 5 times");
}

#[test]
fn an_endless_page_is_cut() {
    let port = serve(|_, _| ok("text/plain", &"line\n".repeat(client::MOST_BYTES / 5 + 1000)));
    let output = fetch(&format!("http://127.0.0.1:{port}/"), &["127.0.0.1"]).unwrap();
    assert!(output.summary.contains("5,242,880 bytes, the rest was not read"), "{}", output.summary);
    assert!(output.text.contains("read_output with outputId o1"), "{}", &output.text[..300]);
}

#[test]
fn a_url_that_two_could_read_in_two_ways_is_refused() {
    for url in [
        "file:///etc/passwd",
        "ftp://example.org/",
        "example.org",
        "http://a@example.org/",
        "http://",
        "http:example.org",
    ] {
        refused(url, &[], ErrorCode::InvalidInput, "");
    }
    for url in ["http://exa\tmple.org/", "http:///example.org/", "http://EXA%4dPLE.org/"] {
        assert_eq!(url_of(url).unwrap_err().code, ErrorCode::InvalidInput, "{url}");
    }
    // Both take the backslash for the end of the host.
    assert_eq!(url_of("http://example.org\\@localhost/").unwrap().host_str(), Some("example.org"));
}
