//! Which of the runs in a result speaks for it.

/// What a run says of a result it is in, as far as it decides who is heard.
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
pub enum Verdict {
    /// It is of an earlier state of the same run: it changes nothing.
    Late,
    /// It speaks for the result: summary and annotations are taken over.
    Speaks,
    /// Another run speaks: only annotations that are not there yet are added.
    Adds,
}

/// Judges `ours` beside what the result has from before.
///
/// A result that several runs are about (those of one trigger event) is summed up by the one
/// that began first, whatever order they arrive in, so that its summary does not flip. A summary
/// that tells an end is not replaced by an earlier state of the same run.
pub fn verdict(ours: Option<Claim<'_>>, theirs: Option<Claim<'_>>) -> Verdict {
    match (ours, theirs) {
        (None, _) => Verdict::Adds,
        (Some(_), None) => Verdict::Speaks,
        (Some(ours), Some(theirs)) if ours.record == theirs.record => {
            if theirs.is_over && !ours.is_over {
                Verdict::Late
            } else {
                Verdict::Speaks
            }
        }
        (Some(ours), Some(theirs)) if rank(&ours) < rank(&theirs) => Verdict::Speaks,
        _ => Verdict::Adds,
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
    fn judged(ours: Option<Claim<'_>>, theirs: Option<Claim<'_>>, expected: Verdict) {
        assert_eq!(verdict(ours, theirs), expected);
    }

    #[test]
    fn the_run_that_began_first_speaks() {
        let (early, late, never) = (
            claim("b", 1, true),
            claim("a", 2, true),
            claim("c", 0, true),
        );
        judged(Some(late), None, Verdict::Speaks);
        judged(Some(early), Some(late), Verdict::Speaks);
        judged(Some(late), Some(early), Verdict::Adds);
        judged(Some(never), Some(late), Verdict::Adds);
        judged(Some(late), Some(never), Verdict::Speaks);
        judged(None, Some(late), Verdict::Adds);
        judged(None, None, Verdict::Adds);
    }

    #[test]
    fn of_runs_that_began_together_the_first_name_speaks() {
        judged(
            Some(claim("a", 1, true)),
            Some(claim("b", 1, true)),
            Verdict::Speaks,
        );
        judged(
            Some(claim("b", 1, true)),
            Some(claim("a", 1, true)),
            Verdict::Adds,
        );
    }

    #[test]
    fn an_end_is_not_replaced_by_an_earlier_state() {
        let (open, over) = (claim("a", 1, false), claim("a", 1, true));
        judged(Some(open), Some(over), Verdict::Late);
        judged(Some(over), Some(open), Verdict::Speaks);
        judged(Some(over), Some(over), Verdict::Speaks);
    }
}
