//! Calls: which function is meant, and whether it fits its arguments.

mod conversions;
mod tables;

use super::{Lowered, Lowering, containing, listed, macros, short, spell};
use crate::{
    error::Problem,
    eval::time,
    expr::{Expr, ExprKind, Function, TimePart},
    fields,
    pattern::{self, Malformed, Pattern},
    syntax::Node,
    types::Type,
    value::Value,
};
use tables::{GLOBAL, MACROS, PARTS, TEXT};

use conversions::converted;

pub(super) use conversions::conversion_problem;

impl Lowering<'_> {
    pub(super) fn call(
        &mut self,
        node: &Node,
        of: Option<&Node>,
        name: &str,
        args: &[Node],
    ) -> Lowered {
        match of {
            None => self.global(node, name, args),
            Some(of) => match macros::kind(name) {
                Some(kind) => self.macro_over(node, kind, of, args),
                None => self.method(node, of, name, args),
            },
        }
    }

    fn global(&mut self, node: &Node, name: &str, args: &[Node]) -> Lowered {
        if name == "has" {
            return self.has(node, args);
        }
        if let ("matches", [of, pattern]) = (name, args) {
            return self.method(node, of, name, std::slice::from_ref(pattern));
        }
        let Some((_, function)) = GLOBAL.iter().find(|(known, _)| *known == name) else {
            return Err(self.unknown(node, name, false));
        };
        let [arg] = args else {
            let what = format!("`{name}` wants one argument, not {}", args.len());
            return Err(Problem::new(node.at, what));
        };
        let value = self.value(arg)?;
        let Some(ty) = converted(function, &value.ty) else {
            let what = format!(
                "{} is {}, which `{name}` does not take",
                spell(arg),
                value.ty
            );
            return Err(Problem::new(node.at, what));
        };
        Ok(Expr::new(ty, ExprKind::Call(function.clone(), vec![value])))
    }

    fn method(&mut self, node: &Node, of: &Node, name: &str, args: &[Node]) -> Lowered {
        let receiver = self.value(of)?;
        if name == "size" && args.is_empty() {
            let Some(ty) = converted(&Function::Size, &receiver.ty) else {
                let what = format!("{} is {}, which has no size", spell(of), receiver.ty);
                return Err(Problem::new(node.at, what));
            };
            return Ok(Expr::new(
                ty,
                ExprKind::Call(Function::Size, vec![receiver]),
            ));
        }
        if let Some(&(_, part)) = PARTS.iter().find(|(known, _)| *known == name) {
            return self.time_part(node, (of, receiver), part, args);
        }
        if name == "join" {
            return self.join(node, (of, receiver), args);
        }
        let Some((_, function, wanted, optional)) = TEXT.iter().find(|(known, ..)| *known == name)
        else {
            return Err(self.unknown(node, name, true));
        };
        let searched = name == "contains" && matches!(receiver.ty, Type::Map(_));
        if !receiver.ty.may_be(&Type::Text) && !searched {
            let advice = match receiver.ty {
                Type::List(_) if name == "contains" => "; write `... in` it",
                _ => "",
            };
            let what = format!(
                "{} is {}, but `{name}` is for text{advice}",
                spell(of),
                receiver.ty
            );
            return Err(Problem::new(node.at, what));
        }
        let least = wanted.len() - optional;
        if args.len() < least || args.len() > wanted.len() {
            let wants = if *optional == 0 {
                String::new()
            } else {
                format!("{least} to ")
            };
            let plural = if wanted.len() == 1 { "" } else { "s" };
            let what = format!(
                "`{name}` wants {wants}{} argument{plural}, not {}",
                wanted.len(),
                args.len()
            );
            return Err(Problem::new(node.at, what));
        }
        let mut values = vec![receiver];
        for (arg, wanted) in args.iter().zip(*wanted) {
            values.push(self.argument(arg, name, wanted)?);
        }
        self.text_call(args, function, values)
    }

    fn text_call(&mut self, args: &[Node], function: &Function, mut values: Vec<Expr>) -> Lowered {
        let function = match (function, &*values) {
            (Function::Contains, [of, ..]) => containing(of),
            (Function::Matches, [_, pattern]) => match pattern.constant() {
                Some(Value::Text(text)) => {
                    let at = args.last().map_or(0, |arg| arg.at);
                    self.budget.pay(pattern::cost(text), at)?;
                    let compiled = Pattern::compile(text)
                        .map_err(|error| Problem::new(at, bad_pattern(text, error)))?;
                    self.budget.compiled(compiled.states(), at)?;
                    values.truncate(1);
                    Function::MatchesRegex(compiled)
                }
                _ => Function::Matches,
            },
            (function, _) => function.clone(),
        };
        let ty = match function {
            Function::LowerAscii
            | Function::UpperAscii
            | Function::Trim
            | Function::Replace
            | Function::Substring
            | Function::CharAt => Type::Text,
            Function::Split => Type::List(Box::new(Type::Text)),
            Function::IndexOf | Function::LastIndexOf => Type::Int,
            _ => Type::Bool,
        };
        Ok(Expr::new(ty, ExprKind::Call(function, values)))
    }

    fn time_part(
        &mut self,
        node: &Node,
        (of, receiver): (&Node, Expr),
        part: TimePart,
        args: &[Node],
    ) -> Lowered {
        let of_duration = matches!(
            part,
            TimePart::Hours | TimePart::Minutes | TimePart::Seconds | TimePart::Milliseconds
        );
        let fits = receiver.ty.may_be(&Type::Time)
            || of_duration && receiver.ty == Type::Duration && args.is_empty();
        if !fits {
            let what = match receiver.ty {
                Type::Text => format!("{} is text; write `timestamp(...)` around it", spell(of)),
                ty => format!("{} is {ty}, which has no such part", spell(of)),
            };
            return Err(Problem::new(node.at, what));
        }
        let mut values = vec![receiver];
        match args {
            [] => {}
            [zone] => {
                let value = self.argument(zone, "a time zone", &Type::Text)?;
                if let Some(Value::Text(name)) = value.constant()
                    && time::time_zone(name).is_none()
                {
                    let what = format!(
                        "unknown time zone `{}`; want a name such as `Europe/Berlin` or an \
                         offset such as `+02:00`",
                        short(name)
                    );
                    return Err(Problem::new(zone.at, what));
                }
                values.push(value);
            }
            _ => {
                return Err(Problem::new(
                    node.at,
                    "a part of a time wants at most a time zone",
                ));
            }
        }
        Ok(Expr::new(
            Type::Int,
            ExprKind::Call(Function::Get(part), values),
        ))
    }

    fn join(&mut self, node: &Node, (of, list): (&Node, Expr), args: &[Node]) -> Lowered {
        let texts = match &list.ty {
            Type::List(of) => of.may_be(&Type::Text),
            ty => ty.is_dyn(),
        };
        if !texts || args.len() > 1 {
            let what = format!(
                "{} is {}; `join` wants a list of texts and at most what to put between them",
                spell(of),
                list.ty
            );
            return Err(Problem::new(node.at, what));
        }
        let mut values = vec![list];
        for arg in args {
            values.push(self.argument(arg, "join", &Type::Text)?);
        }
        Ok(Expr::new(
            Type::Text,
            ExprKind::Call(Function::Join, values),
        ))
    }

    fn argument(&mut self, arg: &Node, name: &str, wanted: &Type) -> Lowered {
        let value = self.value(arg)?;
        if value.ty.may_be(wanted) {
            return Ok(value);
        }
        let what = format!(
            "`{name}` wants {wanted} here, but {} is {}",
            spell(arg),
            value.ty
        );
        Err(Problem::new(arg.at, what))
    }

    fn unknown(&self, node: &Node, name: &str, method: bool) -> Problem {
        let before: Vec<_> = GLOBAL
            .iter()
            .map(|&(name, _)| name)
            .chain(["has"])
            .collect();
        let mut after: Vec<_> = TEXT.iter().map(|&(name, ..)| name).collect();
        after.extend(PARTS.iter().map(|&(name, _)| name));
        after.extend(MACROS.iter().skip(1));
        after.extend(["size", "join"]);
        let (here, there) = if method {
            (&after, &before)
        } else {
            (&before, &after)
        };
        let advice = if there.contains(&name) {
            match method {
                true => format!("write `{name}(...)`"),
                false => format!("write it after a value, as in `x.{name}(...)`"),
            }
        } else {
            match fields::nearest(name, here.iter().chain(there).copied()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if method => format!("a value has {}", listed(after)),
                None => format!("the functions are {}", listed(before)),
            }
        };
        Problem::new(
            node.at,
            format!("unknown function `{}`; {advice}", short(name)),
        )
    }
}

fn bad_pattern(text: &str, error: Malformed) -> String {
    let text = short(text);
    match error {
        Malformed::TooLarge => {
            format!("the pattern `{text}` is too large when compiled; shorten it")
        }
        Malformed::Syntax(told) => {
            let why = told.lines().last().unwrap_or_default();
            let why = why.trim_start_matches("error: ");
            format!("the pattern `{text}` is not a regular expression: {why}")
        }
    }
}
