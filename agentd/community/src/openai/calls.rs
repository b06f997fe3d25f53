//! Which call a piece of a call belongs to, on servers that number, name and cut them in their own ways.
//!
//! An index may be missing or the same for all, an id missing or repeated in every piece, a name repeated. Each piece
//! is placed by what it does say; the arguments gathered so far decide where that is not enough.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::draft::{Draft, Place};

/// One piece of a tool call, as it comes.
#[derive(Deserialize, Default, Debug)]
pub(super) struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    /// Text, or on a few servers a number.
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize, Default, Debug)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    /// Text, or on a few servers the object itself.
    #[serde(default)]
    arguments: Option<Value>,
}

/// The calls of one answer.
#[derive(Default, Debug)]
pub(super) struct Calls {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    place: Place,
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: Progress,
}

impl Calls {
    pub(super) fn add(&mut self, delta: CallDelta, draft: &mut Draft) {
        let CallDelta { index, id, function } = delta;
        let FunctionDelta { name, arguments } = function.unwrap_or_default();
        let id = id.filter(|id| !id.is_null()).map(|id| id.as_str().map_or_else(|| id.to_string(), Into::into));
        let id = id.filter(|id| !id.is_empty());
        let name = name.filter(|name| !name.is_empty());
        let arguments = match arguments {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => String::new(),
            Some(object) => object.to_string(),
        };
        let known = self.find(index, id.as_deref(), name.as_deref(), arguments.is_empty());
        let call = match known {
            Some(number) => &mut self.open[number],
            None => {
                let name = name.unwrap_or_default();
                let place = draft.open_call(id.as_deref(), &name, Map::new());
                self.open.push(Open { place, index, id: None, name, arguments: Progress::default() });
                let last = self.open.len() - 1;
                &mut self.open[last]
            }
        };
        call.id = call.id.take().or(id);
        call.arguments.add(&arguments);
        draft.append(call.place, &arguments);
    }

    /// The call that a piece continues, or `None` if it begins one.
    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>, bare: bool) -> Option<usize> {
        let last_with = |matches: &dyn Fn(&Open) -> bool| self.open.iter().rposition(matches);
        let candidate = match (index, id) {
            (Some(_), _) => last_with(&|call| call.index == index),
            (None, Some(_)) => last_with(&|call| call.id.as_deref() == id),
            (None, None) => self.open.len().checked_sub(1),
        }?;
        let call = &self.open[candidate];
        let both_named = id.is_some() && call.id.is_some();
        let same_id = both_named && call.id.as_deref() == id;
        // The same name again is either a header sent twice or the next call under a number already used.
        let more_than_whole = call.arguments.is_whole() && !bare && !same_id;
        let next_call = name.is_some_and(|name| name != call.name || more_than_whole);
        (both_named == same_id && !next_call).then_some(candidate)
    }
}

/// Whether the arguments so far are a whole JSON object, kept up to date piece by piece.
#[derive(Default, Debug)]
struct Progress {
    depth: usize,
    place: JsonPlace,
    begun: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum JsonPlace {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl Progress {
    fn add(&mut self, piece: &str) {
        use JsonPlace::{AfterBackslash, InString, Outside};
        for byte in piece.bytes() {
            self.place = match (self.place, byte) {
                (Outside, b'"') | (AfterBackslash, _) => InString,
                (InString, b'\\') => AfterBackslash,
                (InString, b'"') => Outside,
                (InString, _) => InString,
                (Outside, b'{' | b'[') => {
                    self.depth += 1;
                    self.begun = true;
                    Outside
                }
                (Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    Outside
                }
                (Outside, _) => Outside,
            };
        }
    }

    fn is_whole(&self) -> bool {
        self.begun && self.depth == 0 && self.place == JsonPlace::Outside
    }
}

#[cfg(test)]
mod tests;
