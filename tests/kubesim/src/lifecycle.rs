//! The rules of a write: what a client may set, versions and preconditions, generations, and when a
//! write changes nothing. Deletion has its own room, `deletion`.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    apply,
    clock::seconds,
    events::check_event,
    fields::{Operation, Ownership, Writer},
    kinds::{Kind, api_version},
    limits::check_texts,
    objects::{Key, KindId, Stored, Types},
    patch::Patch,
    refusal::Refusal,
    rules::{
        Part, check_deletion, check_finalizer_names, check_finalizers, check_identity, check_types,
        complete_namespace, desired, drop_server_fields, keep_what_is_not_written, metadata_of,
        name_of, place, restrict, tidy,
    },
    world::World,
};

/// The circumstances of a write.
#[derive(Debug, Clone)]
pub(crate) struct Write {
    /// Who owns the written fields from now on.
    pub(crate) manager: String,
    /// The version the client speaks.
    pub(crate) version: String,
    pub(crate) part: Part,
    pub(crate) now: Timestamp,
    /// Answer as if, but change nothing.
    pub(crate) dry_run: bool,
}

impl Write {
    fn writer(&self, kind: &Kind, operation: Operation) -> Writer {
        Writer {
            name: self.manager.clone(),
            operation,
            subresource: match self.part {
                Part::Main => String::new(),
                Part::Status => "status".into(),
            },
            api_version: api_version(&kind.group, &self.version),
        }
    }
}

/// How the new object came about, which decides what must be checked.
#[derive(Debug)]
enum Revision {
    Replaced,
    Patched,
    Applied(Ownership),
}

impl World {
    /// The kind under `id`.
    ///
    /// # Errors
    /// 404 when it was uninstalled meanwhile.
    pub(crate) fn served(&self, id: KindId) -> Result<Arc<Kind>, Refusal> {
        self.kind(id).ok_or_else(|| {
            Refusal::new(
                404,
                "NotFound",
                "the server could not find the requested resource",
            )
        })
    }

    /// The object at `key`.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(crate) fn existing(&self, id: KindId, key: &Key) -> Result<Arc<Stored>, Refusal> {
        let kind = self.served(id)?;
        self.get(id, key)
            .cloned()
            .ok_or_else(|| Refusal::not_found(kind.about(&key.name)))
    }

    /// An object as it was at `version`, or at the oldest that is remembered.
    ///
    /// # Errors
    /// 404 when there was none.
    pub(crate) fn existed(
        &self,
        id: KindId,
        key: &Key,
        version: u64,
    ) -> Result<Arc<Stored>, Refusal> {
        let kind = self.served(id)?;
        let snapshot = self.at(id, self.remembered(version));
        let found = snapshot.as_ref().and_then(|snapshot| snapshot.get(key));
        found
            .cloned()
            .ok_or_else(|| Refusal::not_found(kind.about(&key.name)))
    }

    /// Creates an object; the server fills in name, uid, time, version and generation.
    ///
    /// # Errors
    /// As the real server: a taken name, a missing namespace, a body of another kind, no name.
    pub(crate) fn create(
        &mut self,
        id: KindId,
        namespace: &str,
        mut object: Value,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        let kind = self.served(id)?;
        check_types(&kind, &write.version, &object)?;
        let metadata = metadata_of(&mut object)?;
        if metadata
            .get("resourceVersion")
            .is_some_and(|version| version != "" && !version.is_null())
        {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Refusal::new(500, "InternalError", why));
        }
        drop_server_fields(metadata);
        if kind.status
            && let Some(fields) = object.as_object_mut()
        {
            fields.shift_remove("status");
        }
        self.admit(&kind, id, namespace, object, None, write)
    }

    /// Puts an object in place as it was elsewhere: uid, times, status and `managedFields` are kept.
    ///
    /// # Errors
    /// As `create`.
    pub(crate) fn restore(
        &mut self,
        id: KindId,
        namespace: &str,
        mut object: Value,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        let kind = self.served(id)?;
        check_types(&kind, &write.version, &object)?;
        let metadata = metadata_of(&mut object)?;
        metadata.shift_remove("resourceVersion");
        let ownership = metadata
            .get("managedFields")
            .is_some()
            .then(|| Ownership::of(&object));
        self.admit(&kind, id, namespace, object, ownership, write)
    }

    fn admit(
        &mut self,
        kind: &Kind,
        id: KindId,
        namespace: &str,
        mut object: Value,
        ownership: Option<Ownership>,
        write: &Write,
    ) -> Result<Arc<Stored>, Refusal> {
        check_event(kind, namespace, &object)?;
        let metadata = metadata_of(&mut object)?;
        tidy(metadata);
        place(kind, namespace, metadata)?;
        let name = name_of(kind, metadata)?;
        check_finalizer_names(kind, &name, metadata)?;
        if kind.namespaced {
            self.open_namespace(kind, namespace, &name)?;
        }
        let key = Key::new(namespace, &name);
        if self.get(id, &key).is_some() {
            return Err(Refusal::exists(kind.about(&name)));
        }
        metadata
            .entry("uid")
            .or_insert_with(|| Uuid::new_v4().to_string().into());
        metadata
            .entry("creationTimestamp")
            .or_insert_with(|| seconds(write.now).into());
        if kind.generations {
            metadata.entry("generation").or_insert_with(|| 1.into());
        }
        if kind.is_namespaces() {
            complete_namespace(&name, &mut object);
        }
        let ownership = ownership.unwrap_or_else(|| {
            let mut ownership = Ownership::default();
            let writer = write.writer(kind, Operation::Update);
            ownership.record(&writer, &Value::Null, &object, write.now);
            ownership
        });
        check_texts(kind, &object)?;
        self.commit(id, object, &ownership, write.dry_run)
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// As the real server: missing object, stale version, another uid, another kind or name.
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

    /// Patches an object; an apply creates it when there is none, which the second value tells.
    ///
    /// # Errors
    /// As the real server: missing object, stale version, conflicting owners, a patch that does not fit.
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

    fn commit(
        &mut self,
        id: KindId,
        mut object: Value,
        ownership: &Ownership,
        dry_run: bool,
    ) -> Result<Arc<Stored>, Refusal> {
        object["metadata"]["managedFields"] = ownership.to_value();
        if dry_run {
            return Ok(Arc::new(Stored::new(&object)));
        }
        object["metadata"]["resourceVersion"] = (self.version + 1).to_string().into();
        let stored = Stored::new(&object);
        self.check_space(&stored)?;
        self.tick();
        Ok(self.put(id, stored))
    }

    fn open_namespace(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Refusal> {
        let namespaces = self
            .find("", "namespaces")
            .expect("namespaces are always served");
        let of = self.served(namespaces)?;
        match self.get(namespaces, &Key::new("", namespace)) {
            None => Err(Refusal::not_found(of.about(namespace))),
            Some(found) if found.deleting => {
                let why = format!(
                    "unable to create new content in namespace {namespace} because it is being terminated"
                );
                Err(Refusal::forbidden(kind.about(name), &why))
            }
            Some(_) => Ok(()),
        }
    }
}

/// The types under which `version` of `kind` is shown.
pub(crate) fn types(kind: &Kind, version: &str) -> Types {
    Types::new(api_version(&kind.group, version), kind.kind.clone())
}
