//! Words of commands that a reader copies.

/// A text as one word of a shell.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_word_whatever_is_in_it() {
        assert_eq!(quoted("a/results/b-1.c"), "a/results/b-1.c");
        assert_eq!(quoted("p95(duration)"), "'p95(duration)'");
        assert_eq!(quoted("$(x)'y"), r"'$(x)'\''y'");
        assert_eq!(quoted(""), "''");
    }
}
