//! Calendars and percentiles against plain ones.

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};

use super::{
    Amount, Calendar, Depth, EXACT, Key, RELATIVE_ERROR, Samples, Shape, Sums, Tally, Unit,
};

fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

fn said(us: i64) -> String {
    Timestamp::from_microsecond(us).unwrap().to_string()
}

#[track_caller]
fn bucket(zone: &str, unit: Unit, time: &str, start: &str, end: &str) {
    let calendar = Calendar {
        unit,
        zone: TimeZone::get(zone).unwrap(),
    };
    let (from, to) = calendar.bucket(at(time));
    assert_eq!((said(from), said(to)), (start.to_owned(), end.to_owned()));
}

#[test]
fn a_day_is_as_long_as_its_date() {
    let z = "Europe/Berlin";
    bucket(
        z,
        Unit::Day,
        "2026-03-29T10:00:00Z",
        "2026-03-28T23:00:00Z",
        "2026-03-29T22:00:00Z",
    );
    bucket(
        z,
        Unit::Day,
        "2026-10-25T10:00:00Z",
        "2026-10-24T22:00:00Z",
        "2026-10-25T23:00:00Z",
    );
    bucket(
        z,
        Unit::Week,
        "2026-03-29T10:00:00Z",
        "2026-03-22T23:00:00Z",
        "2026-03-29T22:00:00Z",
    );
    bucket(
        z,
        Unit::Month,
        "2026-03-29T10:00:00Z",
        "2026-02-28T23:00:00Z",
        "2026-03-31T22:00:00Z",
    );
    bucket(
        z,
        Unit::Year,
        "2026-03-29T10:00:00Z",
        "2025-12-31T23:00:00Z",
        "2026-12-31T23:00:00Z",
    );
    // Midnight was left out on this day.
    bucket(
        "America/Sao_Paulo",
        Unit::Day,
        "2018-11-04T12:00:00Z",
        "2018-11-04T03:00:00Z",
        "2018-11-05T02:00:00Z",
    );
    // This zone skipped a whole day.
    bucket(
        "Pacific/Apia",
        Unit::Day,
        "2011-12-30T09:59:59Z",
        "2011-12-29T10:00:00Z",
        "2011-12-30T10:00:00Z",
    );
}

#[test]
fn an_hour_that_comes_twice_is_two_buckets() {
    let z = "Europe/Berlin";
    bucket(
        z,
        Unit::Hour,
        "2026-10-25T00:30:00Z",
        "2026-10-25T00:00:00Z",
        "2026-10-25T01:00:00Z",
    );
    bucket(
        z,
        Unit::Hour,
        "2026-10-25T01:30:00Z",
        "2026-10-25T01:00:00Z",
        "2026-10-25T02:00:00Z",
    );
    bucket(
        "Asia/Kolkata",
        Unit::Hour,
        "2026-01-01T00:40:00Z",
        "2026-01-01T00:30:00Z",
        "2026-01-01T01:30:00Z",
    );
    bucket(
        "Australia/Lord_Howe",
        Unit::Hour,
        "2026-04-04T15:10:00Z",
        "2026-04-04T15:00:00Z",
        "2026-04-04T15:30:00Z",
    );
    bucket(
        z,
        Unit::Minute,
        "1969-12-31T23:59:59.5Z",
        "1969-12-31T23:59:00Z",
        "1970-01-01T00:00:00Z",
    );
}

#[test]
fn buckets_follow_one_another_without_gaps() {
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Monrovia",
    ] {
        for unit in Unit::ALL {
            let zone = TimeZone::get(zone).unwrap();
            let calendar = Calendar { unit, zone };
            for from in [
                "1883-11-18T00:00:00Z",
                "2011-12-29T00:00:00Z",
                "2026-03-28T12:34:56.789Z",
            ] {
                let (mut start, mut end) = calendar.bucket(at(from));
                for _ in 0..100 {
                    assert!(start < end, "{calendar:?} from {}", said(start));
                    assert_eq!(calendar.bucket(start), (start, end), "{calendar:?}");
                    assert_eq!(calendar.bucket(end - 1), (start, end), "{calendar:?}");
                    (start, end) = (end, calendar.bucket(end).1);
                    assert_eq!(calendar.bucket(start).0, start, "{calendar:?}");
                }
            }
        }
    }
}

#[test]
fn starts_are_listed_or_too_many() {
    let days = Calendar::utc(Unit::Day);
    let (first, last) = (at("2026-02-27T05:00:00Z"), at("2026-03-02T00:00:00Z"));
    let starts = days.starts(first, last, 4).unwrap();
    assert_eq!(said(starts[0]), "2026-02-27T00:00:00Z");
    assert_eq!(said(starts[3]), "2026-03-02T00:00:00Z");
    assert_eq!(starts.len(), 4);
    assert_eq!(days.starts(first, last, 3), None);
    assert_eq!(Calendar::grid(&starts), Some(86_400_000_000));
    let berlin = Calendar {
        unit: Unit::Day,
        zone: TimeZone::get("Europe/Berlin").unwrap(),
    };
    let starts = berlin.starts(first, last, 10).unwrap();
    assert_eq!(Calendar::grid(&starts), Some(3_600_000_000));
    // The ends of time are buckets too.
    assert_eq!(days.bucket(i64::MIN).0, days.bucket(i64::MIN + 1).0);
    assert!(days.starts(i64::MIN, i64::MIN + 1, 3).is_some());
}

#[test]
fn buckets_of_a_clock_that_is_never_set_are_multiples_of_a_step() {
    let ahead = TimeZone::fixed(Offset::from_seconds(20_700).unwrap());
    for zone in [TimeZone::UTC, ahead] {
        for unit in Unit::ALL {
            let calendar = Calendar {
                unit,
                zone: zone.clone(),
            };
            let step = calendar.step().unwrap();
            for time in ["1969-12-30T21:14:59Z", "2024-02-29T23:59:59.5Z"] {
                let (start, end) = calendar.bucket(at(time));
                assert_eq!((start % step, end % step), (0, 0), "{calendar:?}");
            }
        }
    }
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let unit = Unit::Day;
    assert_eq!(Calendar { unit, zone: berlin }.step(), None);
}

/// Values that look like durations.
fn values(count: u64) -> Vec<i64> {
    let mut state = 7_u64;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bits = 10 + (state >> 58) % 30;
            i64::try_from((state >> 20) % (1 << bits)).unwrap() - 500
        })
        .collect()
}

#[test]
fn few_values_have_exact_percentiles() {
    let mut samples = Samples::default();
    assert_eq!(samples.percentile(500), None);
    samples.extend((1..=100).rev());
    assert_eq!(samples.percentile(500), Some(50));
    assert_eq!(samples.percentile(950), Some(95));
    assert_eq!(samples.percentile(999), Some(100));
    assert_eq!(samples.percentile(1), Some(1));
    assert!(samples.is_exact());
}

#[test]
fn many_values_have_percentiles_within_the_stated_error() {
    let all = values(200_000);
    let mut sorted = all.clone();
    sorted.sort_unstable();
    let mut whole = Samples::default();
    whole.extend(all.iter().copied());
    assert!(!whole.is_exact());
    let mut merged = Samples::default();
    for part in all.chunks(EXACT / 3).rev() {
        let mut samples = Samples::default();
        samples.extend(part.iter().copied());
        merged.merge(samples);
    }
    assert_eq!(merged, whole, "the order of merging does not matter");
    for of_thousand in [1_u16, 10, 100, 500, 900, 950, 990, 999] {
        let rank = (sorted.len() * usize::from(of_thousand)).div_ceil(1000) - 1;
        #[expect(clippy::cast_precision_loss, reason = "values are small")]
        let (exact, about) = (
            sorted[rank] as f64,
            whole.percentile(of_thousand).unwrap() as f64,
        );
        let off = (exact - about).abs();
        // Half a microsecond is lost to rounding.
        assert!(
            off <= exact.abs() * RELATIVE_ERROR + 0.5,
            "{of_thousand}: {exact} {about}"
        );
    }
}

#[test]
fn the_largest_numbers_have_a_size() {
    let mut samples = Samples::default();
    samples.extend(std::iter::repeat_n(i64::MAX, EXACT));
    samples.extend([i64::MIN, 0]);
    assert!(samples.percentile(500).unwrap() > i64::MAX / 200 * 199);
    assert!(samples.percentile(0).unwrap() < i64::MIN / 200 * 199);
}

#[test]
fn groups_are_the_same_however_their_parts_came() {
    let shape = Shape {
        counts: 1,
        amounts: 1,
    };
    let part = |value: i64| {
        let mut amount = Amount::default();
        amount.add(value, Depth::Values);
        Sums {
            rows: 1,
            counts: vec![1],
            amounts: vec![amount],
        }
    };
    let mut merged = Tally::new(shape);
    let mut added = Tally::new(shape);
    for value in values(1000) {
        let key = vec![Key::Int(value % 7)];
        merged.merge(key.clone(), part(value)).unwrap();
        let change = |sums: &mut Sums| {
            sums.rows += 1;
            sums.counts[0] += 1;
            sums.amounts[0].add(value, Depth::Values);
        };
        added.change(key, change).unwrap();
    }
    assert_eq!(merged.finish(), added.finish());
}

#[test]
fn there_may_not_be_too_many_groups() {
    let mut tally = Tally::new(Shape {
        counts: 0,
        amounts: 0,
    });
    let mut given = 0_i64;
    while tally.change(vec![Key::Int(given)], |_| {}).is_ok() {
        given += 1;
    }
    assert_eq!(given, 50_000);
}

#[test]
fn sums_of_many_rows_do_not_overflow() {
    // The parts of a day of two engines, each of 10^8 rows and more.
    let part = Amount {
        count: 200_000_000,
        rest: i128::from(i64::MAX),
        ..Amount::default()
    };
    let shape = Shape {
        counts: 0,
        amounts: 1,
    };
    let mut tally = Tally::new(shape);
    for _ in 0..2 {
        let sums = Sums {
            rows: part.count,
            counts: Vec::new(),
            amounts: vec![part.clone()],
        };
        tally.merge(vec![Key::Missing], sums).unwrap();
    }
    let groups = tally.finish();
    assert_eq!(groups[0].sums.amounts[0].sum(), 2 * i128::from(i64::MAX));
}
