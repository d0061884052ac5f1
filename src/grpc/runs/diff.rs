//! Messages of `hindsight.v1.Runs/DiffRuns`, to types and back.

use hindsight_analysis::diff::{Category, Difference};
use hindsight_proto::v1::{self as pb, difference::Category as Named};
use tonic::metadata::MetadataMap;

use super::super::{ResultsServer, convert};
use crate::service::{DiffAsk, Error};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{ParentPattern, RecordName, Resource};

pub(super) async fn diff_runs(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: pb::DiffRunsRequest,
) -> Result<pb::RunDiff, Error> {
    let a: RecordName = convert::name("a", &request.a)?;
    let b = match request.b.as_str() {
        "" => None,
        name => Some(convert::name::<RecordName>("b", name)?),
    };
    let categories = request.categories.iter().map(|number| category(*number));
    let categories = categories.collect::<Result<_, _>>()?;
    let parent = ParentPattern::Exact(a.result().parent().clone());
    let (by, grant) = server
        .grant(&metadata, Verb::List, Resource::Records, parent)
        .await?;
    let other = match &b {
        Some(b) if b.result().parent() != a.result().parent() => {
            let parent = ParentPattern::Exact(b.result().parent().clone());
            let (_, grant) = server
                .grant(&metadata, Verb::List, Resource::Records, parent)
                .await?;
            Some(grant)
        }
        _ => None,
    };
    let ask = DiffAsk {
        a: a.clone(),
        b,
        categories,
        limit: request.limit,
    };
    let grants = (&grant, other.as_ref().unwrap_or(&grant));
    let found = server.service.diff_runs(&by, grants, ask).await?;
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let [a_name, b_name] = found.names;
    Ok(pb::RunDiff {
        a_name,
        b_name,
        a: a.to_string(),
        b: found.b.to_string(),
        differences_left_out: count(found.diff.left_out),
        equal: count(found.diff.equal),
        differences: found.diff.differences.into_iter().map(difference).collect(),
        runs_left_out: count(found.diff.runs_left_out),
    })
}

fn category(number: i32) -> Result<Category, Error> {
    Ok(match Named::try_from(number) {
        Ok(Named::Param) => Category::Param,
        Ok(Named::Image) => Category::Image,
        Ok(Named::Reference) => Category::Reference,
        Ok(Named::Environment) => Category::Environment,
        Ok(Named::Spec) => Category::Spec,
        Ok(Named::Metadata) => Category::Metadata,
        Ok(Named::Timing) => Category::Timing,
        Ok(Named::Unspecified) | Err(_) => {
            return Err(Error::Invalid(format!(
                "categories: {number} is not a category; want PARAM, IMAGE, REFERENCE, \
                 ENVIRONMENT, SPEC, METADATA or TIMING"
            )));
        }
    })
}

pub(super) fn difference(found: Difference) -> pb::Difference {
    let category = match found.category {
        Category::Param => Named::Param,
        Category::Image => Named::Image,
        Category::Reference => Named::Reference,
        Category::Environment => Named::Environment,
        Category::Spec => Named::Spec,
        Category::Metadata => Named::Metadata,
        Category::Timing => Named::Timing,
    };
    pb::Difference {
        category: category.into(),
        task: found.task,
        path: found.path,
        before: found.before,
        after: found.after,
        ratio: found.ratio,
        cut: found.cut,
    }
}
