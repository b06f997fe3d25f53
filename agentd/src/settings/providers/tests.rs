//! Where addresses and keys come from.

use std::os::unix::fs::PermissionsExt;

use secrecy::ExposeSecret;

use super::*;

fn env(vars: &[(&str, &str)]) -> Environment {
    vars.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect::<BTreeMap<_, _>>().into()
}

fn presets() -> Vec<PresetVariables> {
    let preset = |name: &str, key: &[&str], base_url: &str| PresetVariables {
        name: name.into(),
        key: key.iter().map(|name| (*name).into()).collect(),
        base_url: vec![base_url.into()],
        default_model: None,
    };
    vec![
        preset("openai", &["OPENAI_API_KEY"], "OPENAI_BASE_URL"),
        preset("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], "GEMINI_BASE_URL"),
        preset("ollama", &[], "OLLAMA_BASE_URL"),
    ]
}

/// Checks name, address and key of each provider.
#[track_caller]
fn check(settings: &str, vars: &[(&str, &str)], expected: &[(&str, Option<&str>, KeySource)]) {
    let settings = serde_json::from_str(settings).unwrap();
    let found = providers(&settings, &env(vars), &presets());
    let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.base_url.as_deref(), it.key.clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_preset_needs_only_its_key_and_an_entry_overrides_parts() {
    let key = || KeySource::Env("OPENAI_API_KEY".into());
    let vars = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://proxy/v1/")];
    check("{}", &[], &[]);
    check("{}", &vars[..1], &[("openai", None, key())]);
    check("{}", &vars, &[("openai", Some("http://proxy/v1"), key())]);
    check("{}", &[("GOOGLE_API_KEY", "k")], &[("gemini", None, KeySource::Env("GOOGLE_API_KEY".into()))]);
    check("{}", &[("OLLAMA_BASE_URL", "http://h/v1")], &[("ollama", Some("http://h/v1"), KeySource::None)]);
    check(r#"{"providers": {"gemini": {}}}"#, &[], &[("gemini", None, KeySource::None)]);
    let entry = r#"{"providers": {"openai": {"baseUrl": "http://mine/v1"}}}"#;
    check(entry, &vars, &[("openai", Some("http://mine/v1"), key())]);
    let entry = r#"{"providers": {"openai": {"apiKey": {"file": "~/k"}}}}"#;
    check(entry, &vars, &[("openai", Some("http://proxy/v1"), KeySource::File("~/k".into()))]);
    let own = r#"{"providers": {"local": {"api": "openai", "baseUrl": "http://127.0.0.1:8080/v1"}}}"#;
    check(own, &[], &[("local", Some("http://127.0.0.1:8080/v1"), KeySource::None)]);
}

#[track_caller]
fn resolves(source: &KeySource, env: &Environment, expected: Result<&str, &str>) {
    match (source.resolve(env), expected) {
        (Ok(Some(key)), Ok(expected)) => assert_eq!(key.expose_secret(), expected),
        (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
        (found, _) => panic!("{found:?}"),
    }
}

#[test]
fn a_key_is_read_from_a_variable_or_a_file_of_the_user_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let env = env(&[("K", " sk-1\n"), ("TWO", "sk-1\nsk-2"), ("HOME", dir.path().to_str().unwrap())]);
    let file = KeySource::File("~/key".into());
    assert!(KeySource::None.resolve(&env).unwrap().is_none());
    resolves(&KeySource::Env("K".into()), &env, Ok("sk-1"));
    resolves(&KeySource::Env("NO".into()), &env, Err("NO is not set"));
    resolves(&KeySource::Env("TWO".into()), &env, Err("TWO holds no key"));
    resolves(&file, &env, Err("No such file"));
    std::fs::write(&path, "sk-file\n").unwrap();
    for (mode, expected) in
        [(0o600, Ok("sk-file")), (0o400, Ok("sk-file")), (0o640, Err("chmod 600")), (0o604, Err("chmod 600"))]
    {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        resolves(&file, &env, expected);
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, " \n").unwrap();
    resolves(&file, &env, Err("holds no key"));
    // Only root can make a file that belongs to somebody else.
    if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
        resolves(&file, &env, Err("belongs to another user"));
    }
    resolves(&KeySource::File("key".into()), &env, Err("must be absolute"));
    resolves(&KeySource::File("/dev/null".into()), &env, Err("regular file"));
    resolves(&KeySource::Command(vec!["pass".into()]), &env, Err("use env or file"));
}

#[test]
fn no_error_and_no_debug_text_shows_a_key() {
    let env = env(&[("K", "sk-sécret")]);
    let source = KeySource::Env("K".into());
    assert!(!format!("{:?} {env:?} {source:?}", source.resolve(&env)).contains("sk-"));
}
