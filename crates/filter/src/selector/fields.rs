//! Field selectors: `metadata.name=build,status.phase!=Failed`.

use super::{add, binary, call, literal, lowered, name, not, select, text};
use crate::{
    cost::CostBudget,
    error::{FilterError, Problem},
    expr::Expr,
    fields as catalogue,
    limits::MAX_DEPTH,
    lower,
    model::Resource,
    split::column,
    syntax::{Kind, Literal, Node, Operator},
};

/// What a field selector means. The fields of records are those of the payload, written as in
/// Kubernetes, and variables; of results, variables.
pub(crate) fn fields(
    text: &str,
    resource: Resource,
    budget: &mut CostBudget,
) -> Result<Expr, FilterError> {
    lowered("field selector", text, resource, budget, |budget| {
        let mut nodes = Vec::new();
        for (at, part) in parts(text) {
            // A field is looked up and compared, or compared where it is there.
            budget.read(3 * part.matches(['.', '[']).count() + 1, at)?;
            add(&mut nodes, requirement(at, part, resource, budget)?, at)?;
        }
        Ok(nodes)
    })
}

/// The parts between commas that no backslash precedes, and where they begin.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut begin, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push((begin, &text[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push((begin, &text[begin..]));
    parts
}

fn requirement(
    begin: usize,
    part: &str,
    resource: Resource,
    budget: &mut CostBudget,
) -> Result<Node, Problem> {
    let at = begin + (part.len() - part.trim_start().len());
    let part = part.trim();
    let sign = part.find(['=', '!']).and_then(|sign| {
        let signs = ["==", "!=", "="];
        let found = signs.into_iter().find(|s| part[sign..].starts_with(s))?;
        Some((sign, found))
    });
    let Some((sign, operator)) = sign else {
        let what =
            format!("`{part}` is no requirement; want `<field>=<value>` or `<field>!=<value>`");
        return Err(Problem::new(at, what));
    };
    let path = path(at, part[..sign].trim_end(), resource, budget)?;
    let value_at = at + sign + operator.len();
    let value = unescaped(value_at, &part[sign + operator.len()..])?;
    Ok(compared(path, value_at, &value, operator != "!="))
}

/// A field, and how it is compared.
struct Path {
    node: Node,
    /// Rows may lack it.
    optional: bool,
    /// It may be something else than text, which is then compared by how it is written.
    mixed: bool,
}

fn compared(path: Path, at: usize, value: &str, equal: bool) -> Node {
    let field = match path.mixed {
        true => call("string", path.node.clone()),
        false => path.node.clone(),
    };
    let there = || call("has", path.node.clone());
    match (path.optional, equal) {
        (false, true) => binary(Operator::Equal, field, text(at, value)),
        (false, false) => binary(Operator::NotEqual, field, text(at, value)),
        // What is not there is the empty text.
        (true, true) if value.is_empty() => {
            let same = binary(Operator::Equal, field, text(at, value));
            binary(Operator::Or, not(there()), same)
        }
        (true, false) if value.is_empty() => binary(Operator::NotEqual, field, text(at, value)),
        (true, true) => binary(Operator::Equal, field, text(at, value)),
        (true, false) => {
            let unequal = binary(Operator::NotEqual, field, text(at, value));
            binary(Operator::Or, not(there()), unequal)
        }
    }
}

/// A path of names, with indexes in brackets.
fn path(
    at: usize,
    written: &str,
    resource: Resource,
    budget: &mut CostBudget,
) -> Result<Path, Problem> {
    if written.matches(['.', '[']).count() > MAX_DEPTH {
        let what = format!("the field is nested more than {MAX_DEPTH} deep");
        return Err(Problem::new(at, what));
    }
    let malformed = |at| {
        let what =
            format!("`{written}` is no field; want for example `metadata.name` or `status.phase`");
        Problem::new(at, what)
    };
    let mut segments = written.split('.').map(|segment| {
        let (word, index) = match segment.strip_suffix(']').map(|s| s.split_once('[')) {
            Some(Some((word, index))) => (word, Some(index.parse::<u32>().ok()?)),
            Some(None) => return None,
            None => (segment, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
        let starts = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (starts && word.chars().all(plain)).then_some((word, index))
    });
    let first = segments.next().flatten().ok_or_else(|| malformed(at))?;
    let variable = catalogue::is_variable(resource, first.0);
    let mut node = match (variable, resource, written) {
        (true, ..) => name(at, first.0),
        (false, Resource::Results, "metadata.namespace") => {
            return Ok(Path {
                node: name(at, "parent"),
                optional: false,
                mixed: false,
            });
        }
        (false, Resource::Results, _) => {
            let what = format!(
                "`{written}` is not a field of results; want `parent`, `uid` or one of `summary`, \
                 such as `summary.status`"
            );
            return Err(Problem::new(at, what));
        }
        (false, Resource::Records, _) => select(name(at, "data"), first.0),
    };
    node = indexed(node, first.1);
    let mut optional = !variable;
    for segment in segments {
        let (word, index) = segment.ok_or_else(|| malformed(at))?;
        node = indexed(select(node, word), index);
        optional = true;
    }
    // `has` wants a field.
    optional &= !matches!(node.kind, Kind::Index(..)) || written.contains('.');
    let expr = lower::expression(&node, resource, budget)?;
    let mixed = expr.ty.is_dyn() && column::of(&expr).is_none();
    Ok(Path {
        node,
        optional,
        mixed,
    })
}

fn indexed(of: Node, index: Option<u32>) -> Node {
    match index {
        None => of,
        Some(index) => {
            let at = of.at;
            let index = literal(at, Literal::Int(index.into()));
            Node {
                at,
                kind: Kind::Index(Box::new(of), Box::new(index)),
            }
        }
    }
}

/// The value without the backslashes before `,`, `=` and `\`.
fn unescaped(at: usize, written: &str) -> Result<String, Problem> {
    let mut value = String::with_capacity(written.len());
    let mut chars = written.char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, c @ (',' | '=' | '\\'))) => value.push(c),
                _ => {
                    let what = "a `\\` stands before `,`, `=` or `\\` only; write it twice";
                    return Err(Problem::new(at + offset, what));
                }
            },
            '=' => {
                let what = "a `=` in a value is written `\\=`";
                return Err(Problem::new(at + offset, what));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests;
