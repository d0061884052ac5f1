//! Which parts of a name are drawn anew for each run.
//!
//! A name is read in segments of letters and digits. A segment without digits is a word and stays,
//! except for the five consonants that Kubernetes adds to `generateName`.

/// What Kubernetes draws suffixes from (`k8s.io/apimachinery/pkg/util/rand`).
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Words of five letters that consist of letters of [`SUFFIX`] all the same.
const NOT_SUFFIXES: &[&str] = &[
    "https", "http2", "html5", "xhtml", "grpcs", "mysql", "pgsql",
];

/// Names with digits in them that are words.
const WORDS: &[&str] = &[
    "amd64", "arm32", "arm64", "armv7", "armv8", "base16", "base32", "base58", "base64", "bz2",
    "crc32", "ec2", "f32", "f64", "float16", "float32", "float64", "h2", "h2c", "http1", "http2",
    "i128", "i16", "i32", "i386", "i64", "i686", "i8", "int16", "int32", "int64", "int8", "ipv4",
    "ipv6", "java8", "jq1", "lz4", "md5", "mp3", "mp4", "oauth2", "p12", "psycopg2", "py2", "py3",
    "python2", "python3", "rs256", "s3", "sha1", "sha224", "sha256", "sha384", "sha512", "u128",
    "u16", "u32", "u64", "u8", "uint16", "uint32", "uint64", "uint8", "utf16", "utf32", "utf8",
    "win32", "win64", "x509", "x64", "x86",
];

/// What one segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    /// Stays as it is.
    Word,
    Id,
    Hash,
    /// So many letters that stay, then a number.
    Numbered(usize),
}

/// Judges a segment of ASCII letters and digits with at least one letter. `suffix` is whether a
/// hyphen stands before it.
pub(super) fn segment(text: &str, suffix: bool) -> Segment {
    let bytes = text.as_bytes();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    let drawn = bytes.iter().all(|byte| SUFFIX.contains(byte));
    if suffix && drawn && bytes.len() == 5 && !NOT_SUFFIXES.contains(&text) {
        return Segment::Id;
    }
    let hex = bytes.iter().all(u8::is_ascii_hexdigit);
    if digits == 0 {
        return if hex && bytes.len() >= 16 {
            Segment::Hash
        } else {
            Segment::Word
        };
    }
    if is_word(text) {
        return Segment::Word;
    }
    if hex && bytes.len() >= 7 {
        return Segment::Hash;
    }
    if suffix && drawn && (8..=10).contains(&bytes.len()) {
        return Segment::Id;
    }
    let letters = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    if letters + digits == bytes.len() && letters > 0 {
        return numbered(text, letters, digits, suffix);
    }
    mixed(bytes, digits)
}

fn is_word(text: &str) -> bool {
    text.len() <= 8
        && WORDS
            .binary_search(&text.to_ascii_lowercase().as_str())
            .is_ok()
}

/// Letters with a number behind them.
fn numbered(text: &str, letters: usize, digits: usize, suffix: bool) -> Segment {
    let upper = text[..letters]
        .bytes()
        .all(|byte| byte.is_ascii_uppercase());
    if upper && letters <= 6 && digits >= 2 && text.len() <= 8 {
        // A code of an error: `E0308`, `TS2304`.
        return Segment::Word;
    }
    if text.starts_with(['v', 'V']) && letters == 1 && digits <= 2 {
        return Segment::Word;
    }
    if suffix && text.len() == 5 && digits >= 2 {
        return Segment::Id;
    }
    Segment::Numbered(letters)
}

/// Letters and digits in any order that is not letters before digits.
fn mixed(bytes: &[u8], digits: usize) -> Segment {
    let mut longest = 0;
    let mut run = 0;
    for byte in bytes {
        run = if byte.is_ascii_alphabetic() {
            run + 1
        } else {
            0
        };
        longest = longest.max(run);
    }
    let short = bytes.len() < 5 && bytes[0].is_ascii_alphabetic();
    // `e2e`, `i18n`; `S3Client`, `Log4jLogger`.
    if short || (digits <= 2 && longest >= 4) {
        Segment::Word
    } else {
        Segment::Id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_sorted() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn words_stay_and_what_is_drawn_goes() {
        let judge = |text| segment(text, true);
        for word in [
            "build", "sha256", "E0308", "TS2304", "v2", "e2e", "k8s", "S3Client", "https",
        ] {
            assert_eq!(judge(word), Segment::Word, "{word}");
        }
        for id in ["x7k2p", "wvzkt", "7d9f8bwxc5", "q1W2e3R4t5Z6"] {
            assert_eq!(judge(id), Segment::Id, "{id}");
        }
        assert_eq!(judge("3f2a9c1"), Segment::Hash);
        assert_eq!(judge("worker12"), Segment::Numbered(6));
        assert_eq!(segment("wvzkt", false), Segment::Word);
    }
}
