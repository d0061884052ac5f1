//! What several pieces of a template make together: a time with its date, a list of values.

const WEEKDAYS: &[&str] = &["Fri", "Mon", "Sat", "Sun", "Thu", "Tue", "Wed"];
const MONTHS: &[&str] = &[
    "Apr", "Aug", "Dec", "Feb", "Jan", "Jul", "Jun", "Mar", "May", "Nov", "Oct", "Sep",
];
const ZONES: &[&str] = &[
    "AM", "CEST", "CET", "EDT", "EST", "GMT", "PDT", "PM", "PST", "UTC",
];

/// What stands before the reasons of the scheduler, which come in the order of their counts.
const REASONS: &str = "nodes are available: ";

/// The template with each time and each list of values as one placeholder, and the reasons of the
/// scheduler in one order.
pub(super) fn polish(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut dated = false;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let last = words.last().copied().unwrap_or_default();
        if word.starts_with("<time>") {
            dated = drop_date(&mut words);
            if words.last() == Some(&"<time>") {
                words.pop();
            }
        } else if last.ends_with("<time>")
            && (ZONES.contains(&word) || (dated && word == "<number>"))
        {
            continue;
        } else if goes_on(last, word) {
            words.pop();
        }
        words.push(word);
    }
    let text = words.join(" ");
    if text.contains(REASONS) {
        ordered(&text)
    } else {
        text
    }
}

/// Whether `last` is a value with a comma and `word` another of the same list.
fn goes_on(last: &str, word: &str) -> bool {
    last.strip_suffix(',').is_some_and(|value| {
        let one = value.rfind('<') == Some(0) && value.ends_with('>');
        one && word.starts_with(value)
    })
}

/// Takes away the day, the month and the year that end `words`; whether there were any.
fn drop_date(words: &mut Vec<&str>) -> bool {
    let mut from = words.len();
    let mut take = |most: usize, fits: &dyn Fn(&str) -> bool| {
        let start = from;
        while from > 0 && start - from < most && fits(words[from - 1].trim_end_matches(',')) {
            from -= 1;
        }
        from < start
    };
    let number = |word: &str| word == "<number>";
    take(2, &number);
    let month = take(1, &|word| MONTHS.contains(&word));
    if month {
        take(1, &number);
    }
    let weekday = take(1, &|word| WEEKDAYS.contains(&word));
    if month || weekday {
        words.truncate(from);
    }
    month || weekday
}

/// `text` with the first list of reasons sorted, and without what is said of preemption.
fn ordered(text: &str) -> String {
    let text = text.split(" preemption: ").next().unwrap_or(text);
    let Some(at) = text.find(REASONS) else {
        return text.to_owned();
    };
    let (head, list) = text.split_at(at + REASONS.len());
    let end = list
        .find(". ")
        .unwrap_or_else(|| list.trim_end_matches(['.', '"']).len());
    let (list, rest) = list.split_at(end);
    let mut reasons: Vec<_> = list.split(", ").collect();
    reasons.sort_unstable();
    reasons.dedup();
    format!("{head}{}{rest}", reasons.join(", "))
}
