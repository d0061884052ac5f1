//! The two admission webhooks of PipelineVersion objects: one gives a version its labels and the owner reference of
//! its pipeline, the other refuses what requests would be refused for. Both ask the API server for the pipeline at the
//! time of the review, and neither changes anything itself.

mod owner;
#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc};

use hindsight_cluster::{ConnectError, choose_cryptography, connect, webhook::Answer};
use hindsight_run::json;
use kube::Client;
use serde_json::{Value, json};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    content,
    error::Error,
    kubernetes::{Reference, find_pipeline},
    model::Tags,
    names,
    spec::Documents,
};

/// Path of the webhook that changes versions.
pub const MUTATE: &str = "/webhooks/mutate-pipelineversion";
/// Path of the webhook that judges versions.
pub const VALIDATE: &str = "/webhooks/validate-pipelineversion";

/// What is done about names that do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameCheck {
    /// The object is refused.
    #[default]
    Enforce,
    /// The object is accepted, and whoever creates it is warned.
    Warn,
}

/// Which of the webhooks is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Webhook {
    /// The one at [`MUTATE`].
    Mutate,
    /// The one at [`VALIDATE`].
    Validate,
}

/// Answers reviews about the objects of one cluster.
#[derive(Clone)]
pub struct Admission {
    client: Client,
    names: NameCheck,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// What is answered.
#[derive(Debug, Default)]
struct Verdict {
    /// Operations of a JSON patch.
    patch: Vec<Value>,
    warnings: Vec<String>,
}

/// A review, as far as it matters.
struct Review<'a> {
    namespace: &'a str,
    object: &'a Value,
}

impl Admission {
    /// Asks the API server of a kubeconfig, or the one that this process runs in or is configured for.
    ///
    /// # Errors
    /// If no cluster is named, or not in a way that can be used.
    pub async fn connect(
        kubeconfig: Option<PathBuf>,
        names: NameCheck,
    ) -> Result<Self, ConnectError> {
        choose_cryptography();
        Ok(Self::new(connect(kubeconfig).await?, names))
    }

    /// Asks the API server that this client reaches.
    #[must_use]
    pub fn new(client: Client, names: NameCheck) -> Self {
        Self { client, names }
    }

    /// What answers at the paths of both webhooks.
    #[must_use]
    pub fn webhooks(self) -> Vec<(&'static str, Answer)> {
        let at = |path, webhook| {
            let admission = self.clone();
            let answer: Answer = Arc::new(move |body| {
                let admission = admission.clone();
                Box::pin(async move { admission.answer(webhook, &body).await })
            });
            (path, answer)
        };
        vec![at(MUTATE, Webhook::Mutate), at(VALIDATE, Webhook::Validate)]
    }

    /// The answer to a review of this text.
    ///
    /// # Errors
    /// If it is no review.
    pub async fn answer(&self, webhook: Webhook, body: &[u8]) -> Result<String, String> {
        let review = json::parse(body).map_err(|error| error.to_string())?;
        let request = &review["request"];
        let uid = request["uid"].as_str();
        let uid = uid.ok_or("it is no AdmissionReview: request.uid is missing")?;
        let verdict = match webhook {
            Webhook::Mutate => self.mutate(request).await,
            Webhook::Validate => self.validate(request).await,
        };
        let mut response = json!({"uid": uid, "allowed": verdict.is_ok()});
        match verdict {
            Err(message) => {
                response["status"] =
                    json!({"code": 400, "reason": "BadRequest", "message": message});
            }
            Ok(verdict) => {
                if !verdict.patch.is_empty() {
                    response["patchType"] = json!("JSONPatch");
                    response["patch"] =
                        json!(STANDARD.encode(Value::from(verdict.patch).to_string()));
                }
                if !verdict.warnings.is_empty() {
                    response["warnings"] = json!(verdict.warnings);
                }
            }
        }
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
        });
        Ok(answer.to_string())
    }

    async fn mutate(&self, request: &Value) -> Result<Verdict, String> {
        let Some(review) = Review::of(request) else {
            return Ok(Verdict::default());
        };
        let pipeline = self.pipeline(&review).await?;
        let spec = &review.object["spec"];
        // A spec that cannot be read is refused by the other webhook.
        let documents = Documents::of(&spec["pipelineSpec"], spec.get("platformSpec")).ok();
        let content = documents
            .and_then(|documents| content::of_version(documents.pipeline(), documents.platform()));
        Ok(Verdict {
            patch: owner::patch(&review.object["metadata"], &pipeline, content.as_deref()),
            ..Verdict::default()
        })
    }

    async fn validate(&self, request: &Value) -> Result<Verdict, String> {
        let Some(review) = Review::of(request) else {
            return Ok(Verdict::default());
        };
        let spec = &review.object["spec"];
        if request["operation"] == "UPDATE" {
            let before = &request["oldObject"]["spec"];
            if kept(before) != kept(spec) {
                return Err("Pipeline spec is immutable; only mutable fields (display_name, tags) can be updated".to_owned());
            }
            if before["tags"] != spec["tags"] {
                check_tags(&spec["tags"])?;
            }
            return Ok(Verdict::default());
        }
        let documents = Documents::of(&spec["pipelineSpec"], spec.get("platformSpec"))
            .map_err(|error| format!("The pipeline spec is invalid: {error}"))?;
        check_tags(&spec["tags"])?;
        let mut warnings = Vec::new();
        if let Err(why) = check_names(review.object, documents.name()) {
            match self.names {
                NameCheck::Enforce => return Err(why),
                NameCheck::Warn => warnings.push(why),
            }
        }
        self.pipeline(&review).await?;
        Ok(Verdict {
            warnings,
            ..Verdict::default()
        })
    }

    /// The pipeline that a version names, in its own namespace.
    async fn pipeline(&self, review: &Review<'_>) -> Result<Reference, String> {
        let Review { namespace, object } = review;
        let name = object["spec"]["pipelineName"].as_str().unwrap_or_default();
        let found = find_pipeline(&self.client, namespace, name)
            .await
            .map_err(|error| format!("Failed to get the Pipeline {namespace}/{name}: {error}"))?;
        found.ok_or_else(|| {
            "The spec.pipelineName doesn't map to an existing Pipeline object".to_owned()
        })
    }
}

impl<'a> Review<'a> {
    /// A review of a version that is created or changed. One that is being deleted passes: its pipeline may be gone,
    /// and its finalizers must go.
    fn of(request: &'a Value) -> Option<Self> {
        let is_whole = matches!(request["subResource"].as_str(), None | Some(""));
        let is_write = matches!(request["operation"].as_str(), Some("CREATE" | "UPDATE"));
        let object = &request["object"];
        let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
        let namespace = [&request["namespace"], &object["metadata"]["namespace"]];
        let namespace = namespace
            .into_iter()
            .find_map(Value::as_str)
            .unwrap_or_default();
        (is_whole && is_write && !is_deleting).then_some(Self { namespace, object })
    }
}

/// What of a spec does not change.
fn kept(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Value::Object(fields) = &mut spec {
        fields.retain(|name, _| !matches!(name.as_str(), "displayName" | "tags"));
    }
    spec
}

fn check_tags(tags: &Value) -> Result<(), String> {
    let tags = tags.as_object().into_iter().flatten();
    let tags: Tags = tags
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    names::check_tags(&tags).map_err(|error: Error| error.to_string())
}

/// Whether the names of a version fit together: without `versionName` the object is called as the pipeline in its
/// spec, and with it as the version, or as pipeline and version.
fn check_names(object: &Value, in_spec: &str) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&object["metadata"]["name"]);
    let (version, pipeline) = (
        text(&object["spec"]["versionName"]),
        text(&object["spec"]["pipelineName"]),
    );
    if version.is_empty() {
        return match name == in_spec {
            true => Ok(()),
            false => Err(format!(
                "The object name {name:?} is not spec.pipelineSpec.pipelineInfo.name, which is {in_spec:?}; rename the \
                 object, or set spec.versionName"
            )),
        };
    }
    let composite = format!("{pipeline}-{version}");
    match name == version || name == composite {
        true => Ok(()),
        false => Err(format!(
            "The object name {name:?} does not fit spec.versionName; want {version:?} or {composite:?}"
        )),
    }
}
