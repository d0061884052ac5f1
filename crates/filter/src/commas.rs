//! Lists in one text: commas separate, except inside brackets and quotes.

/// The items of a text.
#[derive(Debug)]
pub struct Items<'a> {
    /// Where each begins, in bytes, and its text, with the blanks around it.
    pub all: Vec<(usize, &'a str)>,
    /// Whether the text ends inside brackets or quotes.
    pub open: bool,
}

/// Takes a text apart.
#[must_use]
pub fn items(text: &str) -> Items<'_> {
    let mut all = Vec::new();
    let mut begin = 0;
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), c) if end == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                all.push((begin, &text[begin..at]));
                begin = at + 1;
            }
            (None, _) => {}
        }
    }
    all.push((begin, &text[begin..]));
    let open = quote.is_some() || depth > 0;
    Items { all, open }
}

#[cfg(test)]
mod tests {
    use super::items;

    #[test]
    fn commas_separate_only_outside_of_brackets_and_quotes() {
        for (text, all) in [
            ("", vec![""]),
            ("a, b", vec!["a", " b"]),
            (r#"labels["a,b"],c"#, vec![r#"labels["a,b"]"#, "c"]),
            ("f(a, [b, c]),", vec!["f(a, [b, c])", ""]),
            (r"'it\'s, one',two", vec![r"'it\'s, one'", "two"]),
        ] {
            let found = items(text);
            let texts: Vec<_> = found.all.iter().map(|(_, text)| *text).collect();
            assert_eq!(texts, all, "{text}");
            assert!(!found.open, "{text}");
            for (at, part) in found.all {
                assert!(text[at..].starts_with(part));
            }
        }
        assert!(items("f(a").open);
        assert!(items("'a").open);
    }
}
