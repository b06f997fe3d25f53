//! An answer in no wire format, and the same in each.

use foundation::ModelErrorKind;
use serde_json::{Value, json};

/// What is said, and what must be understood.
pub(super) struct Scenario {
    pub(super) says: Vec<Says>,
    pub(super) end: End,
    /// Tokens read afresh, written, and read from a cache.
    pub(super) usage: Option<[u64; 3]>,
    pub(super) expected: Expected,
}

/// One part, in the pieces in which it is sent.
pub(super) enum Says {
    Text(&'static [&'static str]),
    Thinking(&'static [&'static str]),
    Call { name: &'static str, arguments: &'static [&'static str] },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    Stop,
    ToolUse,
    Length,
    /// An error object in place of the rest.
    Error,
    /// The connection ends, and nothing says why.
    Cut,
}

#[derive(Debug)]
pub(super) enum Expected {
    Whole { stop: &'static str, content: Value },
    Error(ModelErrorKind),
}

fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}

impl Scenario {
    /// As the Messages API sends it.
    pub(super) fn anthropic(&self) -> String {
        let [input, output, cached] = self.usage.unwrap_or_default();
        let usage = json!({"input_tokens": input, "cache_read_input_tokens": cached, "output_tokens": 1});
        let mut wire = event(&json!({"type": "message_start", "message": {"role": "assistant", "usage": usage}}));
        wire += &event(&json!({"type": "ping"}));
        for (index, says) in self.says.iter().enumerate() {
            let (start, kind, field, pieces) = match says {
                Says::Text(pieces) => (json!({"type": "text", "text": ""}), "text_delta", "text", pieces),
                Says::Thinking(pieces) => {
                    (json!({"type": "thinking", "thinking": ""}), "thinking_delta", "thinking", pieces)
                }
                Says::Call { name, arguments } => {
                    let start = json!({"type": "tool_use", "id": format!("toolu_{index}"), "name": name, "input": {}});
                    (start, "input_json_delta", "partial_json", arguments)
                }
            };
            wire += &event(&json!({"type": "content_block_start", "index": index, "content_block": start}));
            for piece in *pieces {
                let delta = json!({"type": kind, field: piece});
                wire += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            if matches!(says, Says::Thinking(_)) {
                let delta = json!({"type": "signature_delta", "signature": "c2ln"});
                wire += &event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            wire += &event(&json!({"type": "content_block_stop", "index": index}));
        }
        let reason = match self.end {
            End::Stop => "end_turn",
            End::ToolUse => "tool_use",
            End::Length => "max_tokens",
            End::Cut => return wire,
            End::Error => {
                let error = json!({"type": "overloaded_error", "message": "busy"});
                return wire + &event(&json!({"type": "error", "error": error}));
            }
        };
        let delta = json!({"stop_reason": reason, "stop_sequence": null});
        wire += &event(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}}));
        wire + &event(&json!({"type": "message_stop"}))
    }

    /// As chat completions send it.
    pub(super) fn openai(&self) -> String {
        let chunk = |delta: Value, finish: Value| {
            let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
            format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": choices}))
        };
        let mut wire = chunk(json!({"role": "assistant", "content": ""}), Value::Null);
        wire += ": keep-alive\n\n";
        let mut calls = 0;
        for says in &self.says {
            match says {
                Says::Text(pieces) => {
                    wire.extend(pieces.iter().map(|piece| chunk(json!({"content": piece}), Value::Null)));
                }
                Says::Thinking(pieces) => {
                    wire.extend(pieces.iter().map(|piece| chunk(json!({"reasoning_content": piece}), Value::Null)));
                }
                Says::Call { name, arguments } => {
                    let function = json!({"name": name, "arguments": ""});
                    let head = json!({"index": calls, "id": format!("call_{calls}"), "function": function});
                    wire += &chunk(json!({"tool_calls": [head]}), Value::Null);
                    for piece in *arguments {
                        let delta = json!({"index": calls, "function": {"arguments": piece}});
                        wire += &chunk(json!({"tool_calls": [delta]}), Value::Null);
                    }
                    calls += 1;
                }
            }
        }
        let reason = match self.end {
            End::Stop => "stop",
            End::ToolUse => "tool_calls",
            End::Length => "length",
            End::Cut => return wire,
            End::Error => return wire + "data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n",
        };
        wire += &chunk(json!({}), json!(reason));
        if let Some([input, output, cached]) = self.usage {
            let details = json!({"cached_tokens": cached});
            let usage = json!({"prompt_tokens": input + cached, "completion_tokens": output,
                               "prompt_tokens_details": details});
            wire += &format!("data: {}\n\n", json!({"choices": [], "usage": usage}));
        }
        wire + "data: [DONE]\n\n"
    }

    /// As a script for the offline model.
    pub(super) fn script(&self) -> String {
        let mut events = Vec::new();
        for says in &self.says {
            match says {
                Says::Text(pieces) => events.extend(pieces.iter().map(|piece| json!({"text": piece}))),
                Says::Thinking(pieces) => events.extend(pieces.iter().map(|piece| json!({"thinking": piece}))),
                Says::Call { name, arguments } => {
                    events.push(json!({"toolCalls": [{"name": name, "rawInput": arguments.concat()}]}));
                }
            }
        }
        if let Some([input, output, cached]) = self.usage {
            events.push(json!({"usage": {"inputTokens": input, "outputTokens": output, "cacheReadTokens": cached}}));
        }
        events.extend(match self.end {
            End::Stop | End::ToolUse => None,
            End::Length => Some(json!({"stop": "length"})),
            End::Error => Some(json!({"error": {"message": "busy", "status": 503}})),
            End::Cut => Some(json!({"cut": true})),
        });
        json!({"steps": [events]}).to_string()
    }
}
