//! Lists of groups and measures, in one text or several.

use super::{Error, invalid};
use hindsight_filter::commas;

/// Most bytes of all texts of a list.
const MAX_BYTES: usize = 20_000;

/// How long all texts are, with what separates them.
pub(super) fn bytes(texts: &[String]) -> usize {
    texts.iter().map(|text| text.len() + 1).sum()
}

/// The items of all texts, without blanks around them and without empty ones.
pub(super) fn items<'a>(texts: &'a [String], of: &str) -> Result<Vec<&'a str>, Error> {
    let bytes = bytes(texts);
    if bytes > MAX_BYTES {
        return Err(invalid(format!(
            "{of} has {bytes} bytes, at most {MAX_BYTES} are read"
        )));
    }
    let mut items = Vec::new();
    for text in texts {
        let found = commas::items(text);
        if found.open {
            return Err(invalid(format!(
                "{of} `{text}` ends inside quotes or brackets"
            )));
        }
        items.extend(found.all.into_iter().map(|(_, item)| item.trim()));
    }
    items.retain(|item| !item.is_empty());
    Ok(items)
}
