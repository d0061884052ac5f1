//! Which of the runs in a result it is summed up by.

/// What a run says of a result it is in, as far as it decides which run the result is summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim<'a> {
    /// The name of the run's record.
    pub record: &'a str,
    /// When the run began, in seconds and nanoseconds since 1970.
    pub began: Option<(i64, i32)>,
    /// Whether the claim tells an end.
    pub is_over: bool,
}

/// What becomes of a claim on a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// It is of an earlier state of the same run: it changes nothing.
    Late,
    /// It speaks for the result: summary and annotations are taken over.
    Speaks,
    /// Another run speaks: only annotations that are not there yet are added.
    Adds,
}

/// Compares `ours` with what the result has from before.
///
/// A result that several runs are about (those of one trigger event) is summed up by the one
/// that began first, whatever order they arrive in, so that its summary does not flip. A summary
/// that tells an end is not replaced by an earlier state of the same run.
pub fn precedence(ours: Option<Claim<'_>>, theirs: Option<Claim<'_>>) -> Precedence {
    match (ours, theirs) {
        (None, _) => Precedence::Adds,
        (Some(_), None) => Precedence::Speaks,
        (Some(ours), Some(theirs)) if ours.record == theirs.record => {
            if theirs.is_over && !ours.is_over {
                Precedence::Late
            } else {
                Precedence::Speaks
            }
        }
        (Some(ours), Some(theirs)) if rank(&ours) < rank(&theirs) => Precedence::Speaks,
        _ => Precedence::Adds,
    }
}

/// Sorts runs by when they began; those that have not come last, and ties go by name.
fn rank<'a>(claim: &Claim<'a>) -> (bool, (i64, i32), &'a str) {
    (
        claim.began.is_none(),
        claim.began.unwrap_or_default(),
        claim.record,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(record: &str, began: i64, is_over: bool) -> Claim<'_> {
        Claim {
            record,
            began: (began > 0).then_some((began, 0)),
            is_over,
        }
    }

    #[track_caller]
    fn compared(ours: Option<Claim<'_>>, theirs: Option<Claim<'_>>, expected: Precedence) {
        assert_eq!(precedence(ours, theirs), expected);
    }

    #[test]
    fn the_run_that_began_first_speaks() {
        let (early, late, never) = (
            claim("b", 1, true),
            claim("a", 2, true),
            claim("c", 0, true),
        );
        compared(Some(late), None, Precedence::Speaks);
        compared(Some(early), Some(late), Precedence::Speaks);
        compared(Some(late), Some(early), Precedence::Adds);
        compared(Some(never), Some(late), Precedence::Adds);
        compared(Some(late), Some(never), Precedence::Speaks);
        compared(None, Some(late), Precedence::Adds);
        compared(None, None, Precedence::Adds);
    }

    #[test]
    fn of_runs_that_began_together_the_first_name_speaks() {
        compared(
            Some(claim("a", 1, true)),
            Some(claim("b", 1, true)),
            Precedence::Speaks,
        );
        compared(
            Some(claim("b", 1, true)),
            Some(claim("a", 1, true)),
            Precedence::Adds,
        );
    }

    #[test]
    fn an_end_is_not_replaced_by_an_earlier_state() {
        let (open, over) = (claim("a", 1, false), claim("a", 1, true));
        compared(Some(open), Some(over), Precedence::Late);
        compared(Some(over), Some(open), Precedence::Speaks);
        compared(Some(over), Some(over), Precedence::Speaks);
    }
}
