//! Clusters of Ray in the history: records of RayCluster objects, for callers who may see such clusters.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use hindsight_filter::condition::{Column, ObjectField};
use hindsight_filter::model::{Parent, ParentPattern, Record, RecordName, Resource, ResultPattern};
use hindsight_filter::order::OrderKey;
use hindsight_filter::{CostBudget, Filter, Order};
use hindsight_proto::ray_v1::Cluster;
use hindsight_ray::history::{self, Stored};
use hindsight_run::json;
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::{Error, Selector, Service, selection::understood};
use crate::query::{List, Page};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};

/// Clusters of a page unless asked otherwise, and at most.
const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;
/// Longest `sort_by`, in bytes.
const MAX_SORT_BYTES: usize = 1_000;

/// Which clusters of the history are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClustersAsk {
    /// Also those that were deleted.
    pub deleted: bool,
    /// A filter of records that they must match, too.
    pub filter: String,
    /// Fields of clusters with directions, between commas.
    pub sort_by: String,
    /// Most clusters of the page; 0 for the usual number.
    pub size: i32,
    /// Token of the page before; empty for the first.
    pub token: String,
}

impl Service {
    /// One page of the clusters of the history, of the namespaces that `grant` is for. They are records of the Kubernetes
    /// cluster with the id `of`, or of one without an id.
    ///
    /// # Errors
    /// If a text of the request is wrong.
    pub async fn list_clusters(
        &self,
        by: &RequestContext,
        grant: &Grant,
        of: Option<&str>,
        ask: ClustersAsk,
    ) -> Result<Page<Cluster>, Error> {
        let parent = grant.scope(Verb::List, Guarded::Clusters)?.clone();
        let mut known = managed();
        if !ask.deleted {
            known.push_str(" && !has(run.end_time)");
        }
        if parent == ParentPattern::Any {
            known.push_str(&match of {
                Some(id) => format!(" && run.cluster == '{id}'"),
                None => " && !has(run.cluster)".to_owned(),
            });
        }
        let parent = match parent {
            ParentPattern::Exact(namespace) => ParentPattern::Exact(stored_in(&namespace, of)?),
            ParentPattern::Any => ParentPattern::Any,
        };
        let list = List {
            order: order(&ask.sort_by)?,
            size: size(ask.size)?,
            token: ask.token,
            method: "ListClusters",
            ..self.clusters_in(by, parent, known, ask.filter).await?
        };
        let page = self.engine.with_quota(&by.quota).records(list).await?;
        Ok(Page {
            items: self.clusters_of(by, page.items).await?,
            next: page.next,
            advice: page.advice,
        })
    }

    /// The cluster called `name` that was deleted last, in the namespace that `grant` is for; `of` as in lists.
    ///
    /// # Errors
    /// If none of this name was deleted.
    pub async fn deleted_cluster(
        &self,
        by: &RequestContext,
        grant: &Grant,
        of: Option<&str>,
        name: &str,
    ) -> Result<Cluster, Error> {
        let ParentPattern::Exact(namespace) = grant.scope(Verb::Get, Guarded::Clusters)? else {
            return Err(grant.denied().into());
        };
        let missing = || hindsight_ray::Error::Missing(format!("Cluster {name} not found"));
        if !hindsight_ray::is_name(name) {
            return Err(missing().into());
        }
        let known = format!(
            "{} && data.metadata.name == '{name}' && has(run.end_time)",
            managed()
        );
        let scope = ParentPattern::Exact(stored_in(namespace, of)?);
        let list = List {
            order: Order::by(Column::Ended, true),
            size: NonZeroU32::MIN,
            method: "GetCluster",
            ..self.clusters_in(by, scope, known, String::new()).await?
        };
        let page = self.engine.with_quota(&by.quota).records(list).await?;
        let mut found = self.clusters_of(by, page.items).await?;
        Ok(found.pop().ok_or_else(missing)?)
    }

    /// A list of the records that match `known`, which is of this server's making, and `filter`.
    async fn clusters_in(
        &self,
        by: &RequestContext,
        parent: ParentPattern,
        known: String,
        filter: String,
    ) -> Result<List, Error> {
        let selector = Selector {
            filter,
            ..Selector::default()
        };
        let (reading, bytes) = (self.reading(&selector)?, selector.len());
        let read = move |budget: &mut CostBudget| {
            let asked = selector.parse(&reading, Resource::Records, budget)?;
            let known = Filter::compile(&known, Resource::Records)?;
            Ok(Arc::new(Filter::all([known, (*asked).clone()])))
        };
        Ok(List {
            scope: ResultPattern { parent, id: None },
            filter: understood(&by.quota, read, bytes).await?,
            order: Order::newest_first(),
            size: NonZeroU32::MIN,
            token: String::new(),
            payloads: true,
            method: "",
        })
    }

    /// The clusters of records, with their events.
    async fn clusters_of(
        &self,
        by: &RequestContext,
        records: Vec<Record>,
    ) -> Result<Vec<Cluster>, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let names = records.iter().filter_map(|record| events_of(&record.name));
        let events = engine.named(names.collect());
        let read = move || {
            let of = |record: &Record| {
                // A payload that is left out, because no message holds it, is none.
                let object = json::parse(payload(record)?).ok();
                let object = object.filter(Value::is_object)?;
                Some((events_of(&record.name), Stored::read(&object)))
            };
            records.iter().filter_map(of).collect::<Vec<_>>()
        };
        // The database reads events meanwhile. A page is small, so that it does not wait for threads of low priority.
        let (events, clusters) = tokio::join!(events, spawn_blocking(read));
        let (events, clusters) = (events?, clusters.expect(READS));
        let read = move || {
            let events: HashMap<RecordName, Record> = events
                .into_iter()
                .map(|record| (record.name.clone(), record))
                .collect();
            let whole = |(name, cluster): (Option<RecordName>, Stored)| {
                let list = name.and_then(|name| payload(events.get(&name)?));
                cluster.with_events(list.unwrap_or_default())
            };
            clusters.into_iter().map(whole).collect()
        };
        Ok(spawn_blocking(read).await.expect(READS))
    }
}

const READS: &str = "reading a stored cluster does not panic";

/// The record of the events of the cluster in the record of this name.
fn events_of(cluster: &RecordName) -> Option<RecordName> {
    let events = format!("{}-events", cluster.id());
    cluster.result().record(&events).ok()
}

/// The parent of the records of a namespace.
fn stored_in(namespace: &Parent, of: Option<&str>) -> Result<Parent, Error> {
    let parent = match of {
        Some(id) => format!("cluster/{id}/namespace/{namespace}").parse(),
        None => return Ok(namespace.clone()),
    };
    parent.map_err(|error| Error::Invalid(format!("namespace: {error}")))
}

fn payload(record: &Record) -> Option<&[u8]> {
    Some(&record.data.as_ref()?.value)
}

/// Which records are clusters that the service shows, in CEL. Not by their types, whose index knows no order where there
/// are several.
fn managed() -> String {
    let (label, value) = history::managed_label();
    format!(
        "data.kind == '{}' && data.metadata.labels['{label}'] == '{value}'",
        history::KIND
    )
}

fn size(asked: i32) -> Result<NonZeroU32, Error> {
    let size = match u32::try_from(asked) {
        Ok(0) => Some(DEFAULT_PAGE),
        Ok(size) if size <= MAX_PAGE => Some(size),
        _ => None,
    };
    size.and_then(NonZeroU32::new).ok_or_else(|| {
        Error::Invalid(format!(
            "page_size {asked} is out of range: want 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}"
        ))
    })
}

/// The order that `sort_by` names; what was stored last is first unless asked otherwise.
fn order(sort_by: &str) -> Result<Order, Error> {
    if sort_by.len() > MAX_SORT_BYTES {
        return Err(Error::Invalid(format!(
            "sort_by has {} bytes, at most {MAX_SORT_BYTES} are read",
            sort_by.len()
        )));
    }
    let mut keys: Vec<OrderKey> = Vec::new();
    let parts = sort_by.split(',').map(str::trim);
    for part in parts.filter(|_| !sort_by.trim().is_empty()) {
        let key = key(part).ok_or_else(|| {
            Error::Invalid(format!(
                "sort_by: `{part}` is not understood; want `namespace`, `name`, `user`, `created_at` or `deleted_at`, \
                 with `asc` or `desc`, and commas between several"
            ))
        })?;
        // A field that comes again orders nothing.
        if keys.iter().all(|known| known.column != key.column) {
            keys.push(key);
        }
    }
    Ok(Order::of(keys))
}

fn key(part: &str) -> Option<OrderKey> {
    let mut words = part.split_whitespace();
    let column = match words.next()? {
        "namespace" => Column::Object(ObjectField::Namespace),
        "name" => Column::Object(ObjectField::Name),
        "user" => Column::Label(history::USER.to_owned()),
        "created_at" | "createdAt" => Column::Object(ObjectField::CreationTime),
        "deleted_at" | "deletedAt" => Column::Ended,
        _ => return None,
    };
    let descending = match words.next() {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("asc") => false,
        Some(word) if word.eq_ignore_ascii_case("desc") => true,
        Some(_) => return None,
    };
    words
        .next()
        .is_none()
        .then_some(OrderKey { column, descending })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hindsight_filter::condition::Ability;

    #[test]
    fn clusters_of_the_history_are_told_by_columns() {
        for more in [
            "",
            " && !has(run.end_time) && !has(run.cluster)",
            " && run.cluster == 'east'",
        ] {
            let filter =
                Filter::compile(&format!("{}{more}", managed()), Resource::Records).unwrap();
            assert!(!filter.split(&|_| Ability::Exact).residual, "{more}");
        }
    }

    #[test]
    fn sort_by_names_fields_of_clusters() {
        let shown = |text: &str| order(text).map(|order| order.to_string());
        assert_eq!(shown(" ").unwrap(), Order::newest_first().to_string());
        let told = shown("deleted_at DESC,user, createdAt,user desc").unwrap();
        assert_eq!(told.matches(',').count(), 2, "{told}");
        for bad in [
            "cluster_state",
            "name up",
            "name asc asc",
            ",",
            "name,",
            &"name,".repeat(999),
        ] {
            assert!(shown(bad).is_err(), "{bad}");
        }
    }
}
