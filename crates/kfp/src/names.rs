//! Which names and tags pipelines and versions may have; the same for requests and for admission.

use crate::{error::Error, model::Tags, query::Listable};

/// Longest name of a pipeline, in characters.
pub const MAX_PIPELINE_NAME: usize = 128;
/// Longest name of a version, in characters.
pub const MAX_VERSION_NAME: usize = 127;
/// Longest namespace, in characters.
pub const MAX_NAMESPACE: usize = 63;
/// Longest display name, in characters.
pub const MAX_DISPLAY_NAME: usize = 255;
/// Most tags of a pipeline or a version.
pub const MAX_TAGS: usize = 20;
/// Longest key and longest value of a tag, in characters.
pub const MAX_TAG: usize = 63;
/// Longest name of a Kubernetes object.
pub const MAX_OBJECT_NAME: usize = 253;

/// How Kubernetes says what names of objects are.
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Checks the name and the display name of a pipeline or a version.
///
/// # Errors
/// If a name is empty or too long, or has control characters.
pub fn check_names(of: Listable, name: &str, display_name: &str) -> Result<(), Error> {
    if name.is_empty() {
        return Err(Error::invalid("name is required"));
    }
    let most = match of {
        Listable::Pipelines => MAX_PIPELINE_NAME,
        Listable::Versions => MAX_VERSION_NAME,
    };
    at_most(&format!("{}.Name", of.name()), name, most)?;
    check_display_name(of, display_name)
}

/// Checks the display name of a pipeline or a version.
///
/// # Errors
/// If it is too long, or has control characters.
pub fn check_display_name(of: Listable, display_name: &str) -> Result<(), Error> {
    let what = format!("{}.DisplayName", of.name());
    at_most(&what, display_name, MAX_DISPLAY_NAME)
}

/// Checks a text that has no other rules.
///
/// # Errors
/// If it has control characters other than those that divide lines and words.
pub fn check_text(what: &str, text: &str) -> Result<(), Error> {
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.chars().any(odd) {
        true => Err(Error::invalid(format!(
            "{what} must not have control characters other than line breaks and tabs"
        ))),
        false => Ok(()),
    }
}

/// Checks a namespace, which may be empty.
///
/// # Errors
/// If it is too long, or is none.
pub fn check_namespace(namespace: &str) -> Result<(), Error> {
    at_most("Pipeline.Namespace", namespace, MAX_NAMESPACE)?;
    match namespace.is_empty() || (is_subdomain(namespace) && !namespace.contains('.')) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "Invalid namespace \"{namespace}\": a lowercase RFC 1123 label must consist of lower case alphanumeric \
             characters or '-', and must start and end with an alphanumeric character"
        ))),
    }
}

fn at_most(what: &str, text: &str, most: usize) -> Result<(), Error> {
    if text.chars().nth(most).is_some() {
        return Err(Error::invalid(format!(
            "{what} length cannot exceed {most}"
        )));
    }
    match text.chars().any(char::is_control) {
        true => Err(Error::invalid(format!(
            "{what} must not have control characters"
        ))),
        false => Ok(()),
    }
}

/// Checks the tags of a pipeline or version: at most 20, of at most 63 characters each.
///
/// # Errors
/// If there are too many, or one of them is too long, or has a key that filters could not name.
pub fn check_tags(tags: &Tags) -> Result<(), Error> {
    if tags.len() > MAX_TAGS {
        return Err(Error::invalid(format!(
            "number of tags ({}) exceeds maximum of {MAX_TAGS} per entity",
            tags.len()
        )));
    }
    for (key, value) in tags {
        let why = if key.is_empty() {
            "tag key cannot be empty".to_owned()
        } else if key.contains('.') {
            format!("tag key \"{key}\" must not contain '.' character")
        } else if key.chars().nth(MAX_TAG).is_some() {
            format!("tag key \"{key}\" exceeds maximum length of {MAX_TAG} characters")
        } else if value.chars().nth(MAX_TAG).is_some() {
            format!(
                "tag value \"{value}\" for key \"{key}\" exceeds maximum length of {MAX_TAG} characters"
            )
        } else if key.chars().chain(value.chars()).any(char::is_control) {
            format!(
                "tag \"{}\" must not have control characters",
                key.escape_debug()
            )
        } else {
            continue;
        };
        return Err(Error::invalid(why));
    }
    Ok(())
}

/// Checks the name of a pipeline that is to be a Kubernetes object.
///
/// # Errors
/// If no object can have it.
pub fn check_pipeline_object(name: &str) -> Result<(), Error> {
    as_object("pipeline", name)
}

/// The name of the Kubernetes object of a version that is made for a request.
///
/// # Errors
/// If no object can have it.
pub fn version_object(pipeline: &str, version: &str) -> Result<String, Error> {
    as_object("pipeline version", version)?;
    if pipeline == version {
        return Ok(version.to_owned());
    }
    let name = format!("{pipeline}-{version}");
    match name.len() > MAX_OBJECT_NAME {
        true => Err(Error::invalid(format!(
            "The combined pipeline and version name \"{name}\" exceeds the Kubernetes {MAX_OBJECT_NAME}-character \
             naming limit: use a shorter pipeline or version name"
        ))),
        false => Ok(name),
    }
}

fn as_object(what: &str, name: &str) -> Result<(), Error> {
    let why = if name.len() > MAX_OBJECT_NAME {
        format!("must be no more than {MAX_OBJECT_NAME} characters")
    } else if is_subdomain(name) {
        return Ok(());
    } else {
        SUBDOMAIN.to_owned()
    };
    Err(Error::invalid(format!(
        "Invalid {what} name \"{name}\": {why}. Use 'display_name' for human-readable labels"
    )))
}

/// Whether it is a lowercase DNS subdomain, as names of objects are.
fn is_subdomain(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = |part: &str| {
        part.chars().all(allowed)
            && !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= MAX_OBJECT_NAME && text.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses<T: std::fmt::Debug>(verdict: Result<T, Error>, why: &str) {
        assert_eq!(verdict.unwrap_err().short(), Some(why));
    }

    #[test]
    fn kfp_48_names_have_at_most_so_many_characters() {
        let long = |length: usize| "é".repeat(length);
        check_names(Listable::Pipelines, &long(128), "").unwrap();
        check_names(Listable::Versions, &long(127), &long(255)).unwrap();
        let names = |of, name: &str, display: &str| check_names(of, name, display);
        refuses(names(Listable::Pipelines, "", "x"), "name is required");
        refuses(
            names(Listable::Pipelines, &long(129), ""),
            "Pipeline.Name length cannot exceed 128",
        );
        refuses(
            names(Listable::Versions, &long(128), ""),
            "PipelineVersion.Name length cannot exceed 127",
        );
        refuses(
            names(Listable::Versions, "v", &long(256)),
            "PipelineVersion.DisplayName length cannot exceed 255",
        );
        refuses(
            names(Listable::Pipelines, "a\0b", ""),
            "Pipeline.Name must not have control characters",
        );
        check_namespace("").unwrap();
        check_namespace(&"n".repeat(63)).unwrap();
        refuses(
            check_namespace(&"n".repeat(64)),
            "Pipeline.Namespace length cannot exceed 63",
        );
        check_namespace("a/b").unwrap_err();
        check_namespace("a.b").unwrap_err();
    }

    #[test]
    fn kfp_48_tags_are_few_and_short_and_their_keys_have_no_dot() {
        let tags = |pairs: &[(&str, &str)]| -> Tags {
            let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        let long = "é".repeat(63);
        check_tags(&tags(&[(&long, &long), ("a", "")])).unwrap();
        let many: Tags = (0..21).map(|n| (n.to_string(), String::new())).collect();
        refuses(
            check_tags(&many),
            "number of tags (21) exceeds maximum of 20 per entity",
        );
        refuses(check_tags(&tags(&[("", "x")])), "tag key cannot be empty");
        refuses(
            check_tags(&tags(&[("a.b", "x")])),
            "tag key \"a.b\" must not contain '.' character",
        );
        let longer = "k".repeat(64);
        refuses(
            check_tags(&tags(&[(&longer, "x")])),
            &format!("tag key \"{longer}\" exceeds maximum length of 63 characters"),
        );
        refuses(
            check_tags(&tags(&[("a", &longer)])),
            &format!(
                "tag value \"{longer}\" for key \"a\" exceeds maximum length of 63 characters"
            ),
        );
    }

    #[test]
    fn kfp_50_a_version_is_an_object_of_its_own_name_or_of_both_names() {
        check_pipeline_object("a.b-c").unwrap();
        for bad in ["A", "a_b", "-a", "a..b", "a b", ""] {
            let why = check_pipeline_object(bad).unwrap_err().to_string();
            let begin = format!("Invalid pipeline name \"{bad}\": a lowercase RFC 1123 subdomain");
            assert!(why.starts_with(&begin), "{why}");
            assert!(
                why.ends_with("Use 'display_name' for human-readable labels"),
                "{why}"
            );
        }
        assert_eq!(version_object("hello", "hello").unwrap(), "hello");
        assert_eq!(version_object("hello", "v2").unwrap(), "hello-v2");
        let why = version_object("hello", "2026-01-31 10-00-00")
            .unwrap_err()
            .to_string();
        assert!(
            why.starts_with("Invalid pipeline version name \"2026-01-31 10-00-00\": "),
            "{why}"
        );
        assert_eq!(
            version_object(&"p".repeat(126), &"v".repeat(126))
                .unwrap()
                .len(),
            253
        );
        let why = version_object(&"p".repeat(127), &"v".repeat(126))
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("exceeds the Kubernetes 253-character naming limit"),
            "{why}"
        );
    }
}
