//! `exists`, `all`, `exists_one`, `filter` and `map`.

use super::{Answer, Judge};
use crate::{
    error::Miss,
    expr::{Macro, MacroKind},
    value::Value,
};

impl<'a> Judge<'a> {
    pub(super) fn run_macro(&mut self, of: &'a Macro) -> Answer<Value<'a>> {
        let range = self.eval(&of.range)?;
        let items = items(&range, of.variables).ok_or(Miss::Unknown)?;
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

    fn bind(&mut self, of: &Macro, item: Item<'a>) -> Answer<()> {
        self.meter.charge(1)?;
        self.locals.truncate(of.slot);
        self.locals.push(item.first);
        self.locals.extend(item.second);
        Ok(())
    }

    fn holds(&mut self, of: &'a Macro) -> Answer<bool> {
        match &of.test {
            Some(test) => self.test(test),
            None => Ok(true),
        }
    }

    /// The `||` of the tests if `decisive` is true, their `&&` if it is false.
    fn any(&mut self, of: &'a Macro, items: Items<'_, 'a>, decisive: bool) -> Answer<Value<'a>> {
        let mut unknown = false;
        for item in items {
            self.bind(of, item)?;
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

    fn one(&mut self, of: &'a Macro, items: Items<'_, 'a>) -> Answer<Value<'a>> {
        let mut found = 0_usize;
        for item in items {
            self.bind(of, item)?;
            found += usize::from(self.holds(of)?);
        }
        Ok(Value::Bool(found == 1))
    }

    fn collected(&mut self, of: &'a Macro, items: Items<'_, 'a>) -> Answer<Value<'a>> {
        let mut made = Vec::new();
        for item in items {
            let element = item.first.clone();
            self.bind(of, item)?;
            if self.holds(of)? {
                made.push(match &of.make {
                    Some(make) => self.eval(make)?,
                    None => element,
                });
            }
        }
        self.meter.charge_list(made.len())?;
        Ok(Value::List(made.into()))
    }
}

/// What the variables are bound to for one element.
struct Item<'a> {
    first: Value<'a>,
    second: Option<Value<'a>>,
}

/// Elements one after the other, since a list may be long and the budget end first.
type Items<'v, 'a> = Box<dyn Iterator<Item = Item<'a>> + 'v>;

fn items<'v, 'a>(range: &'v Value<'a>, variables: usize) -> Option<Items<'v, 'a>> {
    let two = variables == 2;
    let pair = move |(first, value)| Item {
        first,
        second: two.then_some(value),
    };
    if let Some(elements) = range.elements() {
        let indexed = (0_i64..).zip(elements.iter());
        return Some(Box::new(indexed.map(move |(index, element)| match two {
            true => pair((Value::Int(index), element)),
            false => pair((element, Value::Null)),
        })));
    }
    Some(Box::new(range.entries()?.map(pair)))
}
