//! Names that are not ours: variables of others, and what was probably meant.

use crate::Program;

pub(super) fn is_foreign(program: &Program, variable: &str, text: &str) -> bool {
    let foreign =
        |known: &&str| variable == *known || known.ends_with('_') && variable.starts_with(known);
    is_service_link(variable, text) || program.foreign.iter().any(foreign)
}

/// Whether Kubernetes may have set this variable, because a Service of the pod's namespace
/// is called like the program: `_SERVICE_HOST`, `_SERVICE_PORT[_name]`,
/// `_PORT=tcp://...` and `_PORT_8080_TCP[_ADDR|_PORT|_PROTO]`.
fn is_service_link(variable: &str, text: &str) -> bool {
    if variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_SERVICE_PORT")
        || variable.contains("_SERVICE_PORT_")
        || variable.ends_with("_PORT") && text.contains("://")
    {
        return true;
    }
    let Some((_, port)) = variable.split_once("_PORT_") else {
        return false;
    };
    let mut parts = port.split('_');
    let number = parts.next().is_some_and(|part| part.parse::<u16>().is_ok());
    number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
}

/// `; did you mean ...` with the name closest to `name`, if one is close; else all names. What all
/// of them begin with does not count.
pub(super) fn suggestion(name: &str, start: &str, known: &[String]) -> String {
    let folded = |name: &str| {
        let name = name.strip_prefix(start).unwrap_or(name);
        name.to_ascii_lowercase().replace('-', "_")
    };
    let wanted = folded(name);
    let nearest = known
        .iter()
        .map(|known| (strsim::levenshtein(&wanted, &folded(known)), known))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, known)) if distance <= 1.max(wanted.len() / 3) => {
            format!("; did you mean `{known}`?")
        }
        _ => format!("; there are {}", known.join(", ")),
    }
}
