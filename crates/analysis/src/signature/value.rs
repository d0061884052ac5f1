//! Values that differ from run to run: times, addresses, numbers with units, hashes.
//!
//! Each function looks at the beginning of a text and says how many bytes the value has.

/// How many bytes of `text` are ASCII digits.
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// A number of `least` to `most` digits.
fn number_of(text: &[u8], least: usize, most: usize) -> Option<usize> {
    let length = digits(text);
    (least..=most).contains(&length).then_some(length)
}

/// A date, a time of day, or both, with their zone.
pub(super) fn time(text: &[u8]) -> Option<usize> {
    let Some(date) = date(text) else {
        return clock(text);
    };
    let rest = &text[date..];
    let joined = matches!(rest.first(), Some(b'T' | b't' | b' ' | b'_' | b':'));
    match joined.then(|| clock(&rest[1..])).flatten() {
        Some(clock) => Some(date + 1 + clock),
        None => Some(date),
    }
}

fn date(text: &[u8]) -> Option<usize> {
    let first = number_of(text, 2, 4)?;
    let separator = *text.get(first)?;
    if !matches!(separator, b'-' | b'/') {
        return None;
    }
    let rest = &text[first + 1..];
    // `01/May/2024` of web servers.
    let letters = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let second = match (first, letters) {
        (4, 0) => number_of(rest, 1, 2)?,
        (2, 3) => 3,
        _ => return None,
    };
    if rest.get(second) != Some(&separator) {
        return None;
    }
    let rest = &rest[second + 1..];
    let third = if first == 4 {
        number_of(rest, 1, 2)?
    } else {
        number_of(rest, 4, 4)?
    };
    let length = first + second + third + 2;
    let goes_on = text
        .get(length)
        .is_some_and(|next| next.is_ascii_alphanumeric() && !matches!(next, b'T' | b't'));
    (!goes_on).then_some(length)
}

/// Hours, minutes and seconds; with the fraction and the zone.
fn clock(text: &[u8]) -> Option<usize> {
    let mut at = number_of(text, 1, 2)?;
    for _ in 0..2 {
        if !matches!(text.get(at), Some(b':' | b'_')) {
            return None;
        }
        at += 1 + number_of(&text[at + 1..], 2, 2)?;
    }
    if matches!(text.get(at), Some(b'.' | b',' | b'_')) {
        let fraction = digits(&text[at + 1..]);
        at += if fraction > 0 { 1 + fraction } else { 0 };
    }
    match text.get(at) {
        Some(b'Z' | b'z') => at += 1,
        Some(b'+' | b'-') => {
            let zone = &text[at + 1..];
            if let Some(length) = number_of(zone, 4, 4) {
                at += 1 + length;
            } else if number_of(zone, 2, 2).is_some() && zone.get(2) == Some(&b':') {
                at += 1 + 3 + digits(&zone[3..]).min(2);
            }
        }
        _ => {}
    }
    let goes_on = text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (!goes_on).then_some(at)
}

/// An address of IPv4 or IPv6, perhaps with a port or a prefix length; all of `text`.
pub(super) fn is_address(text: &str) -> bool {
    let host = text
        .rsplit_once('/')
        .filter(|(_, bits)| is_digits(bits))
        .map_or(text, |(host, _)| host);
    let v4 = host
        .rsplit_once(':')
        .filter(|(_, port)| is_digits(port))
        .map_or(host, |(host, _)| host);
    v4.parse::<std::net::Ipv4Addr>().is_ok()
        || (host.len() > 2 && host.parse::<std::net::Ipv6Addr>().is_ok())
        || is_v6_with_port(host)
}

/// `fd00::1:8080` as programs without brackets print it.
fn is_v6_with_port(text: &str) -> bool {
    text.contains("::")
        && text.rsplit_once(':').is_some_and(|(host, port)| {
            is_digits(port) && host.len() > 2 && host.parse::<std::net::Ipv6Addr>().is_ok()
        })
}

pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The length of a UUID at the beginning of `text`.
pub(super) fn uuid(text: &[u8]) -> Option<usize> {
    let candidate = text.get(..36)?;
    let fits = candidate.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let goes_on = text.get(36).is_some_and(u8::is_ascii_alphanumeric);
    (fits && !goes_on).then_some(36)
}

/// Digits, with what makes one number of several groups: `1.22.3`.
pub(super) fn number(text: &[u8]) -> usize {
    let mut at = digits(text);
    loop {
        let dot = text.get(at) == Some(&b'.');
        let more = if dot { digits(&text[at + 1..]) } else { 0 };
        if more == 0 {
            return at;
        }
        at += 1 + more;
    }
}

/// Groups of three digits behind a number, each after a comma.
pub(super) fn thousands(text: &[u8]) -> usize {
    let mut at = 0;
    while text.get(at) == Some(&b',') && number_of(&text[at + 1..], 3, 3).is_some() {
        at += 4;
    }
    at
}

/// What a unit behind a number measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Time,
    Size,
}

/// The unit that letters behind a number are.
pub(super) fn unit(letters: &str) -> Option<Unit> {
    match letters {
        "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" | "d" | "sec" | "secs" | "min"
        | "mins" => Some(Unit::Time),
        "B" | "b" | "k" | "K" | "M" | "G" | "T" | "Ki" | "Mi" | "Gi" | "Ti" | "kB" | "KB"
        | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB" | "TiB" | "kb" | "mb" | "gb" => {
            Some(Unit::Size)
        }
        _ => None,
    }
}

/// The unit that is the next word of `text`, with the space before it.
pub(super) fn spaced_unit(text: &str) -> Option<(usize, Unit)> {
    let rest = text.strip_prefix(' ')?;
    let length = rest
        .find(|next: char| !next.is_alphanumeric())
        .unwrap_or(rest.len());
    let word = &rest[..length];
    let unit = match word {
        "second" | "seconds" | "minute" | "minutes" | "hour" | "hours" | "day" | "days" => {
            Unit::Time
        }
        "byte" | "bytes" => Unit::Size,
        _ if word.len() > 1 => unit(word)?,
        _ => return None,
    };
    Some((1 + length, unit))
}

/// Numbers with units, in a row: `1h0m0s`, `512Mi`.
pub(super) fn measure(text: &str) -> Option<(usize, Unit)> {
    let mut at = 0;
    let mut measured = None;
    loop {
        let number = number(&text.as_bytes()[at..]);
        if number == 0 {
            break;
        }
        let rest = &text[at + number..];
        let letters = rest
            .find(|next: char| !next.is_alphabetic())
            .unwrap_or(rest.len());
        let unit = unit(&rest[..letters])?;
        measured = Some(unit);
        at += number + letters;
    }
    measured.map(|unit| (at, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_length_they_are_printed_with() {
        for text in [
            "2024-05-01T12:34:56Z",
            "2024-05-01T12:34:56.123456789+02:00",
            "2024-05-01 12:34:56,123",
            "2024/05/01 12:34:56",
            "12:34:56.789",
            "01/May/2024:12:34:56",
            "2024-05-01",
            "2025-03-12T11_23_07_123Z",
        ] {
            assert_eq!(time(text.as_bytes()), Some(text.len()), "{text}");
        }
        for text in ["12:34", "1/2", "2024", "10.0.0.1", "12-34-56"] {
            assert_eq!(time(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn addresses_and_measures_are_told_from_names() {
        for text in [
            "10.0.0.1",
            "10.0.0.1:8080",
            "10.0.0.0/16",
            "fd00::1",
            "fd00:a1:b::3:8443",
            "::1",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in ["1.2.3", "std::io", "a:b", "::", "12:34"] {
            assert!(!is_address(text), "{text}");
        }
        assert_eq!(measure("1h0m0s"), Some((6, Unit::Time)));
        assert_eq!(measure("512Mi,"), Some((5, Unit::Size)));
        assert_eq!(measure("3rd"), None);
        assert_eq!((number(b"1.22.3 x"), thousands(b",000,000 x")), (6, 8));
    }
}
