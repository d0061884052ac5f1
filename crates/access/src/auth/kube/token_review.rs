//! Whose token this is.

use std::sync::Arc;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::{Api, api::PostParams};

use super::{ReviewQueue, Reviewer, access_review::Subject};
use crate::auth::Error;

impl Reviewer {
    /// The caller of `token`, by TokenReview; `None` if it is rejected. The audience is the API server's own.
    pub(super) async fn token(
        &self,
        token: String,
        queue: &ReviewQueue,
    ) -> Result<Option<Arc<Subject>>, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token),
                audiences: None,
            },
            ..TokenReview::default()
        };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let ask = Box::pin(async move { api.create(&PostParams::default(), &review).await });
        let status = self.in_turn(queue, ask).await?.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Ok(None);
        }
        let user = status.user.unwrap_or_default();
        let name = user.username.unwrap_or_default();
        // Nobody can be granted anything under no name.
        let known = (!name.is_empty()).then(|| {
            Arc::new(Subject::new(
                name,
                user.uid.unwrap_or_default(),
                user.groups.unwrap_or_default(),
                user.extra.unwrap_or_default(),
            ))
        });
        Ok(known)
    }
}
