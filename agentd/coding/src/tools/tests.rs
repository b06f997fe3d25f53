//! What holds for every tool of the registry.

use foundation::ToolClass;
use serde_json::Value;

use super::testing::bench;

#[test]
fn the_order_of_the_tools_never_changes() {
    let bench = bench();
    let names: Vec<_> = bench.tools.iter().map(|tool| tool.spec().name).collect();
    assert_eq!(names, ["read", "list", "glob", "grep", "file_info", "edit", "write", "apply_patch", "mkdir", "move"]);
}

#[test]
fn every_tool_says_what_it_does_and_asks_why_first() {
    for tool in bench().tools {
        let spec = tool.spec();
        let (name, parameters) = (spec.name, &spec.parameters);
        assert_eq!(parameters["properties"].as_object().unwrap().keys().next().unwrap(), "description", "{name}");
        assert_eq!(parameters["required"][0], "description", "{name}");
        assert_eq!(parameters["additionalProperties"], false, "{name}");
        assert!(!parameters.to_string().contains("$ref"), "{name}");
        assert!((40..=600).contains(&spec.description.len()), "{name}: {}", spec.description.len());
        for (field, schema) in parameters["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}.{field}");
        }
    }
}

#[test]
fn parameters_and_classes_are_those_that_are_documented() {
    let bench = bench();
    for (name, fields, required, class) in [
        ("read", "path startLine endLine", "path", ToolClass::Read),
        ("list", "path depth limit", "path", ToolClass::Read),
        ("glob", "pattern path limit", "pattern", ToolClass::Read),
        ("grep", "pattern path glob caseSensitive context limit", "pattern", ToolClass::Read),
        ("edit", "path oldString newString replaceAll", "path oldString newString", ToolClass::File),
        ("write", "path content", "path content", ToolClass::File),
        ("apply_patch", "patch", "patch", ToolClass::File),
        ("file_info", "path", "path", ToolClass::Read),
        ("mkdir", "path", "path", ToolClass::File),
        ("move", "from to overwrite", "from to", ToolClass::File),
    ] {
        let spec = bench.tool(name).spec();
        let own: Vec<_> = spec.parameters["properties"].as_object().unwrap().keys().skip(1).cloned().collect();
        assert_eq!(own.join(" "), fields, "{name}");
        let own: Vec<_> =
            spec.parameters["required"].as_array().unwrap().iter().skip(1).filter_map(Value::as_str).collect();
        assert_eq!(own.join(" "), required, "{name}");
        assert_eq!(spec.class, class, "{name}");
    }
}
