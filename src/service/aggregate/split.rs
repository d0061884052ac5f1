//! Lists of groups and measures, in one text or several.

use super::{Error, invalid};
use crate::filter::commas;

/// The items of all texts, without blanks around them and without empty ones.
pub(super) fn items<'a>(texts: &'a [String], of: &str) -> Result<Vec<&'a str>, Error> {
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
