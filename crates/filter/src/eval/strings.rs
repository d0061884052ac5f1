//! Functions that make text of text. Positions count characters.

use super::{Answer, Judge, MAX_MADE};
use crate::{
    error::Miss,
    expr::Function,
    value::{Shared, Value},
};

impl<'a> Judge<'a> {
    pub(super) fn text_function(
        &mut self,
        function: &Function,
        values: &[Value<'a>],
    ) -> Answer<Value<'a>> {
        let (of, rest) = values.split_first().ok_or(Miss::Unknown)?;
        if let Function::Join = function {
            return self.joined_texts(of, rest);
        }
        let Value::Text(of) = of else {
            return Err(Miss::Unknown);
        };
        if matches!(
            function,
            Function::LowerAscii | Function::UpperAscii | Function::Trim | Function::Substring
        ) {
            self.meter.charge_made(of.len())?;
        }
        let made = match (function, rest) {
            (Function::LowerAscii, []) => owned(of.to_ascii_lowercase()),
            (Function::UpperAscii, []) => owned(of.to_ascii_uppercase()),
            (Function::Trim, []) => owned(of.trim().to_owned()),
            (Function::Split, [Value::Text(by)]) => self.parts(of, by, None)?,
            (Function::Split, [Value::Text(by), Value::Int(limit)]) => {
                self.parts(of, by, Some(*limit))?
            }
            (Function::Replace, [Value::Text(from), Value::Text(to)]) => {
                self.replaced(of, from, to, usize::MAX)?
            }
            (Function::Replace, [Value::Text(from), Value::Text(to), Value::Int(limit)]) => {
                // A limit below zero is none.
                self.replaced(of, from, to, usize::try_from(*limit).unwrap_or(usize::MAX))?
            }
            (Function::Substring, [Value::Int(from)]) => {
                let from = byte(of, *from).ok_or(Miss::Unknown)?;
                owned(of[from..].to_owned())
            }
            (Function::Substring, [Value::Int(from), Value::Int(to)]) => {
                let from = byte(of, *from).ok_or(Miss::Unknown)?;
                let to = byte(of, *to).ok_or(Miss::Unknown)?;
                owned(of.get(from..to).ok_or(Miss::Unknown)?.to_owned())
            }
            (Function::CharAt, [Value::Int(index)]) => {
                let at = byte(of, *index).ok_or(Miss::Unknown)?;
                owned(of[at..].chars().take(1).collect())
            }
            (Function::IndexOf, [Value::Text(part)]) => place(of, of.find(&**part)),
            (Function::IndexOf, [Value::Text(part), Value::Int(from)]) => {
                let from = byte(of, *from).ok_or(Miss::Unknown)?;
                place(of, of[from..].find(&**part).map(|at| at + from))
            }
            (Function::LastIndexOf, [Value::Text(part)]) => place(of, of.rfind(&**part)),
            _ => return Err(Miss::Unknown),
        };
        Ok(made)
    }

    fn parts(&mut self, of: &str, by: &str, limit: Option<i64>) -> Answer<Value<'a>> {
        let limit = match limit {
            None => usize::MAX,
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        // Between nothing and nothing is every character.
        let count = if by.is_empty() {
            of.chars().count()
        } else {
            of.matches(by).count() + 1
        };
        self.meter.charge(count.min(limit))?;
        self.meter.charge_list(count.min(limit))?;
        self.meter.charge_made(of.len())?;
        let texts: Vec<String> = match (limit, by.is_empty()) {
            (0, _) => Vec::new(),
            (limit, true) => {
                let mut rest = of;
                let mut texts = Vec::new();
                while let Some(c) = rest.chars().next() {
                    if texts.len() + 1 == limit {
                        break;
                    }
                    texts.push(c.to_string());
                    rest = &rest[c.len_utf8()..];
                }
                if !rest.is_empty() {
                    texts.push(rest.to_owned());
                }
                texts
            }
            (limit, false) => of.splitn(limit, by).map(str::to_owned).collect(),
        };
        Ok(Value::List(texts.into_iter().map(owned).collect()))
    }

    fn replaced(&mut self, of: &str, from: &str, to: &str, limit: usize) -> Answer<Value<'a>> {
        let count = of.matches(from).count().min(limit);
        if of.len().saturating_add(count.saturating_mul(to.len())) > MAX_MADE {
            return Err(Miss::Budget);
        }
        self.meter.charge(count)?;
        self.meter.charge_made(of.len() + count * to.len())?;
        Ok(owned(of.replacen(from, to, limit)))
    }

    fn joined_texts(&mut self, of: &Value<'a>, rest: &[Value<'a>]) -> Answer<Value<'a>> {
        let elements = of.elements().ok_or(Miss::Unknown)?;
        let between = match rest {
            [] => "",
            [Value::Text(between)] => between,
            _ => return Err(Miss::Unknown),
        };
        self.meter.charge(elements.len())?;
        let mut text = String::new();
        for (number, element) in elements.iter().enumerate() {
            let Value::Text(element) = element else {
                return Err(Miss::Unknown);
            };
            if text.len() + between.len() + element.len() > MAX_MADE {
                return Err(Miss::Budget);
            }
            if number > 0 {
                text.push_str(between);
            }
            text.push_str(&element);
        }
        self.meter.charge_made(text.len())?;
        Ok(owned(text))
    }
}

fn owned<'a>(text: String) -> Value<'a> {
    Value::Text(Shared::own(text))
}

/// The byte where the character `index` begins; the end is a place too.
fn byte(of: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    of.char_indices()
        .map(|(at, _)| at)
        .chain([of.len()])
        .nth(index)
}

/// The number of the character at a byte; -1 for none.
fn place<'a>(of: &str, at: Option<usize>) -> Value<'a> {
    let place = at.and_then(|at| i64::try_from(of[..at].chars().count()).ok());
    Value::Int(place.unwrap_or(-1))
}
