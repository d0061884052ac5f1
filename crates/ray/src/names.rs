//! Which texts Kubernetes takes as names, labels and quantities, and the label of managed objects.

/// The label of objects that were made by such a service, and its value.
pub(crate) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub(crate) const MANAGER: &str = "kuberay-apiserver";

/// Longest name of a cluster; the operator adds to it.
const LONGEST_NAME: usize = 53;
/// Longest label value, and longest name of a label without its prefix.
const LONGEST_LABEL: usize = 63;
/// Longest name of a namespace or an object.
const LONGEST_SUBDOMAIN: usize = 253;

fn is_alphanumeric(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_ascii_alphanumeric())
}

/// Whether it is a DNS label, and a lowercase letter begins it.
pub(crate) fn is_cluster_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && is_subdomain(text)
        && !text.contains('.')
}

pub(crate) fn is_namespace(text: &str) -> bool {
    text.len() <= LONGEST_LABEL && is_subdomain(text) && !text.contains('.')
}

/// Whether it is a lowercase DNS subdomain, as names of objects are.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = |part: &str| {
        part.chars().all(allowed)
            && !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= LONGEST_SUBDOMAIN && text.split('.').all(label)
}

/// Whether it is the value of a label, which may be empty.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= LONGEST_LABEL
        && text.chars().all(allowed)
        && is_alphanumeric(text.chars().next())
        && is_alphanumeric(text.chars().last())
}

/// Whether it is the key of a label or of an annotation: a name, maybe after a DNS subdomain and `/`.
pub(crate) fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// Whether it is a quantity that is not negative, such as `500m`, `1.5` or `2Gi`.
pub(crate) fn is_quantity(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let digits = number.chars().any(|c| c.is_ascii_digit()) && number.matches('.').count() <= 1;
    const UNITS: [&str; 16] = [
        "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    ];
    let exponent = || {
        let power = unit.strip_prefix(['e', 'E'])?;
        let power = power.strip_prefix(['+', '-']).unwrap_or(power);
        (!power.is_empty() && power.chars().all(|c| c.is_ascii_digit())).then_some(())
    };
    digits && (UNITS.contains(&unit) || exponent().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_labels_and_quantities_are_those_of_kubernetes() {
        for good in ["a", "ray-2", &"a".repeat(53)] {
            assert!(is_cluster_name(good), "{good}");
        }
        for bad in ["", "2a", "a-", "A", "a.b", "a_b", "é", &"a".repeat(54)] {
            assert!(!is_cluster_name(bad), "{bad}");
        }
        assert!(is_namespace("2a") && !is_namespace("-") && !is_namespace("a/b"));
        for good in ["", "a", "2.9.0", "Zoe_K", &"a".repeat(63)] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["a@b.c", "a b", "-a", "a.", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
        assert!(
            is_key("a") && is_key("x.io/a") && !is_key("/a") && !is_key("x/a/b") && !is_key("")
        );
        for good in ["1", "1.5", ".5", "500m", "2Gi", "1e3", "1E"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", ".", "Gi", "-1", "1.2.3", "1 Gi", "1GiB", "1e"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }
}
