//! Label selectors: `app=shop,tier!=test,env in (a, b),zone notin (c),owner,!keep,weight>3`.

use super::{add, binary, call, literal, lowered, name, not, select, text};
use crate::{
    cost::CostBudget,
    error::{FilterError, Problem},
    expr::Expr,
    model::Resource,
    syntax::{Kind, Literal, Node, Operator},
};

/// What a label selector means on records: their `metadata.labels` are looked at.
pub(crate) fn labels(
    text: &str,
    resource: Resource,
    budget: &mut CostBudget,
) -> Result<Expr, FilterError> {
    lowered(
        "label selector",
        text,
        resource,
        budget,
        |budget| match resource {
            Resource::Records => {
                let mut parser = Parser::new(text)?;
                budget.read(parser.tokens.len(), 0)?;
                parser.requirements()
            }
            Resource::Results => Err(Problem::new(
                0,
                "results have no labels; select records, or write a filter on \
                 `annotations[\"key\"]`",
            )),
        },
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    /// A key, a value or a word.
    Word(&'t str),
    /// An operator, a comma or a bracket.
    Sign(&'static str),
    End,
}

struct Parser<'t> {
    tokens: Vec<(usize, Token<'t>)>,
    next: usize,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", "<", ">"];

fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push((at, Token::Sign(sign)));
            at += sign.len();
        } else {
            let end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
            let size = rest.find(end).unwrap_or(rest.len());
            if size == 0 {
                let what = format!("`{c}` has no meaning here; want for example `{EXAMPLE}`");
                return Err(Problem::new(at, what));
            }
            tokens.push((at, Token::Word(&rest[..size])));
            at += size;
        }
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

const EXAMPLE: &str = "app=shop,tier!=test,env in (a,b),!keep";

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Result<Self, Problem> {
        Ok(Self {
            tokens: tokens(text)?,
            next: 0,
        })
    }

    fn peek(&self) -> (usize, Token<'t>) {
        let last = self.tokens.len() - 1;
        self.tokens[self.next.min(last)]
    }

    fn take(&mut self) -> (usize, Token<'t>) {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek().1, Token::Sign(next) if next == sign);
        self.next += usize::from(found);
        found
    }

    fn requirements(&mut self) -> Result<Vec<Node>, Problem> {
        let mut nodes = Vec::new();
        loop {
            let at = self.peek().0;
            add(&mut nodes, self.requirement()?, at)?;
            match self.take() {
                (_, Token::Sign(",")) => {}
                (_, Token::End) => return Ok(nodes),
                (at, token) => return Err(unexpected(at, token, "`,` or the end")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Node, Problem> {
        if self.takes("!") {
            let (at, key) = self.key()?;
            return Ok(not(has(at, key)));
        }
        let (at, key) = self.key()?;
        let (sign_at, sign) = self.peek();
        let operator = match sign {
            Token::Sign(",") | Token::End => return Ok(has(at, key)),
            Token::Sign(operator @ ("=" | "==" | "!=" | "<" | ">")) => operator,
            Token::Word(word @ ("in" | "notin")) => word,
            other => {
                let wanted = "one of `=`, `==`, `!=`, `in`, `notin`, `<` and `>`";
                return Err(unexpected(sign_at, other, wanted));
            }
        };
        self.next += 1;
        match operator {
            "in" | "notin" => {
                let values = self.list()?;
                let list = Node {
                    at: sign_at,
                    kind: Kind::List(values),
                };
                let within = binary(Operator::In, label(at, key), list);
                Ok(match operator {
                    "in" => within,
                    _ => binary(Operator::Or, not(has(at, key)), not(within)),
                })
            }
            "<" | ">" => {
                let (value_at, value) = self.take();
                let number = match value {
                    Token::Word(word) => word.parse::<i64>().ok(),
                    _ => None,
                };
                let Some(number) = number else {
                    return Err(unexpected(value_at, value, "a whole number"));
                };
                let operator = match operator {
                    "<" => Operator::Less,
                    _ => Operator::Greater,
                };
                let number = literal(value_at, Literal::Int(number));
                Ok(binary(operator, call("int", label(at, key)), number))
            }
            _ => {
                let value = self.value()?;
                Ok(match operator {
                    "!=" => {
                        let unequal = binary(Operator::NotEqual, label(at, key), value);
                        binary(Operator::Or, not(has(at, key)), unequal)
                    }
                    _ => binary(Operator::Equal, label(at, key), value),
                })
            }
        }
    }

    fn key(&mut self) -> Result<(usize, &'t str), Problem> {
        match self.take() {
            (at, Token::Word(word)) => {
                let (prefix, name) = word.rsplit_once('/').unwrap_or(("", word));
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
                let is_prefix = prefix.len() <= 253
                    && prefix.chars().all(plain)
                    && !(prefix.is_empty() && word.contains('/'));
                if name.is_empty() || !is_value(name) || !is_prefix {
                    let what = format!("`{word}` is no label; want `name` or `example.com/name`");
                    return Err(Problem::new(at, what));
                }
                Ok((at, word))
            }
            (at, token) => Err(unexpected(at, token, "a label")),
        }
    }

    /// A value, perhaps an empty one.
    fn value(&mut self) -> Result<Node, Problem> {
        let (at, token) = self.peek();
        let word = match token {
            Token::Word(word) => {
                self.next += 1;
                word
            }
            Token::Sign("," | ")") | Token::End => "",
            other => return Err(unexpected(at, other, "a value")),
        };
        if !is_value(word) {
            let what = format!(
                "`{word}` is no value of a label; want up to 63 letters, digits, `-`, `_` and \
                 `.`, with a letter or digit at both ends"
            );
            return Err(Problem::new(at, what));
        }
        Ok(text(at, word))
    }

    fn list(&mut self) -> Result<Vec<Node>, Problem> {
        let (at, token) = self.take();
        if token != Token::Sign("(") {
            return Err(unexpected(at, token, "`(`"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.take() {
                (_, Token::Sign(",")) => {}
                (_, Token::Sign(")")) => return Ok(values),
                (at, token) => return Err(unexpected(at, token, "`,` or `)`")),
            }
        }
    }
}

fn unexpected(at: usize, token: Token<'_>, wanted: &str) -> Problem {
    let found = match token {
        Token::Word(text) => format!("`{text}` is"),
        Token::Sign(text) => format!("`{text}` is"),
        Token::End => "the end is".to_owned(),
    };
    Problem::new(at, format!("{found} not expected here; want {wanted}"))
}

fn is_value(word: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let outer = |c: char| c.is_ascii_alphanumeric();
    word.len() <= 63
        && word.chars().all(inner)
        && word.chars().next().is_none_or(outer)
        && word.chars().next_back().is_none_or(outer)
}

fn labels_of(at: usize) -> Node {
    select(select(name(at, "data"), "metadata"), "labels")
}

fn label(at: usize, key: &str) -> Node {
    Node {
        at,
        kind: Kind::Index(Box::new(labels_of(at)), Box::new(text(at, key))),
    }
}

fn has(at: usize, key: &str) -> Node {
    call("has", label(at, key))
}

#[cfg(test)]
mod tests;
