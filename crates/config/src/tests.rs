//! A program of a few keys, from its sources to its settings.

use std::{net::SocketAddr, path::PathBuf};

use clap::Command;
use jiff::SignedDuration;
use serde::Deserialize;

use crate::{File, Number, Problems, Program, Reader, Secret, Settings as _, Sources, Span};

crate::choice! {
    /// The dish of today.
    enum Dish: "DISH", "dish" {
        /// Soup of the day.
        Soup = "soup",
        /// Fish of the day.
        Fish = "fish",
    }
}

crate::settings! {
    /// The settings of a kitchen.
    struct Kitchen;

    ["Opening"]
    /// Address of the door.
    /// It may be closed.
    door: SocketAddr = "127.0.0.1:80";
    /// Address of the back door, or `off`.
    back_door: Option<SocketAddr> = "127.0.0.1:81";
    /// Time from opening until closing.
    closes_in: Span = "8h";
    /// Time that food may be late.
    delay: SignedDuration = "0s", live;

    ["Food"]
    /// Dish | of the day.
    dish: Dish = "soup";
    /// Guests at a table.
    guests: Number<1, 8> = "4";
    /// Spices on the table.
    spices: Option<Vec<String>>;
    /// Serve guests at night.
    at_night: bool = "false";
    /// Path of the book of recipes.
    recipes: Option<PathBuf>;
    /// Recipe of the sauce.
    sauce: Option<Secret>;
}

const PROGRAM: Program = Program {
    keys: Kitchen::KEYS,
    variables: "KITCHEN_",
    flags: "",
    heading: None,
    without_flags: &[],
    tables: &["waiter"],
    foreign: &["KITCHEN_CAT", "KITCHEN_TEST_"],
    passed: &["GAS_"],
};

fn sources(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Sources {
    let owned = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    };
    Sources {
        file: Some(File {
            path: "/k.toml".to_owned(),
            text: Ok(file.to_owned()),
        }),
        env: owned(env),
        flags: owned(flags),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Waiter {
    name: String,
}

fn load(sources: &Sources) -> Result<(Kitchen, Vec<String>), Problems> {
    let mut reader = Reader::over(&PROGRAM, sources);
    let kitchen = Kitchen::read(&mut reader);
    let waiters = reader.tables("waiter", |waiter: Waiter| match waiter.name.as_str() {
        "" => Err("has no name".to_owned()),
        name => Ok(name.to_owned()),
    });
    let kitchen = reader.finish(kitchen, |_| Vec::new())?;
    Ok((kitchen, waiters))
}

#[track_caller]
fn loads(sources: &Sources) -> Kitchen {
    load(sources)
        .unwrap_or_else(|problems| panic!("{problems}"))
        .0
}

#[track_caller]
fn refuses(sources: &Sources, problems: &[&str]) {
    let seen = load(sources).unwrap_err().to_string();
    assert_eq!(seen.lines().collect::<Vec<_>>(), problems);
}

#[test]
fn flags_override_the_environment_which_overrides_the_file_which_overrides_defaults() {
    let kitchen = loads(&sources(
        "door = '127.0.0.1:1'\n\nguests = 2\nsauce = 'secret'\nback_door = 'off'\n",
        &[
            ("KITCHEN_DOOR", "127.0.0.1:2"),
            ("KITCHEN_DISH", " fish\n"),
            ("HOME", "/"),
        ],
        &[("door", "localhost:3"), ("spices", "salt, pepper")],
    ));
    let expected = r#"
door = "127.0.0.1:3"    # --door
back_door = "off"       # /k.toml line 5
closes_in = "8h"        # default
delay = "0s"            # default
dish = "fish"           # KITCHEN_DISH in environment
guests = 2              # /k.toml line 3
spices = "salt,pepper"  # --spices
at_night = false        # default
# recipes is not set    # default
sauce = "***"           # /k.toml line 4
"#;
    assert_eq!(kitchen.print(), expected.trim_start());
    assert_eq!((kitchen.dish, kitchen.back_door), (Dish::Fish, None));
    assert!(!format!("{kitchen:?}").contains("secret"));

    let again = loads(&sources(&kitchen.print(), &[], &[]));
    let different = again.differences(&kitchen);
    // What is not shown cannot be given back.
    assert_eq!(
        different.iter().map(|key| key.name).collect::<Vec<_>>(),
        ["sauce"]
    );
}

#[test]
fn all_problems_are_reported_at_once_also_of_values_that_are_overridden() {
    refuses(
        &sources(
            "dsh = 'fish'\nback-door = 'off'\nguests = [1]\nspices = [1]\ndoor = 'no'\nrecipes = ''\n",
            &[("KITCHEN_GUEST", "1"), ("KITCHEN_SAUCE", "a\u{FFFD}b")],
            &[
                ("door", "127.0.0.1:1"),
                ("at_night", "yes"),
                ("dish", "meat"),
                ("back_door", "x"),
            ],
        ),
        &[
            "dsh in /k.toml line 1: unknown key; did you mean `dish`?",
            "back-door in /k.toml line 2: unknown key; did you mean `back_door`?",
            "guests in /k.toml line 3: is an array; want a text, a decimal number, true or false",
            "spices in /k.toml line 4: is an array; want a text, a list of texts, a decimal number, \
             true or false",
            "KITCHEN_GUEST in environment: unknown variable; did you mean `KITCHEN_GUESTS`?",
            "KITCHEN_SAUCE in environment: is not UTF-8 text",
            "door in /k.toml line 5: `no` is not a valid address; want an IP address and a port, as \
             in `127.0.0.1:8080` or `[::]:8080`",
            "--back-door: `x` is not a valid address; want an IP address and a port, as in \
             `127.0.0.1:8080` or `[::]:8080`, or `off`",
            "--dish: `meat` is not a valid dish; want `soup` or `fish`",
            "--at-night: `yes` is neither `true` nor `false`",
            "recipes in /k.toml line 6: is empty; give a PATH, or leave it out",
        ],
    );
    refuses(
        &sources("[server]\nx = 1\n", &[], &[]),
        &[
            "server in /k.toml line 1: unknown key; there are door, back_door, closes_in, delay, \
             dish, guests, spices, at_night, recipes, sauce, waiter",
        ],
    );
}

#[test]
fn a_file_that_cannot_be_read_or_parsed_is_a_problem_among_others() {
    let mut missing = sources("", &[], &[("guests", "0")]);
    missing.file = Some(File {
        path: "/k.toml".to_owned(),
        text: Err("no such file".to_owned()),
    });
    refuses(
        &missing,
        &[
            "/k.toml: cannot be read: no such file",
            "--guests: `0` is not a valid number; want a whole number from 1 to 8",
        ],
    );
    let broken = sources(
        "dish = 'soup'\ndish = 'soup'\ndoor = \nguest = 1\n",
        &[],
        &[],
    );
    let seen = load(&broken).unwrap_err().to_string();
    let places: Vec<_> = seen
        .lines()
        .filter_map(|line| line.split(": ").next())
        .collect();
    let expected = [
        "/k.toml line 2",
        "/k.toml line 3",
        "guest in /k.toml line 4",
    ];
    assert_eq!(places, expected, "{seen}");
}

#[test]
fn tables_are_read_one_by_one() {
    let text = "guests = 1\n[[waiter]]\nname = 'Ann'\n[[waiter]]\nname = 'Bob'\n";
    let (kitchen, waiters) = load(&sources(text, &[], &[])).unwrap();
    assert_eq!(
        (kitchen.guests.get(), waiters),
        (1, vec!["Ann".to_owned(), "Bob".to_owned()])
    );
    refuses(
        &sources("[[waiter]]\nname = ''\n[[waiter]]\nnme = 'Bob'\n", &[], &[]),
        &[
            "waiter in /k.toml line 1: has no name",
            "waiter in /k.toml line 3: unknown field `nme`, expected `name`",
        ],
    );
    refuses(
        &sources("waiter = 'Ann'\n", &[], &[]),
        &["waiter in /k.toml line 1: is not a table; write `[[waiter]]`"],
    );
}

#[test]
fn variables_of_kubernetes_services_and_of_others_are_left_alone() {
    let names = [
        "KITCHEN_SERVICE_HOST",
        "KITCHEN_SERVICE_PORT",
        "KITCHEN_SERVICE_PORT_GRPC",
        "KITCHEN_PORT",
        "KITCHEN_PORT_8080_TCP",
        "KITCHEN_PORT_8080_TCP_ADDR",
        "KITCHEN_UI_PORT_80_TCP_PROTO",
        "KITCHEN_UI_SERVICE_HOST",
        "KITCHEN_CAT",
        "KITCHEN_TEST_X",
        "KITCHEN_CONFIG",
    ];
    let env = names.map(|name| (name, "tcp://10.0.0.1:8080"));
    loads(&sources("", &env, &[]));
    let wrong = sources("", &[("KITCHEN_DELAYS_PORT", "5432")], &[]);
    let seen = load(&wrong).unwrap_err().to_string();
    let start = "KITCHEN_DELAYS_PORT in environment: unknown variable; there are KITCHEN_DOOR, ";
    assert!(seen.starts_with(start), "{seen}");
    let passed = loads(&sources("", &[("GAS_TAP", "open")], &[]));
    assert_eq!(passed.given.passed()["GAS_TAP"].expose(), "open");
}

#[test]
fn every_key_has_a_flag_whose_text_reaches_the_sources() {
    let beside = Program {
        flags: "kitchen-",
        heading: Some("Kitchen"),
        ..PROGRAM
    };
    for program in [PROGRAM, beside] {
        let command = program.add_flags(Command::new("cook"), |_| true);
        command.clone().debug_assert();
        for key in program.keys {
            let argument = format!("--{}=text", program.flag(key.name));
            let matches = command.clone().get_matches_from(["cook", &argument]);
            let flags = [(key.name.to_owned(), "text".to_owned())];
            assert_eq!(Sources::gather(&program, &matches).flags, flags.into());
        }
    }
    let command = beside.add_flags(Command::new("cook"), |key| key.name != "door");
    let given = ["cook", "--kitchen-at-night", "--kitchen-delay", "-5m"];
    let matches = command.clone().try_get_matches_from(given).unwrap();
    let sources = Sources::gather(&beside, &matches);
    let mut reader = Reader::over(&beside, &sources);
    let kitchen = Kitchen::read(&mut reader);
    assert!(kitchen.at_night && kitchen.delay == SignedDuration::from_mins(-5));
    assert_eq!(
        kitchen.problem("delay", "is odd").to_string(),
        "--kitchen-delay: is odd"
    );
    assert!(
        command
            .try_get_matches_from(["cook", "--kitchen-door=x"])
            .is_err()
    );
}

#[test]
fn the_file_named_by_the_flag_is_read() {
    let command = PROGRAM.add_flags(Command::new("cook"), |_| true);
    let read = |path: &str| {
        let matches = command.clone().get_matches_from(["cook", "--config", path]);
        Sources::gather(&PROGRAM, &matches).file.unwrap()
    };
    let why = read("/no/such/file").text.unwrap_err();
    assert!(why.starts_with("No such file"), "{why}");
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    assert!(read(manifest).text.unwrap().starts_with("[package]"));
}

#[test]
fn the_reference_has_a_table_for_each_section_and_a_row_for_each_key() {
    let page = PROGRAM.markdown();
    let rows: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(rows.len(), PROGRAM.keys.len());
    assert!(
        rows.iter().all(|row| row.matches(" | ").count() == 4),
        "{page}"
    );
    for expected in [
        "\n### Opening\n\n| Key |",
        "| `door` | `KITCHEN_DOOR` | `--door ADDRESS` | `127.0.0.1:80` | Address of the door. It may be closed. |",
        "| `dish` | `KITCHEN_DISH` | `--dish DISH` | `soup` | Dish \\| of the day. |",
        "| `at_night` | `KITCHEN_AT_NIGHT` | `--at-night` | `false` | Serve guests at night. |",
        "| `sauce` | `KITCHEN_SAUCE` | `--sauce SECRET` | none | Recipe of the sauce. Never shown. |",
        "| Time that food may be late. A change counts without a restart. |",
    ] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
}
