//! Real error bodies, and what each must mean.

use super::*;

#[track_caller]
fn check(status: u16, body: &str, kind: Kind, says: &str) {
    let refusal = Refusal { provider: "p", status: (status > 0).then_some(status), ..Refusal::default() };
    let error = refusal.read(body);
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.message.contains(says), "{error}");
}

#[test]
fn status_code_and_phrases_decide_the_kind() {
    check(
        401,
        r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#,
        Kind::Auth,
        "Incorrect API key",
    );
    check(403, "<html>Forbidden</html>", Kind::Auth, "p: HTTP 403: <html>Forbidden");
    check(402, r#"{"error":{"message":"Insufficient Balance"}}"#, Kind::Quota, "Insufficient Balance");
    check(429, r#"{"error":{"message":"You exceeded …","type":"insufficient_quota"}}"#, Kind::Quota, "exceeded");
    check(400, r#"{"type":"error","error":{"message":"Your credit balance is too low"}}"#, Kind::Quota, "credit");
    check(429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#, Kind::RateLimit, "slow down");
    check(413, r#"{"error":{"type":"request_too_large"}}"#, Kind::ContextTooLarge, "request_too_large");
    let long = r#"{"error":{"message":"This model's maximum context length is 8192 tokens"}}"#;
    check(400, long, Kind::ContextTooLarge, "8192");
    check(400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8"}}"#, Kind::ContextTooLarge, "9 tokens");
    check(400, r#"{"error":{"message":"bad schema"}}"#, Kind::BadRequest, "bad schema");
    check(404, r#"{"error":"model 'x' not found"}"#, Kind::BadRequest, "model 'x' not found");
    check(400, r#"{"error":{"code":"content_filter","message":"no"}}"#, Kind::Filter, "no");
    check(529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Kind::Overloaded, "Overloaded");
    check(503, "", Kind::Overloaded, "p: HTTP 503");
    check(500, r#"[{"error":{"code":500,"message":"boom"}}]"#, Kind::Server, "boom");
}

#[test]
fn an_error_inside_a_stream_is_told_by_its_code_or_type() {
    check(0, r#"{"error":{"message":"quota exceeded","code":429}}"#, Kind::RateLimit, "quota exceeded");
    check(0, r#"{"error":{"message":"late","code":"502"}}"#, Kind::Server, "late");
    check(0, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#, Kind::Overloaded, "busy");
    check(0, r#"{"error":"it broke"}"#, Kind::Server, "it broke");
    check(0, r#"{"object":"error","message":"too long a context length"}"#, Kind::ContextTooLarge, "too long");
}

#[test]
fn the_request_id_is_named() {
    let refusal =
        Refusal { provider: "p", status: Some(500), request_id: Some(("request-id", "r1")), ..Refusal::default() };
    assert_eq!(refusal.read(r#"{"error":{"message":"m"}}"#).message, "p: HTTP 500: m (request-id r1)");
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now: Timestamp = "2015-10-21T07:27:30Z".parse().unwrap();
    let check = |value, expected| assert_eq!(retry_after(value, now), expected, "{value}");
    check("3", Some(Duration::from_secs(3)));
    check(" 0.5 ", Some(Duration::from_millis(500)));
    check("Wed, 21 Oct 2015 07:28:00 GMT", Some(Duration::from_secs(30)));
    check("Wed, 21 Oct 2015 07:27:00 GMT", Some(Duration::ZERO));
    check("-1", None);
    check("soon", None);
}
