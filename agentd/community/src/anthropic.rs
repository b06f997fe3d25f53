//! Anthropic's Messages API.
//!
//! The transcript goes out in an order and form that stay the same from call to call, so that its prefix is served
//! from the provider's cache; reasoning goes back exactly as it came.

mod request;
mod stream;

use std::sync::Arc;

use async_trait::async_trait;
use foundation::{Model, ModelError, ModelLimits, ModelRequest, ModelStream};
use secrecy::SecretString;

use crate::answer::Answer;
use crate::config::Profile;
use crate::draft::Draft;
use crate::http::Http;
pub(crate) use stream::Messages;

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Anthropic {
    pub(crate) profile: Profile,
    pub(crate) http: Arc<Http>,
}

/// Where requests go for a base URL with or without the `/v1` that some clients want in it.
pub(crate) fn url(base_url: &str) -> String {
    format!("{}/v1/messages", base_url.trim_end_matches('/').trim_end_matches("/v1"))
}

/// The headers of every request.
pub(crate) fn headers(key: Option<SecretString>) -> Vec<(String, SecretString)> {
    let version = ("anthropic-version".into(), SecretString::from("2023-06-01"));
    key.map(|key| ("x-api-key".into(), key)).into_iter().chain([version]).collect()
}

#[async_trait]
impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.profile.name
    }

    fn limits(&self) -> ModelLimits {
        self.profile.limits
    }

    async fn stream(&self, request: ModelRequest<'_>) -> Result<Box<dyn ModelStream>, ModelError> {
        let draft = Draft::new(&self.profile, &request);
        let response = self.http.post(request::body(&self.profile, &request)?).await?;
        let decoder = Messages::new(response.provider.clone());
        Ok(Box::new(Answer::new(response, decoder, draft)))
    }
}
