//! The events of a Messages stream, read into the growing answer.
//!
//! `message_stop` is the end marker. Blocks are told apart by their index; unknown blocks, deltas and events are left
//! out, because the API adds to them over time.

use foundation::{ModelError, StopReason};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::{Decoder, Heard};
use crate::draft::{Draft, Place};
use crate::failure::{Refusal, read_event};

/// Where a stream of events stands.
#[derive(Debug)]
pub(crate) struct Messages {
    provider: String,
    /// By the block's index.
    blocks: Vec<Block>,
    stop: StopReason,
    ended: bool,
}

/// A block of the answer. Text and reasoning become parts with their first piece, so that none is ever empty.
#[derive(Clone, Copy, Debug)]
enum Block {
    Ignored,
    EmptyText,
    EmptyThinking,
    At(Place),
}

/// Far above what an answer holds; an index beyond it is not from this API.
const MAX_BLOCKS: usize = 4096;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        #[serde(default)]
        delta: MessageDelta,
        #[serde(default)]
        usage: Option<Counts>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: Option<String>,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names on the wire")]
enum Delta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize, Default)]
struct MessageDelta {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// Counts are totals so far, not increments.
#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Messages {
    pub(crate) fn new(provider: String) -> Self {
        Self { provider, blocks: Vec::new(), stop: StopReason::End, ended: false }
    }

    fn open(&mut self, index: usize, block: ContentBlock, draft: &mut Draft) -> Heard {
        let opened = match block {
            ContentBlock::Text { .. } => Block::EmptyText,
            ContentBlock::Thinking { .. } => Block::EmptyThinking,
            ContentBlock::RedactedThinking { .. } | ContentBlock::Other => Block::Ignored,
            ContentBlock::ToolUse { ref id, ref name, ref input } => {
                let input = input.as_object().cloned().unwrap_or_else(Map::new);
                Block::At(draft.open_call(id.as_deref(), name, input))
            }
        };
        if index >= MAX_BLOCKS {
            return Heard::Nothing;
        }
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, Block::Ignored);
        }
        self.blocks[index] = opened;
        match block {
            ContentBlock::Text { text } => self.append(index, &text, draft),
            ContentBlock::Thinking { thinking, signature } => {
                let grown = self.append(index, &thinking, draft);
                if self.sign(index, &signature, draft) == Heard::More { Heard::More } else { grown }
            }
            ContentBlock::RedactedThinking { data } => {
                draft.add_redacted(data);
                Heard::More
            }
            ContentBlock::ToolUse { .. } => Heard::More,
            ContentBlock::Other => Heard::Nothing,
        }
    }

    /// The part of a block; made now if this is its first piece.
    fn place(&mut self, index: usize, draft: &mut Draft) -> Option<Place> {
        let block = self.blocks.get_mut(index)?;
        let place = match *block {
            Block::Ignored => return None,
            Block::EmptyText => draft.open_text(),
            Block::EmptyThinking => draft.open_thinking(),
            Block::At(place) => place,
        };
        *block = Block::At(place);
        Some(place)
    }

    fn append(&mut self, index: usize, piece: &str, draft: &mut Draft) -> Heard {
        if piece.is_empty() {
            return Heard::Nothing;
        }
        let Some(place) = self.place(index, draft) else { return Heard::Nothing };
        draft.append(place, piece);
        Heard::More
    }

    fn sign(&mut self, index: usize, piece: &str, draft: &mut Draft) -> Heard {
        if piece.is_empty() {
            return Heard::Nothing;
        }
        let Some(place) = self.place(index, draft) else { return Heard::Nothing };
        draft.sign(place, piece);
        Heard::More
    }

    fn extend(&mut self, index: usize, delta: Delta, draft: &mut Draft) -> Heard {
        match delta {
            Delta::TextDelta { text: piece }
            | Delta::ThinkingDelta { thinking: piece }
            | Delta::InputJsonDelta { partial_json: piece } => self.append(index, &piece, draft),
            Delta::SignatureDelta { signature } => self.sign(index, &signature, draft),
            Delta::Other => Heard::Nothing,
        }
    }
}

impl Decoder for Messages {
    fn hear(&mut self, data: &str, draft: &mut Draft) -> Result<Heard, ModelError> {
        Ok(match read_event(&self.provider, data)? {
            Event::MessageStart { message } => {
                count(message.usage, draft);
                Heard::Nothing
            }
            Event::ContentBlockStart { index, content_block } => self.open(index, content_block, draft),
            Event::ContentBlockDelta { index, delta } => self.extend(index, delta, draft),
            Event::MessageDelta { delta, usage } => {
                count(usage, draft);
                if let Some(reason) = delta.stop_reason {
                    self.stop = stop(&reason);
                }
                Heard::Nothing
            }
            Event::MessageStop => {
                self.ended = true;
                Heard::End
            }
            Event::Error { error } => {
                let refusal = Refusal { provider: &self.provider, ..Refusal::default() };
                return Err(refusal.explain(&error));
            }
            Event::Other => Heard::Nothing,
        })
    }

    fn is_whole(&self) -> bool {
        self.ended
    }

    fn stop(&self) -> StopReason {
        self.stop
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "tool_use" => StopReason::ToolUse,
        "refusal" => StopReason::Filter,
        _ => StopReason::End,
    }
}

fn count(counts: Option<Counts>, draft: &mut Draft) {
    let Some(counts) = counts else { return };
    let usage = draft.usage();
    for (total, count) in [
        (&mut usage.input_tokens, counts.input_tokens),
        (&mut usage.output_tokens, counts.output_tokens),
        (&mut usage.cache_read_tokens, counts.cache_read_input_tokens),
        (&mut usage.cache_write_tokens, counts.cache_creation_input_tokens),
    ] {
        if let Some(count) = count {
            *total = count;
        }
    }
}
