//! Which groups are given out, by their measures.

use jiff::SignedDuration;

use super::{Error, MOST_MEASURES, answer::Value, invalid, measures::Measure};

/// Comparisons that all must hold.
#[derive(Debug, Default)]
pub(super) struct Having(Vec<Comparison>);

#[derive(Debug)]
struct Comparison {
    measure: Measure,
    operator: Operator,
    with: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    NotEqual,
}

const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Having {
    /// Understands comparisons joined by `&&`.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let mut comparisons = Vec::new();
        let mut column = 1;
        if text.trim().is_empty() {
            return Ok(Self(comparisons));
        }
        for part in text.split("&&") {
            if comparisons.len() == MOST_MEASURES {
                return Err(invalid(format!(
                    "having column {column}: more than {MOST_MEASURES} comparisons"
                )));
            }
            let blanks = part.chars().take_while(|c| c.is_whitespace()).count();
            comparisons.push(comparison(part.trim(), column + blanks)?);
            column += part.chars().count() + "&&".len();
        }
        Ok(Self(comparisons))
    }

    /// The measure of each comparison, in the order of the text.
    pub(super) fn measures(&self) -> impl Iterator<Item = &Measure> {
        self.0.iter().map(|comparison| &comparison.measure)
    }

    /// Whether a group is given out. What is not there compares with nothing.
    pub(super) fn holds(&self, value: &mut dyn FnMut(&Measure) -> Value) -> bool {
        self.0.iter().all(|comparison| {
            let with = comparison.with;
            let Some(number) = value(&comparison.measure).number() else {
                return false;
            };
            match comparison.operator {
                Operator::Less => number < with,
                Operator::AtMost => number <= with,
                Operator::Greater => number > with,
                Operator::AtLeast => number >= with,
                Operator::Equal => (number - with).abs() < 1e-9,
                Operator::NotEqual => (number - with).abs() >= 1e-9,
            }
        })
    }
}

fn comparison(text: &str, column: usize) -> Result<Comparison, Error> {
    let refuse = |what: String| invalid(format!("having column {column}: {what}"));
    let found = OPERATORS
        .iter()
        .filter_map(|(sign, operator)| Some((text.find(sign)?, sign, *operator)))
        .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())));
    let Some((at, sign, operator)) = found else {
        return Err(refuse(format!(
            "`{text}` compares nothing; want comparisons joined by `&&`, such as `count >= 10 && \
             p95(duration) > 5m`"
        )));
    };
    let measure = Measure::parse(text[..at].trim()).map_err(|error| refuse(error.to_string()))?;
    let literal = text[at + sign.len()..].trim();
    let with = number(literal, &measure).ok_or_else(|| {
        let wanted = match measure {
            Measure::Count | Measure::Ended(_) | Measure::Open(_) => "a number, such as `10`",
            Measure::SuccessRate => "a part of one, such as `0.95` or `95%`",
            Measure::Of(_, super::measures::Subject::Time(_)) => {
                "a time, such as `2026-03-01T00:00:00Z`"
            }
            Measure::Of(..) => "a duration, such as `90s`, `5m` or `1h30m`, or seconds",
        };
        let name = measure.name();
        refuse(format!(
            "`{literal}` cannot be compared with {name}; want {wanted}"
        ))
    })?;
    Ok(Comparison {
        measure,
        operator,
        with,
    })
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of centuries fit")]
fn number(text: &str, measure: &Measure) -> Option<f64> {
    let text = text.trim_matches(['"', '\'']);
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
    match measure {
        Measure::Count | Measure::Ended(_) | Measure::Open(_) => plain(),
        Measure::SuccessRate => match text.strip_suffix('%') {
            Some(percent) => Some(percent.trim().parse::<f64>().ok()? / 100.0),
            None => plain(),
        },
        Measure::Of(_, super::measures::Subject::Time(_)) => {
            let time = hindsight_proto::time::parse(text)?;
            Some(time.as_microsecond() as f64 / 1e6)
        }
        Measure::Of(..) => plain().or_else(|| {
            let duration: SignedDuration = text.parse().ok()?;
            Some(duration.as_secs_f64())
        }),
    }
}
