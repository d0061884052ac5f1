//! JSON without its insignificant white space.

/// Drops the white space between tokens of `json`, which must be valid JSON; everything else
/// stays byte for byte.
#[must_use]
pub fn minify(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(quote) = rest.find('"') {
        push_without_space(&mut out, &rest[..quote]);
        let text = &rest[quote..];
        let end = end_of_string(text);
        out.push_str(&text[..end]);
        rest = &text[end..];
    }
    push_without_space(&mut out, rest);
    out
}

fn push_without_space(out: &mut String, tokens: &str) {
    out.extend(tokens.split([' ', '\t', '\n', '\r']));
}

/// The length of the string literal that `text` begins with.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
