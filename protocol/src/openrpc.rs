//! The contract as an OpenRPC document, printed from the table of methods and the types themselves.
//!
//! OpenRPC 1.3 has no word for subscriptions; they are methods with an `x-subscription` that names their
//! notifications and how to end them.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::error::ErrorKind;
use crate::event::Event;
use crate::method::METHODS;

/// The whole document.
#[must_use]
pub fn document(version: &str) -> Value {
    let mut schemas = SchemaSettings::draft07()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let methods: Vec<Value> = METHODS
        .iter()
        .map(|method| {
            let params = (method.params)(&mut schemas);
            let result = (method.result)(&mut schemas);
            let mut entry = json!({
                "name": method.name,
                "summary": method.about,
                "paramStructure": "either",
                "params": params_of(&resolve(params.to_value(), &schemas)),
                "result": {"name": "result", "schema": result},
            });
            if let Some((event, end)) = method.subscription {
                entry["x-subscription"] = json!({"notification": event, "unsubscribe": end});
            }
            entry
        })
        .collect();
    let event = schemas.subschema_for::<Event>();
    let errors: Map<String, Value> = ErrorKind::ALL
        .iter()
        .map(|kind| (kind.as_str().to_owned(), json!({"code": kind.code(), "message": kind.as_str()})))
        .collect();
    json!({
        "openrpc": "1.3.2",
        "info": {"title": "agentd", "version": version, "license": {"name": "MIT OR Apache-2.0"}},
        "methods": methods,
        "x-event": event,
        "components": {"schemas": schemas.take_definitions(true), "errors": errors},
    })
}

/// Follows one `$ref` to the definition behind it.
fn resolve(schema: Value, schemas: &schemars::SchemaGenerator) -> Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    name.and_then(|name| schemas.definitions().get(name)).cloned().unwrap_or(schema)
}

/// OpenRPC lists parameters one by one.
fn params_of(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| json!({"name": name, "required": required.contains(&name.as_str()), "schema": schema}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_leads_to_a_definition() {
        let document = document("0");
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} is not defined");
        }
        assert!(text.contains("#/components/schemas/"));
        assert_eq!(document["methods"].as_array().unwrap().len(), METHODS.len());
        let start = document["methods"].as_array().unwrap().iter().find(|m| m["name"] == "turn/start").unwrap();
        assert_eq!(start["params"][0]["name"], "sessionId");
        assert_eq!(start["params"][0]["required"], true);
        assert_eq!(start["params"][2]["required"], false);
    }
}
