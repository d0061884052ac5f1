//! How numbers, sizes and durations are read and written.

use super::*;

#[track_caller]
fn reads<T: Value>(text: &str, shown: &str) -> T {
    let value = T::read(text).unwrap_or_else(|bad| panic!("{bad}"));
    assert_eq!(value.show(), shown);
    value
}

#[track_caller]
fn refuses<T: Value>(text: &str, why: &str) {
    let bad = T::read(text).err().expect("it is refused").to_string();
    assert_eq!(bad, format!("`{text}` {why}"));
}

#[test]
fn numbers_are_whole_and_between_their_bounds() {
    assert_eq!(reads::<Number<1, 5000>>("5_000", "5000").as_u32(), 5000);
    for bad in ["0", "5001", "-1", "1.5", "", "many"] {
        let why = "is not a valid number; want a whole number from 1 to 5000";
        refuses::<Number<1, 5000>>(bad, why);
    }
    refuses::<Number<1>>("0", "is not a valid number; want a whole number from 1");
    assert_eq!(Number::<1, 5>::nearest(9).get(), 5);
}

#[test]
fn sizes_are_read_with_their_unit_and_written_in_the_largest_that_divides_them() {
    for (text, bytes, shown) in [
        ("32MiB", 33_554_432, "32MiB"),
        ("32Mi", 33_554_432, "32MiB"),
        ("25MB", 25_000_000, "25MB"),
        ("33554432", 33_554_432, "32MiB"),
        ("1kb", 1_000, "1kB"),
        ("7", 7, "7"),
        ("0", 0, "0"),
        ("1536KiB", 1_572_864, "1536KiB"),
        ("100B", 100, "100"),
    ] {
        assert_eq!(reads::<ByteSize>(text, shown).get(), bytes);
    }
    for bad in [
        "",
        "MiB",
        "32 MiB",
        "1.5GiB",
        "-1",
        "32MiBs",
        "99999999999TiB",
    ] {
        let why = "is not a valid size; want for example `32MiB`, `25MB` or a number of bytes";
        refuses::<ByteSize>(bad, why);
    }
    refuses::<ByteSize<1024, 2_147_483_648>>("1B", "is out of range; want 1KiB to 2GiB");
}

#[test]
fn durations_are_read_and_written_alike() {
    for text in ["500ms", "30s", "10m", "1h30m", "7d", "0s", "1d1ms", "3us"] {
        reads::<Span>(text, text);
        reads::<SignedDuration>(text, text);
    }
    for (text, shown) in [
        ("90s", "1m30s"),
        ("1.5h", "1h30m"),
        ("0.25s", "250ms"),
        ("720h", "30d"),
        ("0", "0s"),
        ("5µs", "5us"),
    ] {
        reads::<Span>(text, shown);
    }
    assert_eq!(
        reads::<Span>("2m30s", "2m30s").get(),
        Duration::from_secs(150)
    );
    let negative = reads::<SignedDuration>("-1ns", "-1ns");
    assert_eq!(negative, SignedDuration::from_nanos(-1));
    refuses::<Span<1>>("0s", "is too short; want at least `1ms`");
}

#[test]
fn what_is_not_a_duration_is_refused() {
    for bad in [
        "",
        "-",
        "30",
        "s",
        "30 s",
        "1m1h",
        "1s1s",
        "1h ",
        "1.h",
        ".5h",
        "1.2.3s",
        "1.0000000001s",
        "1h30",
        "soon",
        "18446744073709551615d",
    ] {
        let why = format!("is not a valid duration; want {WANT_SPAN}");
        refuses::<Span>(bad, &why);
        refuses::<SignedDuration>(bad, &why);
    }
    refuses::<Span>("-1s", &format!("is not a valid duration; want {WANT_SPAN}"));
}
