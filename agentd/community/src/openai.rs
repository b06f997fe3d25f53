//! Chat completions, as OpenAI and everything compatible with it speak them.
//!
//! Servers differ in small ways. What the stream says is read with tolerance for all of them; what the request holds
//! follows the provider's quirks, which are data.

mod calls;
mod markup;
mod request;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;
use foundation::{Model, ModelError, ModelLimits, ModelRequest, ModelStream};
use secrecy::{ExposeSecret, SecretString};

use crate::answer::Answer;
use crate::config::Profile;
use crate::draft::Draft;
use crate::http::Http;
pub(crate) use stream::Chunks;

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Openai {
    pub(crate) profile: Profile,
    pub(crate) http: Arc<Http>,
}

/// Where requests go.
pub(crate) fn url(base_url: &str) -> String {
    format!("{}/chat/completions", base_url.trim_end_matches('/'))
}

/// The headers of every request; local servers need no key.
pub(crate) fn headers(key: Option<&SecretString>) -> Vec<(String, SecretString)> {
    let bearer = |key: &SecretString| SecretString::from(format!("Bearer {}", key.expose_secret()));
    key.map(|key| ("authorization".into(), bearer(key))).into_iter().collect()
}

#[async_trait]
impl Model for Openai {
    fn name(&self) -> &str {
        &self.profile.name
    }

    fn limits(&self) -> ModelLimits {
        self.profile.limits
    }

    async fn stream(&self, request: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError> {
        let draft = Draft::new(&self.profile, &request);
        let response = self.http.post(request::body(&self.profile, &request)?).await?;
        let tools = request.tools.iter().map(|tool| tool.name).collect();
        let decoder = Chunks::new(response.provider.clone(), tools);
        Ok(Box::new(Answer::new(response, decoder, draft)))
    }
}
