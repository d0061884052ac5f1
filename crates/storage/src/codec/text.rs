//! Text as the tables hold it.
//!
//! PostgreSQL has no U+0000 in text, and SQLite's functions stop at one, so U+0000 is kept as
//! U+0001 U+0001 and U+0001 as U+0001 U+0002. After U+0001 other characters are the numbers of
//! [`words`], in columns that have them. Other text is kept as it is. Equality, order and
//! prefixes of kept texts are those of the texts; suffixes and parts are too, unless the one
//! sought begins in the middle of an escape, which [`has_sound_parts`] rules out.

pub(crate) mod words;

use std::borrow::Cow;

use crate::seam::Error;

const NUL: char = '\0';
const ESCAPE: char = '\u{1}';

/// What a column keeps in the place of a text that another column has; no text is kept so.
pub(crate) const SAME: &str = "\u{1}";

/// What a column of times keeps where there is none and null means that another column has it.
pub(crate) const NEVER: i64 = -i64::MAX;

/// The text to keep for `text`.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains([NUL, ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            NUL => kept.push_str("\u{1}\u{1}"),
            ESCAPE => kept.push_str("\u{1}\u{2}"),
            c => kept.push(c),
        }
    }
    Cow::Owned(kept)
}

/// The text that was kept as `kept`.
///
/// # Errors
/// If no text is kept so.
pub(crate) fn shown(kept: String) -> Result<String, Error> {
    if !kept.contains(ESCAPE) {
        return Ok(kept);
    }
    let mut text = String::with_capacity(kept.len());
    let mut chars = kept.chars();
    while let Some(c) = chars.next() {
        if c != ESCAPE {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('\u{1}') => text.push(NUL),
            Some('\u{2}') => text.push(ESCAPE),
            other => match other.and_then(words::of) {
                Some(word) => text.push_str(word),
                None => {
                    return Err(Error::Corrupt(format!(
                        "text with a broken escape: {kept:?}"
                    )));
                }
            },
        }
    }
    Ok(text)
}

/// Whether looking for `part` inside or at the end of kept texts is looking for it in the texts.
pub(crate) fn has_sound_parts(part: &str) -> bool {
    !part.contains(['\0', '\u{1}', '\u{2}'])
}

/// The first text, in the order of bytes, above all that start with `prefix`; none if there is
/// no text above them.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut next = prefix.to_owned();
    while let Some(last) = next.pop() {
        let above = match last {
            char::MAX => continue,
            '\u{d7ff}' => '\u{e000}',
            c => char::from_u32(u32::from(c) + 1).expect("only surrogates and the end have gaps"),
        };
        next.push(above);
        return Some(next);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: [&str; 12] = [
        "",
        "a",
        "ab",
        "\0",
        "\u{1}",
        "\u{2}",
        "a\0",
        "a\u{1}b",
        "\0\u{1}",
        "\u{1}\u{1}",
        "\u{1}\u{2}",
        "é\u{10ffff}",
    ];

    #[test]
    fn kept_text_comes_back_and_has_no_nul() {
        for text in SAMPLES {
            let kept = stored(text).into_owned();
            assert!(!kept.contains('\0'));
            assert_eq!(shown(kept).unwrap(), text);
        }
        assert!(shown("\u{1}".to_owned()).is_err());
        assert!(shown("\u{1}x".to_owned()).is_err());
    }

    #[test]
    fn kept_text_keeps_order_prefixes_and_sound_parts() {
        for a in SAMPLES {
            for b in SAMPLES {
                let (x, y) = (stored(a), stored(b));
                assert_eq!(x.cmp(&y), a.cmp(b), "order of {a:?} and {b:?}");
                assert_eq!(
                    x.starts_with(&*y),
                    a.starts_with(b),
                    "{a:?} starts with {b:?}"
                );
                if has_sound_parts(b) {
                    assert_eq!(x.ends_with(&*y), a.ends_with(b), "{a:?} ends with {b:?}");
                    assert_eq!(x.contains(&*y), a.contains(b), "{a:?} contains {b:?}");
                }
                let above = after_prefix(b);
                let within = a >= b && above.as_deref().is_none_or(|above| a < above);
                assert_eq!(
                    within,
                    a.starts_with(b),
                    "{a:?} is between {b:?} and {above:?}"
                );
            }
        }
    }
}
