//! Which texts are databases, and that passwords stay hidden.

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<(&str, &str), &str>) {
    let seen = text
        .parse::<DbUrl>()
        .map(|db| (db.expose(), db.to_string()));
    let expected = expected.map(|(open, shown)| (open.to_owned(), shown.to_owned()));
    assert_eq!(
        seen.map_err(|bad| bad.to_string()),
        expected.map_err(str::to_owned)
    );
}

#[test]
fn a_database_is_a_file_or_a_server() {
    check("sqlite:a.db", Ok(("sqlite:a.db", "sqlite:a.db")));
    check(
        "sqlite:///var/a.db",
        Ok(("sqlite:/var/a.db", "sqlite:/var/a.db")),
    );
    check(
        "postgres://db/h",
        Ok(("postgres://db/h", "postgres://db/h")),
    );
    check(
        "postgresql:///h?host=/run/postgresql",
        Ok((
            "postgresql:///h?host=/run/postgresql",
            "postgresql:///h?host=/run/postgresql",
        )),
    );
}

#[test]
fn a_password_is_never_shown() {
    let url = "postgres://me:s/e?c@ret@db:5432/h";
    check(url, Ok((url, "postgres://me:***@db:5432/h")));
    let url = "postgres://db/h?Password=secret&sslmode=require";
    check(
        url,
        Ok((url, "postgres://db/h?Password=***&sslmode=require")),
    );
    assert_eq!(
        format!("{:?}", url.parse::<DbUrl>().unwrap()),
        "postgres://db/h?Password=***&sslmode=require"
    );
    assert_eq!(masked("mysql://me:secret@db/h"), "mysql://me:***@db/h");
    assert_eq!(masked("me:secret@db"), "me:***@db");
    assert_eq!(
        masked("host=db password=secret dbname=h"),
        "host=db password=*** dbname=h"
    );
}

#[test]
fn anything_else_is_refused_with_what_is_wanted() {
    check(
        "h.db",
        Err(
            "`h.db` is not a valid database; want `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`",
        ),
    );
    check(
        "sqlite:",
        Err("`sqlite:` names no file; want `sqlite:hindsight.db`"),
    );
    check(
        "sqlite::memory:",
        Err(
            "`sqlite::memory:` would forget everything when the server stops; name a file, as in `sqlite:hindsight.db`",
        ),
    );
    check(
        "sqlite:a.db?mode=ro",
        Err(
            "`sqlite:a.db?mode=ro` has options after its path, and there are none; want `sqlite:PATH` alone",
        ),
    );
    check(
        "postgres://me:pw@/h",
        Err(
            "`postgres://me:***@/h` names no host; want `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`",
        ),
    );
}
