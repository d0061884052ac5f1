//! What a watch writes: its changes, its bookmarks and its end, each on a line.

use bytes::Bytes;
use serde_json::json;

use super::{BATCH, Watch};
use crate::{history::Event, refusal::Refusal};

impl Watch {
    /// Turns changes into lines.
    pub(super) fn show(&mut self, events: &[Event]) {
        for event in events {
            let mut line = Vec::new();
            self.watching.write(event, &self.types, &mut line);
            if !line.is_empty() {
                self.told = event.version;
                self.lines.push_back(line.into());
            }
        }
    }

    /// Some of the objects that were there when the watch began, then the mark that ends them.
    pub(super) fn present(&mut self) -> Option<Bytes> {
        if self.initial.is_empty() {
            return std::mem::take(&mut self.owes_mark).then(|| self.bookmark(true));
        }
        let mut out = Vec::new();
        let some = self.initial.len().min(BATCH);
        for object in self.initial.drain(..some) {
            self.watching.line("ADDED", &object, &self.types, &mut out);
        }
        Some(out.into())
    }

    pub(super) fn bookmark(&mut self, ends_initial: bool) -> Bytes {
        self.told = self.seen;
        let mut metadata = json!({
            "resourceVersion": self.seen.to_string(),
            "creationTimestamp": null,
        });
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({
            "kind": self.types.kind,
            "apiVersion": self.types.api_version,
            "metadata": metadata,
        });
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into()
    }

    pub(super) fn too_old(&self) -> Bytes {
        let world = self.shared.world();
        let oldest = world.history.uncached(world.now);
        drop(world);
        let message = format!(
            "too old resource version: {} ({oldest}) for {}",
            self.seen, self.kind.plural
        );
        error_line(&Refusal::gone(message))
    }
}

pub(super) fn error_line(refusal: &Refusal) -> Bytes {
    format!("{}\n", json!({"type": "ERROR", "object": refusal.status()})).into()
}

/// What a server says whose etcd does not tell its progress, as those before 3.5.13 do not.
pub(super) fn no_progress() -> Refusal {
    let why = "a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled";
    Refusal::new(500, "InternalError", why)
}
