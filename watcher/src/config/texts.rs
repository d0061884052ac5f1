//! How single values of the configuration are written.

use std::{fmt::Display, net::SocketAddr, str::FromStr};

use jiff::SignedDuration;

use hindsight_run::Kind;

use crate::selector::{ParseSelectorError, Selector};

/// A span as Go writes it: `150s`, `2m30s`, `-1ns`, `1.5h`, and `0`.
pub(crate) fn duration(text: &str) -> Result<SignedDuration, String> {
    if text == "0" {
        return Ok(SignedDuration::ZERO);
    }
    text.parse().map_err(|_detail| {
        format!("`{text}` is not a duration; write for example `30s`, `10m` or `2h30m`")
    })
}

/// Bytes: a number, or one of KiB, MiB, GiB or TiB.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(end) => text.split_at(end),
        None => (text, ""),
    };
    let shift = match unit.trim() {
        "" | "B" => Some(0),
        "KiB" | "Ki" => Some(10),
        "MiB" | "Mi" => Some(20),
        "GiB" | "Gi" => Some(30),
        "TiB" | "Ti" => Some(40),
        _ => None,
    };
    let bytes = number.parse::<u64>().ok().zip(shift);
    bytes
        .and_then(|(number, shift)| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("`{text}` is no size; write for example `512MiB` or `1GiB`"))
}

/// How many a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok();
    rate.filter(|rate| rate.is_finite() && (0.001..=100_000.0).contains(rate))
        .ok_or_else(|| format!("`{text}` is no rate; write for example `50` or `0.5`"))
}

pub(super) fn positive(text: &str) -> Result<SignedDuration, String> {
    let span = duration(text)?;
    if span > SignedDuration::ZERO {
        Ok(span)
    } else {
        Err(format!("`{text}` is not positive"))
    }
}

pub(super) fn server(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some(("http" | "https", rest)) if !rest.is_empty() => Ok(text.to_owned()),
        _ => Err(format!(
            "`{text}` is not the address of a server; want `http://host:port` or \
             `https://host:port`"
        )),
    }
}

pub(super) fn listen(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_detail| {
        format!("`{text}` is no address; write for example `127.0.0.1:9091`, or `off`")
    })
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.len() <= 63 && text.chars().all(legal) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "`{text}` is no namespace; want one, in small letters, digits and `-`"
        ))
    }
}

pub(super) fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect())
}

pub(super) fn percent(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(number @ 0..=100) => Ok(number),
        _ => Err(format!("`{text}` is not a whole number from 0 to 100")),
    }
}

/// What its own type reads.
pub(super) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Kinds by plural or kind, alone (then of every group that has it) or with `.group`.
pub(super) fn kinds(text: &str) -> Result<Vec<&'static Kind>, String> {
    let all = Kind::all();
    let mut wanted: Vec<&'static Kind> = Vec::new();
    for item in list(text)? {
        let (name, group) = match item.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (item.as_str(), None),
        };
        let named = |kind: &&'static Kind| {
            (kind.plural.eq_ignore_ascii_case(name) || kind.kind.eq_ignore_ascii_case(name))
                && group.is_none_or(|group| kind.group == group)
        };
        let found: Vec<&'static Kind> = all.iter().copied().filter(named).collect();
        if found.is_empty() {
            let known: Vec<String> = all
                .iter()
                .map(|kind| format!("{}.{}", kind.plural, kind.group))
                .collect();
            return Err(format!(
                "`{item}` is no kind of run; want any of {}",
                known.join(", ")
            ));
        }
        wanted.extend(found);
    }
    Ok(all
        .into_iter()
        .filter(|kind| wanted.contains(kind))
        .collect())
}

/// Labels as the API server takes them.
pub(super) fn labels(text: &str) -> Result<String, String> {
    let selector: Selector = text
        .parse()
        .map_err(|error: ParseSelectorError| error.to_string())?;
    Ok(selector.to_string())
}
