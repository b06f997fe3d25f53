//! The tools of one run by name, each with its compiled schema.
//!
//! A call gets past here with an input that fits, or not at all.

use std::sync::Arc;

use foundation::{ErrorCode, Tool, ToolClass, ToolError, ToolSpec};
use jsonschema::Validator;
use serde_json::Value;

use crate::context::ToolCall;
use crate::validate;

pub(crate) struct Toolbox {
    tools: Vec<Checked>,
}

struct Checked {
    tool: Arc<dyn Tool>,
    /// `None` for a foreign schema that is none: the tool stays usable and checks its input itself.
    validator: Option<Validator>,
}

impl Toolbox {
    /// Of two tools with the same name the first counts.
    pub(crate) fn new(tools: &[Arc<dyn Tool>]) -> Self {
        let mut checked: Vec<Checked> = Vec::new();
        for tool in tools {
            if checked.iter().any(|other| other.tool.spec().name == tool.spec().name) {
                tracing::warn!(tool = tool.spec().name, "a second tool of this name is left out");
                continue;
            }
            let validator = jsonschema::draft202012::new(&tool.spec().parameters)
                .inspect_err(|error| tracing::warn!(tool = tool.spec().name, %error, "its schema cannot be checked"))
                .ok();
            checked.push(Checked { tool: Arc::clone(tool), validator });
        }
        Self { tools: checked }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|checked| checked.tool.spec().clone()).collect()
    }

    /// The tool for a call, if it is one of `visible` and the input fits. A small slip in a reading call's input is
    /// set right on the way.
    pub(crate) fn admit(&self, call: &mut ToolCall, visible: &[ToolSpec]) -> Result<&Arc<dyn Tool>, ToolError> {
        let checked = self
            .tools
            .iter()
            .find(|checked| checked.tool.spec().name == call.name)
            .filter(|checked| visible.iter().any(|spec| spec.name == checked.tool.spec().name))
            .ok_or_else(|| unknown(&call.name, visible))?;
        checked.fit(&call.name, &mut call.input)?;
        Ok(&checked.tool)
    }

    /// Checks an input that came from a hook.
    pub(crate) fn recheck(&self, call: &mut ToolCall) -> Result<(), ToolError> {
        let checked = self.tools.iter().find(|checked| checked.tool.spec().name == call.name);
        checked.map_or(Ok(()), |checked| checked.fit(&call.name, &mut call.input))
    }
}

impl Checked {
    fn fit(&self, name: &str, input: &mut Value) -> Result<(), ToolError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        if validator.is_valid(input) {
            return Ok(());
        }
        let spec = self.tool.spec();
        if spec.class == ToolClass::Read
            && let Some(coerced) = validate::coerced(&spec.parameters, input)
            && validator.is_valid(&coerced)
        {
            *input = coerced;
            return Ok(());
        }
        Err(ToolError {
            details: Some(Value::String(validate::problems(validator, input).join("\n"))),
            ..ToolError::new(
                ErrorCode::InvalidInput,
                format!("the input of `{name}` does not fit its parameters; it was not run"),
                "Correct the fields named below and call it again.",
            )
        })
    }
}

fn unknown(name: &str, visible: &[ToolSpec]) -> ToolError {
    let names: Vec<_> = visible.iter().map(|spec| spec.name).collect();
    let likeness = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
    let nearest = names
        .iter()
        .map(|known| (likeness(known), *known))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match nearest {
        Some((_, nearest)) => format!("Did you mean `{nearest}`? Available: {}.", names.join(", ")),
        None if names.is_empty() => "No tools are available now; answer in words.".into(),
        None => format!("Call one of the available tools: {}.", names.join(", ")),
    };
    ToolError::new(ErrorCode::UnknownTool, format!("there is no tool `{name}`"), hint)
}
