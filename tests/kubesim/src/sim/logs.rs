//! The containers of pods, as a test or a player lets them run: started, written for, ended.

use serde_json::{Value, json};

use super::Sim;
use crate::{logs, refusal::Refusal};

impl Sim {
    /// Starts a container of a pod, also an init container, or starts it again: the status of the pod
    /// says so, and lines may be written. It fails with 404 if there is none.
    pub fn start_container(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Result<(), Refusal> {
        let object = self.pod(namespace, pod)?;
        let now = self.now();
        let (status, _) =
            logs::started(&object, container, now).ok_or_else(|| unknown(pod, container))?;
        self.shared.logs.begin(&uid(&object), container);
        self.write_status(namespace, pod, status)
    }

    /// Ends a container of a pod with an exit code. When it was the last one, the pod is over. It fails
    /// with 404 if there is no such container.
    pub fn end_container(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        code: i32,
    ) -> Result<(), Refusal> {
        let object = self.pod(namespace, pod)?;
        let status = logs::ended(&object, container, code, self.now());
        let mut status = status.ok_or_else(|| unknown(pod, container))?;
        if let Some(phase) = logs::pod_is_over(&status, &object) {
            status["phase"] = phase.into();
        }
        self.shared.logs.end(&uid(&object), container);
        self.write_status(namespace, pod, status)
    }

    /// Appends the lines of `text` to the log of a container, as of now; a last line without its line
    /// feed is one. It fails with 404 if the container does not run.
    pub fn write_log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        text: impl AsRef<[u8]>,
    ) -> Result<(), Refusal> {
        let uid = uid(&self.pod(namespace, pod)?);
        let now = self.now();
        let logs = &self.shared.logs;
        match logs.append(&uid, container, text.as_ref(), now) {
            true => Ok(()),
            false => Err(unknown(pod, container)),
        }
    }

    /// Rotates the log of a container: only the last `kept` lines are left. It fails with 404 if there
    /// is no such pod.
    pub fn rotate_log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        kept: usize,
    ) -> Result<(), Refusal> {
        let uid = uid(&self.pod(namespace, pod)?);
        self.shared.logs.rotate(&uid, container, kept);
        Ok(())
    }

    fn pod(&self, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let found = self.get("", "pods", namespace, name);
        found.ok_or_else(|| Refusal::new(404, "NotFound", format!("pods \"{name}\" not found")))
    }

    fn write_status(&self, namespace: &str, pod: &str, status: Value) -> Result<(), Refusal> {
        let patch = json!({"status": status});
        self.merge("", "pods", namespace, pod, patch, "kubelet")?;
        Ok(())
    }
}

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn unknown(pod: &str, container: &str) -> Refusal {
    let why = format!("pod \"{pod}\" has no container \"{container}\" that runs");
    Refusal::new(404, "NotFound", why)
}
