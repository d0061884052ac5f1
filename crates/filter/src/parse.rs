//! From text to [`syntax`](super::syntax). The only file that knows the `cel` crate: what it
//! parses is turned into our own tree at once, and its messages into ours.
//!
//! Nothing here knows what a name means.

mod scan;

use cel::{
    Env, ParseErrors,
    common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators},
};

use super::{
    cost::CostBudget,
    error::{FilterError, Place},
    limits::{MAX_CHARS, MAX_DEPTH, MAX_NODES},
    syntax::{Kind, Literal, Node, Operator},
};

/// Parses `text`, which is not blank, at the expense of `budget`. Macros stay calls.
pub(super) fn parse(text: &str, budget: &mut CostBudget) -> Result<Node, FilterError> {
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(FilterError::TooLong { chars });
    }
    let tokens = scan::check(text)?;
    // To the parser a character that is not ASCII is as dear as a token.
    let tokens = tokens + (text.len() - chars);
    budget
        .read(tokens, 0)
        .map_err(|problem| problem.in_meaning(text))?;
    let parser = Env::default().parser();
    let parser = parser
        .enable_ident_escape_syntax(true)
        .enable_optional_syntax(false);
    match parser.parse_with_source_info(text) {
        Ok((tree, source)) => Conversion {
            text,
            source,
            nodes: 0,
            depth: 0,
        }
        .node(tree),
        Err(errors) => Err(refusal(text, errors)),
    }
}

/// The first thing that the parser found wrong, in our words.
fn refusal(text: &str, errors: ParseErrors) -> FilterError {
    let end = Place::of(text, text.len());
    let Some(error) = errors.errors.into_iter().next() else {
        return FilterError::Syntax {
            place: end,
            what: "it cannot be read".to_owned(),
        };
    };
    if error.msg.contains("Recursion limit") {
        return FilterError::TooDeep {
            place: place(error.pos).unwrap_or(end),
        };
    }
    let place = place(error.pos).unwrap_or(end);
    FilterError::Syntax {
        place,
        what: explain(&error.msg),
    }
}

fn place((line, column): (isize, isize)) -> Option<Place> {
    let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
    (line > 0).then_some(Place { line, column })
}

fn explain(message: &str) -> String {
    let quoted = |from: &str| {
        let rest = message.split_once(from)?.1;
        let rest = rest.strip_prefix('\'')?;
        let end = rest.find("' expecting").or_else(|| rest.rfind('\''))?;
        Some(rest[..end].trim().to_owned())
    };
    if message.starts_with("unsupported syntax") {
        return "`?` before a field or element is not supported; what is missing is unknown and \
                does not match, and `has(...)` asks for it"
            .to_owned();
    }
    if let Some(word) = message.strip_prefix("reserved identifier: ") {
        return format!("`{word}` is a reserved word and cannot be a name here");
    }
    if let Some(kind) = message
        .strip_prefix("invalid ")
        .and_then(|m| m.split(" literal").next())
    {
        return match kind {
            "int" => "the number does not fit 64 bits with a sign; write it with `.0`".to_owned(),
            "uint" => "the number does not fit 64 bits".to_owned(),
            "double" => "the number is too large for a double".to_owned(),
            _ => "the text has an escape that is no character".to_owned(),
        };
    }
    if message.contains("at '<EOF>'") {
        return "it ends inside brackets; close them".to_owned();
    }
    if let Some(found) = quoted("token recognition error at: ") {
        return match found.as_str() {
            "=" => "`=` is not an operator; use `==`".to_owned(),
            "&" | "|" => format!("`{found}` is not an operator; use `{found}{found}`"),
            found => format!("`{found}` means nothing here"),
        };
    }
    let found = quoted(" input ").unwrap_or_default();
    match found.as_str() {
        "" | "<EOF>" => "it ends where a value is wanted".to_owned(),
        word if word.eq_ignore_ascii_case("and") => "`and` is written `&&`".to_owned(),
        word if word.eq_ignore_ascii_case("or") => "`or` is written `||`".to_owned(),
        word if word.eq_ignore_ascii_case("not") => "`not` is written `!`".to_owned(),
        found => format!(
            "`{found}` is not expected here; join tests with `&&` or `||`, and put text in quotes"
        ),
    }
}

struct Conversion<'t> {
    text: &'t str,
    source: SourceInfo,
    nodes: usize,
    depth: usize,
}

impl Conversion<'_> {
    fn node(&mut self, tree: IdedExpr) -> Result<Node, FilterError> {
        let offset = self
            .source
            .offset_for(tree.id)
            .map_or(0, |(start, _)| start as usize);
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(FilterError::TooManyParts);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FilterError::TooDeep {
                place: Place::of(self.text, offset),
            });
        }
        let node = self.converted(offset, tree.expr);
        self.depth -= 1;
        node
    }

    fn nodes(&mut self, trees: Vec<IdedExpr>) -> Result<Vec<Node>, FilterError> {
        trees.into_iter().map(|tree| self.node(tree)).collect()
    }

    fn converted(&mut self, at: usize, tree: Expr) -> Result<Node, FilterError> {
        let (at, kind) = match tree {
            Expr::Literal(literal) => (at, Kind::Literal(value(literal))),
            Expr::Ident(name) => (at, Kind::Name(name.trim_start_matches('.').to_owned())),
            Expr::Select(select) => {
                let of = Box::new(self.node(*select.operand)?);
                (at + 1, Kind::Select(of, select.field))
            }
            Expr::Call(call) => {
                let of = call
                    .target
                    .map(|of| self.node(*of))
                    .transpose()?
                    .map(Box::new);
                let args = self.nodes(call.args)?;
                return Ok(self.call(at, of, call.func_name, args));
            }
            Expr::List(list) => (at, Kind::List(self.nodes(list.elements)?)),
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in map.entries {
                    if let EntryExpr::MapEntry(entry) = entry.expr {
                        entries.push((self.node(entry.key)?, self.node(entry.value)?));
                    }
                }
                (at, Kind::Map(entries))
            }
            Expr::Struct(message) => {
                let what = format!(
                    "`{}{{...}}` builds a message, which filters cannot do; compare its fields",
                    message.type_name
                );
                return Err(self.syntax(at, what));
            }
            Expr::Unspecified | Expr::Comprehension(_) => {
                return Err(self.syntax(at, "it cannot be read".to_owned()));
            }
        };
        Ok(Node { at, kind })
    }

    fn call(&self, at: usize, of: Option<Box<Node>>, name: String, args: Vec<Node>) -> Node {
        match (of, <[Node; 1]>::try_from(args)) {
            (None, Ok([arg])) if name == operators::LOGICAL_NOT => Node {
                at,
                kind: Kind::Not(Box::new(arg)),
            },
            (None, Ok([arg])) if name == operators::NEGATE => Node {
                at,
                kind: Kind::Negate(Box::new(arg)),
            },
            (of, args) => {
                let args = args.map_or_else(|args| args, Vec::from);
                self.operation(at, of, name, args)
            }
        }
    }

    fn operation(&self, at: usize, of: Option<Box<Node>>, name: String, args: Vec<Node>) -> Node {
        let args = match <[Node; 2]>::try_from(args) {
            Ok([left, right]) if name == operators::INDEX => {
                return Node {
                    at: at + 1,
                    kind: Kind::Index(Box::new(left), Box::new(right)),
                };
            }
            Ok(pair) => match operator(&name) {
                Some(operator) => {
                    return Node {
                        at,
                        kind: Kind::Binary(operator, Box::new(pair)),
                    };
                }
                None => Vec::from(pair),
            },
            Err(args) => match <[Node; 3]>::try_from(args) {
                Ok(three) if name == operators::CONDITIONAL => {
                    return Node {
                        at,
                        kind: Kind::If(Box::new(three)),
                    };
                }
                Ok(three) => Vec::from(three),
                Err(args) => args,
            },
        };
        let name = name.trim_start_matches('.').to_owned();
        // The parser knows the place of the bracket; people look for the name before it.
        let before = self.text.get(..at).unwrap_or_default().trim_end();
        let at = if before.ends_with(&name) {
            before.len() - name.len()
        } else {
            at
        };
        Node {
            at,
            kind: Kind::Call { of, name, args },
        }
    }

    fn syntax(&self, at: usize, what: String) -> FilterError {
        FilterError::Syntax {
            place: Place::of(self.text, at),
            what,
        }
    }
}

fn operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::LOGICAL_AND => Operator::And,
        operators::LOGICAL_OR => Operator::Or,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::AtMost,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::AtLeast,
        operators::IN => Operator::In,
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        _ => return None,
    })
}

fn value(literal: LiteralValue) -> Literal {
    match literal {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(value) => Literal::Bool(value.into_inner()),
        LiteralValue::Int(value) => Literal::Int(value.into_inner()),
        LiteralValue::UInt(value) => Literal::Uint(value.into_inner()),
        LiteralValue::Double(value) => Literal::Double(value.into_inner()),
        LiteralValue::String(value) => Literal::Text(value.into_inner()),
        LiteralValue::Bytes(value) => Literal::Bytes(value.into_inner()),
    }
}
