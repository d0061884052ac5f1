//! `order_by`: fields with directions, between commas.

use super::{Order, OrderKey};
use crate::{Filter, commas, condition::Column, model::Resource};

/// Longest text that is read, in bytes.
const MAX_BYTES: usize = 4_096;
/// Most keys of an order.
pub const MAX_KEYS: usize = 8;

/// Why a text is not an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// It is too long to read.
    #[error("order_by of {bytes} bytes: at most {MAX_BYTES} are read; name fewer fields")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// More keys than a page token has room for.
    #[error("order_by names {count} fields, at most {MAX_KEYS} are possible")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// Something else than a field and a direction.
    #[error(
        "order_by column {column}: `{text}` is not understood; want `<field> [asc|desc]`, and \
         commas between several"
    )]
    Malformed {
        /// Where it begins, in characters from 1.
        column: usize,
        /// The part between two commas, without blanks around it.
        text: String,
    },
    /// No field that lists can be ordered by.
    #[error(
        "order_by column {column}: `{field}` is no field that lists are ordered by; {}",
        known(*.resource)
    )]
    UnknownField {
        /// Where it begins, in characters from 1.
        column: usize,
        /// The name as it was written, without a direction.
        field: String,
        /// Of what the list is.
        resource: Resource,
    },
    /// Neither up nor down.
    #[error("order_by column {column}: direction `{direction}` is unknown; want `asc` or `desc`")]
    UnknownDirection {
        /// Where it begins, in characters from 1.
        column: usize,
        /// The word after the field, as it was written.
        direction: String,
    },
}

/// Reads an `order_by` text. Blank text is newest first; a field without a direction goes up.
/// Fields are written as in filters.
///
/// # Errors
/// If it has too many keys, or one of them is no field that lists of `resource` can be ordered
/// by, with or without a direction.
pub fn parse_order(text: &str, resource: Resource) -> Result<Order, OrderError> {
    if text.trim().is_empty() {
        return Ok(Order::newest_first());
    }
    if text.len() > MAX_BYTES {
        return Err(OrderError::TooLong { bytes: text.len() });
    }
    let parts = commas::items(text).all;
    if parts.len() > MAX_KEYS {
        return Err(OrderError::TooMany { count: parts.len() });
    }
    let keys = parts
        .into_iter()
        .map(|(at, part)| key(text, at, part, resource));
    Ok(Order::of(keys.collect::<Result<_, _>>()?))
}

fn key(text: &str, begin: usize, part: &str, resource: Resource) -> Result<OrderKey, OrderError> {
    let begin = begin + (part.len() - part.trim_start().len());
    let place = |at: usize| text[..at].chars().count() + 1;
    let part = part.trim();
    if let Some(column) = column(part, resource) {
        return Ok(OrderKey {
            column,
            descending: false,
        });
    }
    let malformed = || OrderError::Malformed {
        column: place(begin),
        text: part.to_owned(),
    };
    let unknown = |field: &str| OrderError::UnknownField {
        column: place(begin),
        field: field.to_owned(),
        resource,
    };
    let Some((field, direction)) = part.rsplit_once(char::is_whitespace) else {
        return Err(if part.is_empty() {
            malformed()
        } else {
            unknown(part)
        });
    };
    let descending = match direction {
        word if word.eq_ignore_ascii_case("asc") => Some(false),
        word if word.eq_ignore_ascii_case("desc") => Some(true),
        _ => None,
    };
    match (column(field.trim_end(), resource), descending) {
        (Some(column), Some(descending)) => Ok(OrderKey { column, descending }),
        (Some(_), None) => Err(OrderError::UnknownDirection {
            column: place(begin + part.len() - direction.len()),
            direction: direction.to_owned(),
        }),
        (None, _) if field.contains(char::is_whitespace) => Err(malformed()),
        (None, Some(_)) => Err(unknown(field)),
        (None, None) => Err(malformed()),
    }
}

/// The column of a field as orders spell it.
fn column(field: &str, resource: Resource) -> Option<Column> {
    match field {
        // The names that lists of logs have had.
        "created_time" => Some(Column::CreateTime),
        "updated_time" => Some(Column::UpdateTime),
        "duration" => Some(Column::Duration),
        _ => Filter::column(field, resource).ok().flatten(),
    }
}

fn known(resource: Resource) -> &'static str {
    match resource {
        Resource::Results => {
            "want one of `create_time`, `update_time`, `duration`, `parent`, `uid`, \
             `summary.start_time`, `summary.end_time`, `summary.status`, `summary.type` and \
             `summary.record`, or an annotation, such as `annotations[\"key\"]`"
        }
        Resource::Records => {
            "want one of `create_time`, `update_time`, `duration`, `parent`, `uid`, `name`, \
             `result_name` and `data_type`, a label, such as `data.metadata.labels[\"key\"]`, \
             or a field that is a column, such as `data.status.startTime`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::ObjectField;

    fn refusal(text: &str, resource: Resource) -> String {
        parse_order(text, resource).unwrap_err().to_string()
    }

    #[test]
    fn an_order_is_a_field_and_a_direction() {
        let order = |text| parse_order(text, Resource::Results).unwrap();
        assert_eq!(order("  "), Order::newest_first());
        assert_eq!(order("create_time desc"), Order::newest_first());
        assert_eq!(order(" created_time  DESC "), Order::newest_first());
        let up = |column| Order::by(column, false);
        assert_eq!(order("update_time"), up(Column::UpdateTime));
        assert_eq!(order("updated_time Asc"), up(Column::UpdateTime));
        assert_eq!(
            order("summary.start_time asc"),
            up(Column::SummaryStartTime)
        );
        assert_eq!(order("summary.endTime"), up(Column::SummaryEndTime));
        assert_eq!(order("duration"), up(Column::Duration));
    }

    #[test]
    fn an_order_may_have_several_keys() {
        let order = parse_order(
            "duration desc, data.metadata.labels[\"a, desc\"],data.status.startTime\tDESC ,name",
            Resource::Records,
        );
        let key = |column, descending| OrderKey { column, descending };
        assert_eq!(
            order.unwrap().keys(),
            [
                key(Column::Duration, true),
                key(Column::Label("a, desc".to_owned()), false),
                key(Column::Object(ObjectField::StartTime), true),
                key(Column::RecordName, false),
            ]
        );
        let long = "uid,".repeat(MAX_BYTES);
        assert_eq!(
            refusal(&long, Resource::Records),
            "order_by of 16384 bytes: at most 4096 are read; name fewer fields"
        );
        let many = ["uid"; MAX_KEYS + 1].join(",");
        assert_eq!(
            refusal(&many, Resource::Records),
            "order_by names 9 fields, at most 8 are possible"
        );
    }

    #[test]
    fn what_is_no_order_is_named() {
        let known = known(Resource::Records);
        assert_eq!(
            refusal("summary.start_time", Resource::Records),
            format!(
                "order_by column 1: `summary.start_time` is no field that lists are ordered by; \
                 {known}"
            )
        );
        assert_eq!(
            refusal("uid, data.spec.x desc", Resource::Records),
            format!(
                "order_by column 6: `data.spec.x` is no field that lists are ordered by; {known}"
            )
        );
        assert_eq!(
            refusal("taskrun.metadata.name", Resource::Records),
            format!(
                "order_by column 1: `taskrun.metadata.name` is no field that lists are ordered \
                 by; {known}"
            )
        );
        assert_eq!(
            refusal("create_time down", Resource::Records),
            "order_by column 13: direction `down` is unknown; want `asc` or `desc`"
        );
        for (text, column, part) in [
            ("create_time desc nulls", 1, "create_time desc nulls"),
            ("uid,", 5, ""),
            ("uid,,uid", 5, ""),
            ("desc 'x", 1, "desc 'x"),
        ] {
            assert_eq!(
                refusal(text, Resource::Results),
                format!(
                    "order_by column {column}: `{part}` is not understood; want `<field> \
                     [asc|desc]`, and commas between several"
                )
            );
        }
    }
}
