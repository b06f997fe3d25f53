//! The side road: model providers, each removable, depending on foundation alone.
//!
//! One registry leads from `provider/model` to a [`foundation::Model`]. Nobody above asks which provider answers, and
//! nothing here knows the loop, the tools or the sessions. Keys and addresses are passed in; the one file read here
//! is the scenario of an offline model. Nothing is tried twice: that is for the caller to decide.

mod answer;
mod anthropic;
mod call_ids;
mod config;
mod draft;
mod failure;
mod http;
mod offline;
mod openai;
mod registry;
mod replay;
mod sse;

#[cfg(test)]
mod conformance;

pub use config::{Api, ModelConfig, Price, ProviderConfig, Quirks, Timeouts};
pub use registry::{Preset, ProviderError, ProviderErrorKind, Providers, presets};
