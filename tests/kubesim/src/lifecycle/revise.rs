//! Changes of what is there: updates, patches and applies, and when they change nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Write, types};
use crate::{
    apply,
    fields::{Operation, Ownership, Writer},
    kinds::Kind,
    limits::check_texts,
    objects::{Key, KindId, Stored},
    patch::Patch,
    refusal::Refusal,
    rules::{
        Part, check_deletion, check_finalizer_names, check_finalizers, check_identity, check_types,
        desired, drop_server_fields, keep_what_is_not_written, metadata_of, restrict, tidy,
    },
    webhook,
    world::World,
};

/// How the new object came about, which decides what must be checked.
#[derive(Debug)]
enum Revision {
    Replaced,
    Patched,
    Applied(Ownership),
}

impl World {
    /// Replaces an object. It fails as on the real server: missing object, stale version, another uid,
    /// another kind or name.
    pub(crate) fn update(
        &mut self,
        id: KindId,
        key: &Key,
        object: Value,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        let kind = self.served(id)?;
        check_types(&kind, &write.version, &object)?;
        let old = self.existing(id, key)?;
        self.revise(&kind, id, &old, object, Revision::Replaced, write)
    }

    /// Patches an object; an apply creates it when there is none, which the second value tells. It fails
    /// as on the real server: missing object, stale version, conflicting owners, a patch that does not
    /// fit the object.
    pub(crate) fn patch(
        &mut self,
        id: KindId,
        key: &Key,
        patch: &Patch,
        write: &Write,
    ) -> Result<(Arc<Stored>, bool), Refusal> {
        let kind = self.served(id)?;
        let types = types(&kind, &write.version);
        let Patch::Apply { config, force } = patch else {
            let old = self.existing(id, key)?;
            let object = patch.onto(&old.value(&types))?;
            return Ok((
                self.revise(&kind, id, &old, object, Revision::Patched, write)?,
                false,
            ));
        };
        apply::check_config(config, &kind.group, &write.version, &kind.kind)?;
        let mut config = config.clone();
        restrict(&mut config, &kind, write.part);
        let writer = write.writer(&kind, Operation::Apply);
        let about = kind.about(&key.name);
        let Some(old) = self.get(id, key).cloned() else {
            if write.part == Part::Status {
                return Err(Refusal::not_found(about));
            }
            return self
                .create_applied(&kind, id, key, config, &writer, write)
                .map(|new| (new, true));
        };
        let live = old.value(&types);
        let applied = apply::apply(&live, &config, &writer, *force, write.now, about)?;
        let revision = Revision::Applied(applied.ownership);
        Ok((
            self.revise(&kind, id, &old, applied.object, revision, write)?,
            false,
        ))
    }

    fn create_applied(
        &mut self,
        kind: &Kind,
        id: KindId,
        key: &Key,
        mut config: Value,
        writer: &Writer,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        let metadata = metadata_of(&mut config)?;
        if let Some(uid) = metadata.get("uid").and_then(Value::as_str) {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(kind.about(&key.name), &why));
        }
        metadata.shift_remove("resourceVersion");
        drop_server_fields(metadata);
        metadata.insert("name".into(), key.name.as_str().into());
        let nothing = json!({"metadata": {}});
        let about = kind.about(&key.name);
        let applied = apply::apply(&nothing, &config, writer, false, write.now, about)?;
        self.admit(
            kind,
            id,
            &key.namespace,
            config,
            Some(applied.ownership),
            write,
        )
    }

    fn revise(
        &mut self,
        kind: &Kind,
        id: KindId,
        old: &Arc<Stored>,
        mut new: Value,
        revision: Revision,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        let before = old.value(&types(kind, &write.version));
        check_deletion(kind, old, &before, &new)?;
        check_identity(kind, old, &mut new, matches!(revision, Revision::Replaced))?;
        let mut new = keep_what_is_not_written(kind, &before, new, write.part);
        let metadata = metadata_of(&mut new)?;
        tidy(metadata);
        check_finalizer_names(kind, &old.key.name, metadata)?;
        if old.deleting {
            check_finalizers(kind, old, metadata)?;
        }
        if kind.generations && desired(kind, &before) != desired(kind, &new) {
            let generation = before["metadata"]["generation"]
                .as_i64()
                .unwrap_or_default()
                + 1;
            new["metadata"]["generation"] = generation.into();
        }
        let owned = Ownership::of(&before);
        let ownership = match revision {
            Revision::Applied(ownership) => ownership,
            Revision::Replaced | Revision::Patched => {
                let mut ownership = owned.clone();
                let writer = write.writer(kind, Operation::Update);
                ownership.record(&writer, &before, &new, write.now);
                ownership
            }
        };
        new["metadata"]["managedFields"] = before["metadata"]["managedFields"].clone();
        if new == before && ownership == owned {
            return Ok(Arc::clone(old));
        }
        if write.part == Part::Main {
            webhook::ask(&self.webhooks, id, &before, &new)?;
        }
        let ends = old.deleting
            && new["metadata"]["finalizers"]
                .as_array()
                .is_none_or(|finalizers| finalizers.is_empty());
        if ends && !write.dry_run {
            return Ok(self.finish(id, new, write.now));
        }
        check_texts(kind, &new)?;
        self.commit(id, new, &ownership, write.dry_run)
    }
}
