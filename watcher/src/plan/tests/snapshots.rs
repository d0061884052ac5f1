//! Every object in `testdata/kinds` has a text beside it that says what is planned for it.
//! `UPDATE_SNAPSHOTS=1` writes these texts anew; read the difference before committing it.

use std::{fmt::Write as _, fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use hindsight_run::{Kind, Kinds, View};

use crate::{
    plan::{Annotations, Finished, Others, Presence, Remembered, Step, plan, upload},
    policy::{Collect, Policy},
};

/// Ten minutes after the objects in the fixtures ended.
const NOW: &str = "2026-03-01T10:15:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn collecting(grace_minutes: i64) -> Policy {
    let grace = SignedDuration::from_mins(grace_minutes);
    Policy {
        collect: Some(Collect {
            grace,
            ..Collect::default()
        }),
        ..finals()
    }
}

fn finalizing(deadline_minutes: i64) -> Policy {
    Policy {
        finalizers: true,
        store_deadline: SignedDuration::from_mins(deadline_minutes),
        ..finals()
    }
}

fn fresh(object: &Value) -> Remembered {
    Remembered {
        finished: Finished::Later(now()),
        lifetime: Kind::of(object).map(Kind::lifetime).unwrap_or_default(),
        ..Remembered::new(now())
    }
}

/// Remembered after all that precedes collection.
fn stored(object: &Value) -> Remembered {
    let mut remembered = fresh(object);
    if let Ok(upload) = upload(&View::new(object), &Policy::default()) {
        remembered.stored(&upload.grouping.record, &View::new(object));
        remembered.annotations = Annotations::Written;
    }
    remembered
}

fn describe(object: &Value) -> String {
    let mut text = String::new();
    let view = View::new(object);
    let finish = view.finish();
    writeln!(
        text,
        "finished: {}, outcome: {:?}",
        finish.done, finish.outcome
    )
    .unwrap();
    if let Ok(upload) = upload(&view, &Policy::default()) {
        writeln!(text, "type: {}", upload.data_type).unwrap();
        writeln!(text, "root: {}", upload.grouping.is_root).unwrap();
        upload
            .grouping
            .notes
            .iter()
            .for_each(|note| writeln!(text, "note: {note}").unwrap());
    }
    for (situation, remembered, policy) in situations(object) {
        writeln!(text, "\n{situation}:").unwrap();
        let steps = plan(Some(&view), &remembered, &policy, now());
        list(&mut text, &steps);
    }
    text
}

/// Everything that an object may meet.
fn situations(object: &Value) -> Vec<(&'static str, Remembered, Policy)> {
    vec![
        ("live, nothing stored", fresh(object), finals()),
        (
            "live, nothing stored, stored as it progresses",
            fresh(object),
            Policy {
                store_incomplete: true,
                ..finals()
            },
        ),
        (
            "seen for the first time after a restart",
            Remembered {
                finished: Finished::AtFirstSight(now()),
                ..fresh(object)
            },
            finals(),
        ),
        (
            "live, nothing stored, no annotations",
            fresh(object),
            Policy {
                annotate: false,
                ..finals()
            },
        ),
        (
            "live, nothing stored, to be collected",
            fresh(object),
            collecting(10),
        ),
        ("stored", stored(object), finals()),
        (
            "stored, to be collected in five minutes",
            stored(object),
            collecting(15),
        ),
        ("stored, to be collected", stored(object), collecting(10)),
        (
            "stored, to be collected, a child is not stored",
            Remembered {
                others: Some(Box::new(Others {
                    waits_for: Some("a child".into()),
                    ..Others::default()
                })),
                ..stored(object)
            },
            collecting(10),
        ),
        (
            "live, nothing stored, finalizers wanted",
            fresh(object),
            finalizing(10),
        ),
        ("stored, finalizers wanted", stored(object), finalizing(10)),
        (
            "live, nothing stored, the deadline for deletes is over",
            fresh(object),
            finalizing(1),
        ),
        (
            "gone, nothing stored",
            Remembered {
                presence: Presence::Gone,
                ..fresh(object)
            },
            finals(),
        ),
        (
            "gone, stored",
            Remembered {
                presence: Presence::Gone,
                ..stored(object)
            },
            finals(),
        ),
    ]
}

fn list(text: &mut String, steps: &[Step]) {
    if steps.is_empty() {
        text.push_str("  nothing\n");
    }
    for step in steps {
        match step {
            Step::Annotate(annotations) => {
                text.push_str("  annotate\n");
                for (key, value) in annotations {
                    writeln!(text, "    {key}: {value}").unwrap();
                }
            }
            step => writeln!(text, "  {step}").unwrap(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "asks whether to write the snapshots anew"
)]
fn is_updating() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_fixture_is_planned_as_its_snapshot_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/kinds");
    let mut cases: Vec<(&'static Kind, usize)> = Vec::new();
    for folder in files(&root) {
        for file in files(&folder) {
            let snapshot = file.with_extension("plan");
            if file.extension().is_none_or(|extension| extension != "yaml") {
                assert!(
                    file.with_extension("yaml").exists(),
                    "{} is of nothing",
                    file.display()
                );
                continue;
            }
            let object: Value =
                serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
            let kind = Kind::of(&object).expect("a fixture is of a known kind");
            match cases.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => cases.push((kind, 1)),
            }
            let text = describe(&object);
            if is_updating() {
                fs::write(&snapshot, &text).unwrap();
            }
            let expected = fs::read_to_string(&snapshot).unwrap_or_default();
            assert_eq!(text, expected, "{} differs", snapshot.display());
        }
    }
    for kind in Kinds::built_in().all() {
        let count = cases
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or(0, |(_, n)| *n);
        assert!(
            count >= 3,
            "{} has {count} fixtures, wanted 3",
            kind.data_type()
        );
    }
}

/// Only what has ended is stored.
fn finals() -> Policy {
    Policy {
        store_incomplete: false,
        ..Policy::default()
    }
}
