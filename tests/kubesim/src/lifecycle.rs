//! The rules of a write: what a client may set, versions and preconditions, generations, and when a
//! write changes nothing. Deletion has its own room, `deletion`.

mod revise;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use crate::{
    clock::seconds,
    events::check_event,
    fields::{Operation, Ownership, Writer},
    jobs::check_job,
    kinds::{Kind, api_version},
    limits::check_texts,
    objects::{Key, KindId, Stored, Types},
    refusal::Refusal,
    rules::{
        Part, check_finalizer_names, check_types, complete_namespace, drop_server_fields,
        metadata_of, name_of, place, tidy,
    },
    webhook,
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
        check_job(&kind, &object)?;
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
        webhook::ask(&self.webhooks, id, &Value::Null, &object)?;
        self.commit(id, object, &ownership, write.dry_run)
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
