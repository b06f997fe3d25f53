//! Which model a name gives, and what is said when it gives none.

use secrecy::SecretString;

use super::*;

fn entry(name: &str) -> ProviderConfig {
    ProviderConfig { name: name.into(), ..ProviderConfig::default() }
}

fn keyed(name: &str) -> ProviderConfig {
    ProviderConfig { key: Some(SecretString::from("sk-secret")), ..entry(name) }
}

fn local() -> ProviderConfig {
    let models = BTreeMap::from([("m".into(), ModelConfig { context_window: Some(9), ..ModelConfig::default() })]);
    ProviderConfig { api: Some(Api::Openai), base_url: Some("http://127.0.0.1:1/v1".into()), models, ..entry("local") }
}

#[test]
fn the_preset_file_is_whole() {
    let presets = presets();
    assert_eq!(presets.len(), 15);
    for preset in presets {
        assert!(preset.local || !preset.key_env.is_empty(), "{}", preset.name);
        let default = preset.default_model.as_ref();
        assert!(default.is_none_or(|model| preset.models.contains_key(model)), "{}", preset.name);
        assert!(preset.models.values().all(|model| model.context_window.is_some()), "{}", preset.name);
    }
}

#[track_caller]
fn refused(entries: Vec<ProviderConfig>, name: &str, kind: ProviderErrorKind, says: &str) {
    let error = Providers::new(entries, None).model(name).unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn a_refusal_says_what_to_do_next() {
    use ProviderErrorKind::{Invalid, NotReady, Unknown};
    refused(vec![], "antropic/x", Unknown, "nearest: anthropic,");
    refused(vec![], "claude-sonnet-5", Unknown, "nearest: anthropic/claude-sonnet-5)");
    refused(vec![], "anthropic/", Unknown, "provider/model");
    refused(vec![], "anthropic/claude-sonnet-5", NotReady, "ANTHROPIC_API_KEY");
    refused(vec![entry("mine")], "mine/x", Invalid, "`api`");
    let no_url = ProviderConfig { base_url: Some(String::new()), ..local() };
    refused(vec![no_url], "local/x", Invalid, "baseUrl");
    refused(vec![], "offline/x", Invalid, "offline/rules");
}

#[test]
fn an_unknown_model_of_a_known_provider_has_default_limits() {
    let providers = Providers::new(vec![keyed("openrouter"), local()], None);
    let check = |name: &str, context_window| {
        let model = providers.model(name).unwrap();
        assert_eq!(model.name(), name);
        assert_eq!(model.limits().context_window, context_window, "{name}");
        assert!(!format!("{model:?} {providers:?}").contains("sk-secret"));
    };
    check("openrouter/meta/llama:free", 128_000);
    check("openrouter/openrouter/auto", 200_000);
    check("local/m", 9);
    check("offline/rules", 1_000_000);
    check("offline/script:/tmp/x.json", 128_000);
    check("ollama/qwen3", 128_000);
}

#[test]
fn the_first_key_decides_the_default_unless_the_settings_do() {
    let check = |entries, setting: Option<&str>, expected: &str| {
        let providers = Providers::new(entries, setting.map(Into::into));
        assert_eq!(providers.default_model(), expected);
    };
    check(vec![], None, "offline/rules");
    check(vec![local()], None, "offline/rules");
    check(vec![keyed("openai")], None, "openai/gpt-6.1-terra");
    check(vec![keyed("openai"), keyed("anthropic")], None, "anthropic/claude-sonnet-5-5");
    check(vec![keyed("openai")], Some("local/m"), "local/m");
}

#[test]
fn the_list_tells_what_can_be_called() {
    let list = Providers::new(vec![keyed("openai"), local()], None).list();
    let ready: Vec<_> = list.iter().filter(|model| model.ready).map(|model| model.name.as_str()).collect();
    assert!(ready.contains(&"openai/gpt-5") && ready.contains(&"local/m") && ready.contains(&"offline/rules"));
    assert!(!ready.iter().any(|name| name.starts_with("anthropic/")));
    for default in ["openai/gpt-5", "openrouter/not/known", "offline/script:x.json"] {
        let list = Providers::new(vec![], Some(default.into())).list();
        let defaults: Vec<_> = list.iter().filter(|model| model.default).map(|model| &model.name).collect();
        assert_eq!(defaults, [default]);
    }
}

#[test]
fn an_entry_overrides_the_parts_it_names() {
    let mut provider = Provider::from(presets().remove(0));
    provider.merge(ProviderConfig { base_url: Some("http://127.0.0.1:1".into()), ..entry("anthropic") });
    assert_eq!(provider.config.api, Some(Api::Anthropic));
    assert!(provider.is_ready(), "a server at another address may need no key");
    assert!(provider.config.models.contains_key("claude-sonnet-5"));
}
