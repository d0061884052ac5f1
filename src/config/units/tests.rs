//! How sizes and durations are read and written.

use super::*;

#[test]
fn sizes_are_read_with_their_unit_and_written_in_the_largest_that_divides_them() {
    let seen: Vec<_> = [
        "32MiB", "25MB", "33554432", "1kb", "7", "0", "1536KiB", "100B",
    ]
    .map(|text| {
        text.parse::<ByteSize>()
            .map(|size| (size.get(), size.to_string()))
    })
    .into_iter()
    .collect::<Result<_, _>>()
    .unwrap();
    let expected = [
        (33_554_432, "32MiB"),
        (25_000_000, "25MB"),
        (33_554_432, "32MiB"),
        (1_000, "1kB"),
        (7, "7"),
        (0, "0"),
        (1_572_864, "1536KiB"),
        (100, "100"),
    ];
    assert_eq!(seen, expected.map(|(bytes, text)| (bytes, text.to_owned())));
}

#[test]
fn durations_are_read_and_written_alike() {
    for text in ["500ms", "30s", "10m", "1h30m", "7d", "0s", "1d1ms"] {
        assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
    }
    assert_eq!("90s".parse::<Span>().unwrap().to_string(), "1m30s");
    assert_eq!(
        "720h".parse::<Span>().unwrap().get(),
        Duration::from_secs(720 * 3600)
    );
}

#[test]
fn what_is_not_a_size_or_duration_is_refused() {
    for text in [
        "",
        "MiB",
        "32 MiB",
        "1.5GiB",
        "-1",
        "32MiBs",
        "99999999999TiB",
    ] {
        let bad = text.parse::<ByteSize>().unwrap_err().to_string();
        assert_eq!(
            bad,
            format!("`{text}` is not a size; write `32MiB`, `25MB` or a number of bytes")
        );
    }
    for text in [
        "",
        "30",
        "s",
        "30 s",
        "1m1h",
        "1s1s",
        "-1s",
        "1h ",
        "1.5h",
        "18446744073709551615d",
    ] {
        let bad = text.parse::<Span>().unwrap_err().to_string();
        assert_eq!(
            bad,
            format!("`{text}` is not a duration; write `30s`, `10m` or `1h`")
        );
    }
}
