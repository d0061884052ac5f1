//! What the file takes, and what it refuses with which words.

use super::*;

const RUN_AT: &str = "run_at = '30 3 * * * Europe/Berlin'\n";

fn file(more: &str) -> String {
    format!("{RUN_AT}{more}\n[default]\nkeep_for = '30d'\n")
}

#[test]
fn policies_are_read_in_order_and_the_default_is_the_last() {
    let text = file(
        "pause = '1s'\n[[policies]]\nname = 'failed'\nwhen = 'parent == \"shop\"'\n\
         outcomes = ['failed', 'timeout']\nkeep_for = '90d'\nkeep_last = 5\n\
         [[policies]]\nname = 'last'\noutcomes = ['succeeded']\nkeep_last = 2\n\
         [namespaces.shop.failed]\nkeep_for = '7d'\n[namespaces.shop.default]\nkeep_for = '1d'\n",
    );
    let rules = Rules::parse(&text).unwrap();
    let names: Vec<_> = rules.policies.iter().map(|policy| &policy.name).collect();
    assert_eq!(names, ["failed", "last", "default"]);
    assert!(rules.at_start && rules.pause == Duration::from_secs(1));
    let [failed, last, _] = &rules.policies[..] else {
        panic!("{rules:?}")
    };
    let days = |days: u64| KeepFor::Age(Duration::from_secs(days * 86_400));
    assert_eq!(failed.terms("ci").keep_for, days(90));
    assert_eq!(failed.terms("shop").keep_for, days(7));
    assert_eq!(failed.terms("shop").keep_last, NonZeroU32::new(5));
    assert_eq!(last.terms("ci").keep_for, KeepFor::Age(Duration::ZERO));
    let at = "2026-03-01T00:00:00Z".parse().unwrap();
    let next = rules.run_at.find_next(cronexpr::MakeTimestamp(at)).unwrap();
    assert_eq!(next.timestamp().to_string(), "2026-03-01T02:30:00Z");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_value() {
    let policy = |more: &str| file(&format!("[[policies]]\nname = 'p'\n{more}\n"));
    let kept = "keep_for = '7d'\n";
    for (text, said) in [
        (file("colour = 'red'"), "line 2: unknown field `colour`"),
        (
            policy("whne = 'true'\nkeep_for = '7d'"),
            "unknown field `whne`",
        ),
        (
            policy("outcomes = ['faild']\nkeep_for = '7d'"),
            "unknown variant `faild`",
        ),
        (
            policy("outcomes = []\nkeep_for = '7d'"),
            "`p`: outcomes is empty",
        ),
        (policy(kept), "`p`: it has neither `when` nor `outcomes`"),
        (policy("when = ' '\nkeep_for = '7d'"), "`p`: when is empty"),
        (
            policy("when = 'nothing == 1'\nkeep_for = '7d'"),
            "when `nothing == 1`",
        ),
        (
            policy("when = 'parent =='\nkeep_for = '7d'"),
            "when `parent ==`",
        ),
        (
            policy("when = 'parent == \"a\"'"),
            "`p`: give keep_for, keep_last or both",
        ),
        (
            policy("outcomes = ['failed']\nkeep_for = '7 days'"),
            "`7 days`",
        ),
        (
            policy("outcomes = ['failed']\nkeep_for = '0s'"),
            "`0s` is too short",
        ),
        (
            policy("outcomes = ['failed']\nkeep_last = 0"),
            "keep_last is 0",
        ),
        (
            policy("outcomes = ['failed']\nkeep_for = 'forever'\nkeep_last = 1"),
            "keep_last says nothing",
        ),
        (file("[[policies]]\n"), "missing field `name`"),
        (
            file("[[policies]]\nname = 'default'\noutcomes = ['failed']"),
            "taken by",
        ),
        (
            file("[[policies]]\nname = 'P'\noutcomes = ['failed']"),
            "`P`: name",
        ),
        (
            file(&"[[policies]]\nname = 'p'\noutcomes = ['failed']\nkeep_last = 1\n".repeat(2)),
            "`p` is there twice",
        ),
    ] {
        let why = Rules::parse(&text).unwrap_err();
        assert!(why.contains(said), "{text}: {why}");
    }
}

#[test]
fn what_is_wrong_beside_policies_is_said_too() {
    for (text, said) in [
        (RUN_AT.to_owned(), "missing field `default`"),
        (
            "[default]\nkeep_for = '7d'\n".to_owned(),
            "missing field `run_at`",
        ),
        (file("batch = 0"), "batch is not 1 to 1000"),
        (
            "run_at = '7 7 * * 8 UTC'\n[default]\nkeep_for = '7d'\n".to_owned(),
            "run_at `7 7 * * 8 UTC` is no cron expression",
        ),
        (
            "run_at = '7 7 * * 0'\n[default]\nkeep_for = '7d'\n".to_owned(),
            "with a time zone",
        ),
        (
            file("[namespaces.shop.default]\nkeep_for = '31d'\n"),
            "keep_for `31d` is longer than the `30d` of the policy",
        ),
        (
            file("[namespaces.shop.default]\nkeep_for = 'forever'\n"),
            "keep_for `forever` is longer than the `30d`",
        ),
        (
            file("[namespaces.shop.default]\nkeep_last = 3\n"),
            "keep_last 3 is more than the 0",
        ),
        (
            file("[namespaces.shop.other]\nkeep_for = '1d'\n"),
            "there is no such policy",
        ),
        (file("[namespaces.shop.default]\n"), "give keep_for"),
    ] {
        let why = Rules::parse(&text).unwrap_err();
        assert!(why.contains(said), "{text}: {why}");
    }
}
