//! Calls on config maps of compute templates.

use hindsight_proto::ray_v1::ComputeTemplate;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams, Preconditions},
    core::Status,
};

use crate::{
    api::{call, no_namespace},
    clusters::{Clusters, check_namespace},
    error::{Error, invalid, unspecified},
    names::is_subdomain,
    template::{self, COMPUTE_TEMPLATE, CONFIG_TYPE},
};

impl Clusters {
    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Creates the config map of a template in `namespace`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the template is not valid, [`Error::Missing`] if there is no such namespace,
    /// [`Error::Exists`] if a config map has the name.
    pub async fn create_template(
        &self,
        namespace: &str,
        template: Option<ComputeTemplate>,
    ) -> Result<ComputeTemplate, Error> {
        check_namespace(namespace)?;
        let template = template
            .ok_or_else(|| invalid("A ComputeTemplate object is required. Please specify one."))?;
        template::check(&template, namespace)?;
        let wanted = template::config_map(&template);
        let api = self.maps(namespace);
        let params = PostParams::default();
        let made = call(api.create(&params, &wanted), |status| match status.code {
            409 => {
                let name = &template.name;
                let why = format!(
                    "Compute template with name {name} already exists in namespace {namespace}"
                );
                Some(Error::Exists(why))
            }
            _ => no_namespace(status),
        });
        Ok(template::read(&made.await?))
    }

    /// The template `name`. A config map without the label of templates is none.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of this name.
    pub async fn template(&self, namespace: &str, name: &str) -> Result<ComputeTemplate, Error> {
        Ok(template::read(&self.map(namespace, name).await?))
    }

    async fn map(&self, namespace: &str, name: &str) -> Result<ConfigMap, Error> {
        if name.is_empty() {
            return Err(unspecified("Compute template name is empty"));
        }
        check_namespace(namespace)?;
        if !is_subdomain(name) {
            return Err(missing(name));
        }
        let api = self.maps(namespace);
        let map = call(api.get(name), |status| gone(status, name)).await?;
        match template::is_template(&map) {
            true => Ok(map),
            false => Err(missing(name)),
        }
    }

    /// The templates of one namespace, or of all.
    ///
    /// # Errors
    /// If the Kubernetes API does not list them.
    pub async fn templates(&self, namespace: Option<&str>) -> Result<Vec<ComputeTemplate>, Error> {
        let api = match namespace {
            Some(namespace) => {
                check_namespace(namespace)?;
                self.maps(namespace)
            }
            None => Api::all(self.client.clone()),
        };
        let params = ListParams::default().labels(&format!("{CONFIG_TYPE}={COMPUTE_TEMPLATE}"));
        let listed = call(api.list(&params), |_| None).await?;
        Ok(listed.items.iter().map(template::read).collect())
    }

    /// Deletes the config map of a template. Clusters that were made with it stay.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of this name.
    pub async fn delete_template(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let map = self.map(namespace, name).await?;
        let same = Preconditions {
            uid: map.metadata.uid,
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(same),
            ..DeleteParams::default()
        };
        let api = self.maps(namespace);
        call(api.delete(name, &params), |status| gone(status, name))
            .await
            .map(drop)
    }
}

fn missing(name: &str) -> Error {
    Error::Missing(format!("Compute template {name} not found"))
}

/// 409: a config map that was made since has the name.
fn gone(status: &Status, name: &str) -> Option<Error> {
    matches!(status.code, 404 | 409).then(|| missing(name))
}
