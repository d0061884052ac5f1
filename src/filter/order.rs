//! `order_by`: one field and a direction.

use crate::model::{Order, OrderField, Resource};

/// Why a text is not an order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// More than one field.
    #[error("order_by `{text}` names several fields; one is supported, such as `create_time desc`")]
    Several {
        /// The text.
        text: String,
    },
    /// Something else than a field and a direction.
    #[error("order_by `{text}` is not understood; want `<field> [asc|desc]`")]
    Malformed {
        /// The text.
        text: String,
    },
    /// No field that lists can be ordered by.
    #[error("order_by field `{field}` is unknown; want one of {}", known(*.resource))]
    UnknownField {
        /// The field.
        field: String,
        /// Of what the list is.
        resource: Resource,
    },
    /// Neither up nor down.
    #[error("order_by direction `{direction}` is unknown; want `asc` or `desc`")]
    UnknownDirection {
        /// The direction.
        direction: String,
    },
}

/// Reads an `order_by` text. Blank text is newest first; a field without a direction goes up.
///
/// # Errors
/// If it is not one field that lists of `resource` can be ordered by, and a direction.
pub fn parse_order(text: &str, resource: Resource) -> Result<Order, OrderError> {
    let text = text.trim();
    if text.contains(',') {
        return Err(OrderError::Several {
            text: text.to_owned(),
        });
    }
    let mut words = text.split_whitespace();
    let Some(field) = words.next() else {
        return Ok(Order::NEWEST_FIRST);
    };
    let direction = words.next();
    if words.next().is_some() {
        return Err(OrderError::Malformed {
            text: text.to_owned(),
        });
    }
    let field = match (field, resource) {
        ("create_time" | "created_time", _) => OrderField::CreateTime,
        ("update_time" | "updated_time", _) => OrderField::UpdateTime,
        ("summary.start_time", Resource::Results) => OrderField::SummaryStartTime,
        ("summary.end_time", Resource::Results) => OrderField::SummaryEndTime,
        _ => {
            return Err(OrderError::UnknownField {
                field: field.to_owned(),
                resource,
            });
        }
    };
    let descending = match direction {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("asc") => false,
        Some(word) if word.eq_ignore_ascii_case("desc") => true,
        Some(word) => {
            return Err(OrderError::UnknownDirection {
                direction: word.to_owned(),
            });
        }
    };
    Ok(Order { field, descending })
}

fn known(resource: Resource) -> &'static str {
    match resource {
        Resource::Results => {
            "`create_time`, `update_time`, `summary.start_time` and `summary.end_time`"
        }
        Resource::Records => "`create_time` and `update_time`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, resource: Resource) -> String {
        parse_order(text, resource).unwrap_err().to_string()
    }

    #[test]
    fn an_order_is_a_field_and_a_direction() {
        let order = |text| parse_order(text, Resource::Results).unwrap();
        assert_eq!(order("  "), Order::NEWEST_FIRST);
        assert_eq!(order("create_time desc"), Order::NEWEST_FIRST);
        assert_eq!(order(" created_time  DESC "), Order::NEWEST_FIRST);
        let up = |field| Order {
            field,
            descending: false,
        };
        assert_eq!(order("update_time"), up(OrderField::UpdateTime));
        assert_eq!(order("updated_time Asc"), up(OrderField::UpdateTime));
        assert_eq!(
            order("summary.start_time asc"),
            up(OrderField::SummaryStartTime)
        );
        assert_eq!(order("summary.end_time"), up(OrderField::SummaryEndTime));
    }

    #[test]
    fn what_is_no_order_is_named() {
        assert_eq!(
            refusal("create_time desc, update_time", Resource::Records),
            "order_by `create_time desc, update_time` names several fields; one is supported, \
             such as `create_time desc`"
        );
        assert_eq!(
            refusal("summary.start_time", Resource::Records),
            "order_by field `summary.start_time` is unknown; want one of `create_time` and \
             `update_time`"
        );
        assert_eq!(
            refusal("create_time down", Resource::Records),
            "order_by direction `down` is unknown; want `asc` or `desc`"
        );
        assert_eq!(
            refusal("create_time desc nulls", Resource::Records),
            "order_by `create_time desc nulls` is not understood; want `<field> [asc|desc]`"
        );
    }
}
