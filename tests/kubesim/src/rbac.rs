//! Authorization as RBAC decides it: the roles and bindings of the cluster, asked about one request.
//! Who asks is found out in `access`.

mod defaults;

use serde::Deserialize;

use crate::{
    kinds::RBAC,
    objects::{Key, Stored},
    refusal::{About, Refusal},
    world::World,
};

pub(crate) use defaults::defaults;

/// The group that may do everything, whatever the roles say.
pub(crate) const MASTERS: &str = "system:masters";

/// Who makes a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// A user who authenticated; a service account is a member of its groups.
    pub(crate) fn named(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        let account = name.strip_prefix("system:serviceaccount:");
        if let Some((namespace, _)) = account.and_then(|account| account.split_once(':')) {
            groups.push("system:serviceaccounts".into());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        groups.push("system:authenticated".into());
        Self {
            name: name.into(),
            groups,
        }
    }

    /// The user who may do everything.
    pub(crate) fn admin() -> Self {
        Self::named("system:admin", &[MASTERS])
    }

    /// A request without credentials.
    pub(crate) fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    fn is(&self, subject: &Subject, namespace: &str) -> bool {
        match subject.kind.as_str() {
            "User" => subject.name == self.name,
            "Group" => self.groups.contains(&subject.name),
            _ => {
                let home = subject.namespace.as_deref().unwrap_or(namespace);
                self.name == format!("system:serviceaccount:{home}:{}", subject.name)
            }
        }
    }
}

/// What a request wants, as access reviews put it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Attributes {
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty for the whole cluster.
    pub(crate) namespace: String,
    /// Empty for collections and new objects.
    pub(crate) name: String,
    /// Only of what is no resource, such as `/apis`.
    pub(crate) path: String,
}

impl Attributes {
    /// The resource as roles name it: `taskruns`, or `taskruns/status`.
    pub(crate) fn combined(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            below => format!("{}/{below}", self.resource),
        }
    }

    /// The answer to a request that is not allowed; `reason` is what the roles have to say.
    pub(crate) fn refuse(&self, user: &User, reason: &str) -> Refusal {
        let (user, verb) = (&user.name, &self.verb);
        let mut why = if self.path.is_empty() {
            let place = match self.namespace.as_str() {
                "" => "at the cluster scope".into(),
                namespace => format!("in the namespace \"{namespace}\""),
            };
            let (resource, group) = (self.combined(), &self.group);
            format!(
                "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}"
            )
        } else {
            format!("User \"{user}\" cannot {verb} path \"{}\"", self.path)
        };
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let about = About {
            group: &self.group,
            plural: &self.resource,
            kind: "",
            name: &self.name,
        };
        Refusal::forbidden(about, &why)
    }
}

/// The part of a role that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

impl Rule {
    fn allows(&self, asked: &Attributes) -> bool {
        let has =
            |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        if !has(&self.verbs, &asked.verb) {
            return false;
        }
        if !asked.path.is_empty() {
            return self.paths.iter().any(|path| match path.strip_suffix('*') {
                Some(start) => asked.path.starts_with(start),
                None => *path == asked.path,
            });
        }
        let of_any = format!("*/{}", asked.subresource);
        has(&self.api_groups, &asked.group)
            && (has(&self.resources, &asked.combined())
                || !asked.subresource.is_empty() && self.resources.contains(&of_any))
            && (self.resource_names.is_empty() || self.resource_names.contains(&asked.name))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Role {
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Binding {
    subjects: Vec<Subject>,
    role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

impl World {
    /// Whether the roles bound to `user` allow what is asked, and which does.
    ///
    /// # Errors
    /// When they do not, with what is wrong with the roles, or nothing.
    pub(crate) fn authorize(&self, user: &User, asked: &Attributes) -> Result<String, String> {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Ok(String::new());
        }
        let mut missing = Vec::new();
        let mut kinds = vec![("ClusterRoleBinding", "clusterrolebindings", "")];
        if !asked.namespace.is_empty() {
            kinds.push(("RoleBinding", "rolebindings", asked.namespace.as_str()));
        }
        for (kind, plural, namespace) in kinds {
            for stored in self.rbac(plural, namespace) {
                let binding: Binding = stored.read();
                let Some(subject) = binding.subjects.iter().find(|one| user.is(one, namespace))
                else {
                    continue;
                };
                let RoleRef { kind: of, name } = &binding.role_ref;
                let Some(role) = self.role(of, namespace, name) else {
                    let of = of.to_lowercase();
                    missing.push(format!("{of}.{RBAC} \"{name}\" not found"));
                    continue;
                };
                if role.rules.iter().any(|rule| rule.allows(asked)) {
                    let mut bound = stored.key.name.clone();
                    if !namespace.is_empty() {
                        bound = format!("{bound}/{namespace}");
                    }
                    let to = subject.describe(namespace);
                    return Ok(format!(
                        "RBAC: allowed by {kind} \"{bound}\" of {of} \"{name}\" to {to}"
                    ));
                }
            }
        }
        Err(match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        })
    }

    fn role(&self, kind: &str, namespace: &str, name: &str) -> Option<Role> {
        let (plural, namespace) = match kind {
            "Role" => ("roles", namespace),
            _ => ("clusterroles", ""),
        };
        let id = self.find(RBAC, plural)?;
        Some(self.get(id, &Key::new(namespace, name))?.read())
    }

    fn rbac(&self, plural: &str, namespace: &str) -> impl Iterator<Item = &Stored> {
        let shelf = self.find(RBAC, plural).and_then(|id| self.shelves.get(&id));
        let from = Key::new(namespace, "");
        shelf
            .into_iter()
            .flat_map(move |shelf| shelf.objects.range(from.clone()..))
            .take_while(move |(key, _)| key.namespace == namespace)
            .map(|(_, stored)| stored.as_ref())
    }
}

impl Subject {
    fn describe(&self, home: &str) -> String {
        match self.kind.as_str() {
            "ServiceAccount" => {
                let home = self.namespace.as_deref().unwrap_or(home);
                format!("ServiceAccount \"{}/{home}\"", self.name)
            }
            kind => format!("{kind} \"{}\"", self.name),
        }
    }
}
