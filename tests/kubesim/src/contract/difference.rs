//! What a case finds: that things are as they have to be, or how they differ.

use std::{fmt::Debug, time::Duration};

use kube::core::Status;

/// How long a case waits for something that must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What a case ends with.
pub type Verdict = Result<(), Difference>;

/// How the server differs from what it must be.
#[derive(Debug, thiserror::Error)]
pub enum Difference {
    /// An answer is not what it must be.
    #[error("{what}: want {wanted}, found {found}")]
    Value {
        /// What was looked at.
        what: String,
        /// What it must be.
        wanted: String,
        /// What the server answered instead.
        found: String,
    },
    /// Something that must happen did not.
    #[error("{what} did not happen within {} s", PATIENCE.as_secs())]
    Missing {
        /// What was waited for until patience ran out.
        what: String,
    },
    /// A request that must work did not.
    #[error("a request that must work was refused")]
    Refused(#[from] kube::Error),
}

/// Fails where two things differ, and says how.
pub fn same<F, W>(what: &str, found: F, wanted: W) -> Verdict
where
    F: Debug + PartialEq<W>,
    W: Debug,
{
    if found == wanted {
        return Ok(());
    }
    Err(Difference::Value {
        what: what.into(),
        wanted: format!("{wanted:?}"),
        found: format!("{found:?}"),
    })
}

/// Fails where something is not true.
pub fn holds(what: &str, true_: bool) -> Verdict {
    same(what, true_, true)
}

/// Fails where the server did not refuse with `code` and `reason`.
pub fn refused<T: Debug>(
    what: &str,
    outcome: Result<T, kube::Error>,
    code: u16,
    reason: &str,
) -> Result<Box<Status>, Difference> {
    match outcome {
        Err(kube::Error::Api(status)) => {
            same(what, (status.code, status.reason.as_str()), (code, reason))?;
            Ok(status)
        }
        Err(error) => Err(error.into()),
        Ok(found) => Err(Difference::Value {
            what: what.into(),
            wanted: format!("{code} {reason}"),
            found: format!("{found:?}"),
        }),
    }
}

/// Asks again and again until `holds`, and fails after the patience of the suite.
pub async fn eventually<F>(what: &str, mut holds: impl FnMut() -> F) -> Verdict
where
    F: Future<Output = Result<bool, Difference>>,
{
    let asked = tokio::time::timeout(PATIENCE, async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    });
    asked
        .await
        .unwrap_or_else(|_elapsed| Err(Difference::Missing { what: what.into() }))
}
