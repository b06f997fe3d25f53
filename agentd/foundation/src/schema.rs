//! A tool's parameters, from a Rust type to the JSON Schema that models are given.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// The schema of `T` as a tool's parameters, with a required `description` before all others.
///
/// Every reference is inlined and no `$schema` is named, because several providers refuse both. Unknown fields are
/// refused, so that a misspelt option is an error and not a silent default.
#[must_use]
pub fn parameters<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    let mut properties = Map::new();
    properties.insert(
        "description".into(),
        json!({"type": "string", "description": "Why this call, in 3 to 8 words. People see it."}),
    );
    if let Some(Value::Object(own)) = schema.get_mut("properties").map(Value::take) {
        properties.extend(own);
    }
    let mut required = vec![json!("description")];
    if let Some(Value::Array(own)) = schema.get_mut("required").map(Value::take) {
        required.extend(own);
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Input {
        /// Where.
        path: String,
        start_line: Option<u64>,
    }

    #[test]
    fn description_comes_first_and_is_required() {
        let schema = parameters::<Input>();
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["description", "path", "startLine"]);
        assert_eq!(schema["required"], json!(["description", "path"]));
        assert_eq!(schema["additionalProperties"], false);
        assert!(!schema.to_string().contains("$ref"));
    }
}
