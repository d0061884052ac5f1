//! `exists`, `all`, `exists_one`, `filter` and `map`.

use super::{Answer, Judge, MAX_MADE, Miss};
use crate::filter::{
    expr::{Macro, MacroKind},
    value::Value,
};

impl<'a> Judge<'a> {
    pub(super) fn run_macro(&mut self, of: &'a Macro) -> Answer<Value<'a>> {
        let range = self.eval(&of.range)?;
        let items = items(&range, of.variables).ok_or(Miss::Unknown)?;
        self.charge_bulk(items.len())?;
        let depth = self.locals.len();
        debug_assert_eq!(depth, of.slot, "variables are numbered by nesting");
        let answer = match of.of {
            MacroKind::Exists => self.any(of, items, true),
            MacroKind::All => self.any(of, items, false),
            MacroKind::ExistsOne => self.one(of, items),
            MacroKind::Filter | MacroKind::Map => self.collected(of, items),
        };
        self.locals.truncate(depth);
        answer
    }

    fn bind(&mut self, of: &Macro, item: Item<'a>) {
        self.locals.truncate(of.slot);
        self.locals.push(item.first);
        self.locals.extend(item.second);
    }

    fn holds(&mut self, of: &'a Macro) -> Answer<bool> {
        match &of.test {
            Some(test) => self.test(test),
            None => Ok(true),
        }
    }

    /// The `||` of the tests if `decisive` is true, their `&&` if it is false.
    fn any(&mut self, of: &'a Macro, items: Vec<Item<'a>>, decisive: bool) -> Answer<Value<'a>> {
        let mut unknown = false;
        for item in items {
            self.bind(of, item);
            match self.holds(of) {
                Ok(truth) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(Miss::Unknown) => unknown = true,
                Err(Miss::Budget) => return Err(Miss::Budget),
            }
        }
        if unknown {
            Err(Miss::Unknown)
        } else {
            Ok(Value::Bool(!decisive))
        }
    }

    fn one(&mut self, of: &'a Macro, items: Vec<Item<'a>>) -> Answer<Value<'a>> {
        let mut found = 0_usize;
        for item in items {
            self.bind(of, item);
            found += usize::from(self.holds(of)?);
        }
        Ok(Value::Bool(found == 1))
    }

    fn collected(&mut self, of: &'a Macro, items: Vec<Item<'a>>) -> Answer<Value<'a>> {
        let mut made = Vec::new();
        for item in items {
            let element = item.first.clone();
            self.bind(of, item);
            if self.holds(of)? {
                made.push(match &of.make {
                    Some(make) => self.eval(make)?,
                    None => element,
                });
            }
        }
        if made.len() > MAX_MADE {
            return Err(Miss::Budget);
        }
        Ok(Value::List(made.into()))
    }
}

/// What the variables are bound to for one element.
struct Item<'a> {
    first: Value<'a>,
    second: Option<Value<'a>>,
}

fn items<'a>(range: &Value<'a>, variables: usize) -> Option<Vec<Item<'a>>> {
    let two = variables == 2;
    if let Some(elements) = range.elements() {
        let items = elements
            .iter()
            .enumerate()
            .map(|(index, element)| match two {
                true => Item {
                    first: Value::Int(i64::try_from(index).unwrap_or(i64::MAX)),
                    second: Some(element),
                },
                false => Item {
                    first: element,
                    second: None,
                },
            });
        return Some(items.collect());
    }
    let entries = range.entries()?.into_iter();
    Some(
        entries
            .map(|(first, value)| Item {
                first,
                second: two.then_some(value),
            })
            .collect(),
    )
}
