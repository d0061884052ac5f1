//! Lists in one text: commas separate, but not inside brackets or quotes.

use super::{Error, invalid};

/// The items of all texts, without blanks around them and without empty ones.
pub(super) fn items<'a>(texts: &'a [String], of: &str) -> Result<Vec<&'a str>, Error> {
    let mut items = Vec::new();
    for text in texts {
        let mut start = 0;
        let mut open = 0_usize;
        let mut quote = None;
        let mut escaped = false;
        for (at, c) in text.char_indices() {
            match (quote, c) {
                (Some(_), _) if escaped => escaped = false,
                (Some(_), '\\') => escaped = true,
                (Some(end), c) if c == end => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '(' | '[' | '{') => open += 1,
                (None, ')' | ']' | '}') => open = open.saturating_sub(1),
                (None, ',') if open == 0 => {
                    items.push(&text[start..at]);
                    start = at + 1;
                }
                (None, _) => {}
            }
        }
        if quote.is_some() || open > 0 {
            return Err(invalid(format!(
                "{of} `{text}` ends inside quotes or brackets"
            )));
        }
        items.push(&text[start..]);
    }
    let items = items.into_iter().map(str::trim);
    Ok(items.filter(|item| !item.is_empty()).collect())
}
