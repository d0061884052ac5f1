"""What hindsight-sql answers, beside what `hindsight stats` and DuckDB do, and what it refuses."""

import hashlib, json, subprocess, tempfile, threading

import adbc_driver_flightsql.dbapi as flight
import adbc_driver_manager
import duckdb

from support import SQL, Process, Server, run, sql, token

RESULTS, RECORDS = 40, 3
ALL = RESULTS * RECORDS + 1
# One of each run, which the server tells of in a record of its own.
LOGS = RESULTS * RECORDS + 1
ALL_LOGS = "SELECT * FROM logs ORDER BY parent, result_id, record_id"


def given(server):
    """Results of which every fourth is not old; one of another namespace; and a record that is no run."""
    for result in range(RESULTS):
        ended = "2020-01-01T00" if result % 4 else "2099-01-01T00"
        records = {f"t{at}": run(result * RECORDS + at, ended=ended) for at in range(RECORDS)}
        server.give("ci", f"r{result:02}", records)
    server.give("secret", "s", {"t": run(1, namespace="secret")})
    server.give("ci", "other", {"p": {"kind": "Note", "metadata": {"name": "nightly"}}})


def answers_are_those_of_stats(server):
    for archive in (False, True):
        mine = server.sql(
            "SELECT pipeline, count(*), count(*) FILTER (WHERE outcome = 'FAILURE'),"
            " seconds(quantile_disc(duration_us, 0.5)), seconds(quantile_disc(duration_us, 0.95)),"
            " seconds(quantile_disc(duration_us, 0.99)) FROM runs GROUP BY pipeline ORDER BY pipeline",
            archive=archive,
        )
        measures = "count,failed,p50(duration),p95(duration),p99(duration)"
        theirs = server.stats("-A", "--by", "pipeline", "-m", measures, "--order-by", "pipeline")
        number = lambda rows: [(row[0], *map(float, row[1:])) for row in rows]
        assert number(mine) == number(theirs) and len(mine) == 4, (mine, theirs)
        filtered = server.sql(
            "SELECT count(*) FROM runs WHERE label(labels, 'team') = 'blue' AND outcome = 'SUCCESS'"
            " AND duration_us > duration('10m') AND name <> 'run-7'",
            archive=archive,
        )
        cel = "run.labels.team == 'blue' && run.outcome == SUCCESS && data.metadata.name != 'run-7'"
        duration = "run.end_time - run.start_time > duration('10m')"
        theirs = server.stats("-A", "-m", "count", "-f", f"{cel} && {duration}")
        assert filtered == theirs and filtered != [("0",)], (filtered, theirs)


def columns_of_payloads_and_results_are_read(server):
    for archive in (False, True):
        found = server.sql(
            "SELECT name, param(payload, 'revision'), json_value(payload, '/status/podName'), labels['team'],"
            " result_annotations['repo'], namespace, tier IS NULL FROM records WHERE name IN ('run-4', 'run-24')"
            " AND parent = 'ci' ORDER BY name",
            archive=archive,
        )
        unknown = "false" if archive else "true"
        wanted = [(f"run-{at}", "r4", f"pod-{at}", "red", "shop", "ci", unknown) for at in (24, 4)]
        assert found == wanted, found
        assert server.sql("SELECT count(*) FROM records", archive=archive) == [(str(ALL + 1 + LOGS),)]
        assert server.sql("SELECT count(*), count(summary_type) FROM results", archive=archive) == [("42", "0")]
    tiers = server.sql("SELECT tier, count(*) FROM runs WHERE parent = 'ci' GROUP BY tier ORDER BY tier")
    assert tiers == [("cold", "90"), ("hot", "30")], tiers


def rows_are_counted_once_while_they_move(server):
    """Moves run beside statements; each statement has every record once."""
    done = threading.Event()

    def move():
        server.retention()
        done.set()

    mover = threading.Thread(target=move)
    mover.start()
    counted = 0
    while not done.is_set() or counted == 0:
        found = server.sql("SELECT count(*), count(DISTINCT record_id || result_id || parent) FROM runs")
        assert found == [(str(ALL), str(ALL))], found
        counted += 1
    mover.join()
    assert server.files(), "nothing moved"
    assert server.sql("SELECT count(*), count(DISTINCT name) FROM runs") == [(str(ALL), str(ALL - 1))]


def what_is_deleted_or_came_back_is_counted_as_it_is(server):
    server.delete("ci", "r01")
    server.put("ci", "r02", "t0", run(6))
    wanted = ALL - RECORDS
    assert server.sql("SELECT count(*) FROM runs") == [(str(wanted),)]
    tiers = server.sql("SELECT tier, count(*) FROM runs WHERE result_id IN ('r01', 'r02', 'r03') GROUP BY tier ORDER BY tier")
    assert tiers == [("cold", "3"), ("hot", "3")], tiers
    server.retention()
    assert server.sql("SELECT count(*) FROM runs") == [(str(wanted),)]
    assert server.sql("SELECT tier FROM runs WHERE result_id = 'r02' GROUP BY tier") == [("cold",)]


def given_logs(server):
    """Logs of one container of each task of `ci`, of which those of first tasks are sealed, and one of `secret`."""
    sources = []
    for result in range(RESULTS):
        for at in range(RECORDS):
            name = f"ci/results/r{result:02}/logs/t{at}"
            lines = [f"line {line}\n" for line in range(1 + result % 3)]
            sources.append((name, f"pod-{result}", "step", at, lines, at == 0))
    sources.append(("secret/results/s/logs/t", "pod", "step", 0, ["hidden\n"], True))
    server.logs(sources)


def logs_stay_when_records_move_and_join_with_them(server, before):
    """The table is what it was before most records moved, whoever reads the files."""
    tiers = server.sql("SELECT tier, count(*) FROM runs WHERE parent = 'ci' GROUP BY tier ORDER BY tier")
    assert tiers == [("cold", "90"), ("hot", "30")], tiers
    for archive in (False, True):
        assert server.sql(ALL_LOGS, archive=archive) == before
        joined = server.sql(
            "SELECT count(*), sum(lines), count(sha256), count(*) FILTER (WHERE is_sealed) FROM logs"
            " JOIN runs USING (parent, result_id, record_id) WHERE outcome = 'FAILURE' AND logs.parent = 'ci'",
            who="reader",
            archive=archive,
        )
        # Every third run failed, which is the first task of its result.
        lines = sum(1 + result % 3 for result in range(RESULTS))
        assert joined == [(str(RESULTS), str(lines), str(RESULTS), str(RESULTS))], joined
        texts = server.sql("SELECT count(*) FROM logs JOIN records USING (parent, result_id, record_id)", archive=archive)
        assert texts == [(str(LOGS),)], texts
    one = server.sql(
        "SELECT parent, namespace, cluster_id, pod, container, restart, lines, bytes, first_time, last_time, is_sealed,"
        " holes, encode(sha256, 'hex') FROM logs WHERE result_id = 'r02' ORDER BY restart LIMIT 2"
    )
    digest = hashlib.sha256(b"line 0\nline 1\nline 2\n").hexdigest()
    times = ("2020-01-01T00:00:00Z", "2020-01-01T00:00:02Z")
    wanted = ("ci", "ci", "", "pod-2", "step", "0", "3", "21", *times, "true", "0", digest)
    assert one[0] == wanted, one
    assert one[1] == (*wanted[:5], "1", *wanted[6:10], "false", "0", ""), one
    assert server.sql("SELECT count(*) FROM logs LIMIT 1", "-n", "secret") == [("1",)]
    assert len(server.sql("SELECT pod FROM logs LIMIT 7")) == 7
    with_files = sql("SELECT count(*) FROM logs", "--files", str(server.folder / "archive"), code=2)
    assert "the table `logs` needs a server" in with_files and "--server" in with_files, with_files


def duckdb_answers_the_same_of_the_same_files(server):
    folder = server.folder / "archive"
    statement = (
        "SELECT pipeline, count(*), count(*) FILTER (WHERE outcome = 'FAILURE'), sum(duration_us),"
        " quantile_disc(duration_us, 0.5), quantile_disc(duration_us, 0.99) FROM {}"
        " WHERE pipeline IS NOT NULL GROUP BY pipeline ORDER BY pipeline"
    )
    mine = sql(statement.format("records"), "--files", server.archive)
    table = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    theirs = duckdb.sql(statement.format(table)).fetchall()
    assert mine == [tuple(map(str, row)) for row in theirs] and mine, (mine, theirs)
    labelled = "SELECT count(*) FROM {} WHERE {}"
    mine = sql(labelled.format("records", "label(labels, 'team') = 'blue' AND namespace = 'ci'"), "--files", server.archive)
    theirs = duckdb.sql(labelled.format(table, "list_contains(label_pairs, 'team=blue') AND namespace = 'ci'"))
    assert mine == [(str(theirs.fetchall()[0][0]),)] and mine != [("0",)]


def statements_only_read(server):
    for statement in [
        "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/etc'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE VIEW v AS SELECT * FROM runs",
        "DROP TABLE runs",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "COPY runs TO '/tmp/out.parquet' STORED AS PARQUET",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/out.csv'",
        "INSERT INTO runs (parent) VALUES ('x')",
        "DELETE FROM runs",
        "UPDATE runs SET name = 'x'",
        "SET datafusion.execution.batch_size = 1",
        "PREPARE p AS SELECT 1",
    ]:
        said = server.sql(statement, code=2)
        assert "refused: statements only read" in said or "not supported" in said, (statement, said)
    for statement in [
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM '/etc/passwd.csv'",
        "SELECT * FROM read_parquet('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
    ]:
        server.sql(statement, code=2)


def errors_say_what_was_wrong(server):
    for statement, code, parts, who in [
        ("SELECT nme FROM runs", 2, ["nme"], "root"),
        ("SELEC 1", 2, ["SELEC"], "root"),
        ("SELECT duration('soon')", 2, ["`soon` is not a duration; want"], "root"),
        ("SELECT count(*) FROM runs", 4, ["WHERE parent = 'PARENT'"], "reader"),
        ("SELECT count(*) FROM runs WHERE parent = 'secret'", 4, [], "reader"),
        ("SELECT count(*) FROM runs", 4, [], None),
        ("SELECT count(*) FROM logs", 4, ["WHERE parent = 'PARENT'"], "reader"),
        ("SELECT count(*) FROM logs WHERE parent IN ('ci', 'secret')", 4, [], "reader"),
        ("SELECT text FROM logs", 2, ["text"], "root"),
    ]:
        said = server.sql(statement, who=who, code=code)
        assert all(part in said for part in parts) and said.startswith("error: "), (statement, said)
    said = sql("SELECT count(*) FROM runs", "--server", "http://127.0.0.1:1", code=5)
    assert "does not answer" in said, said
    said = server.sql("SELECT count(*) FROM runs a, runs b, runs c, runs d, runs e", "--deadline", "50ms", code=1)
    assert "took longer than" in said, said
    said = server.sql("SELECT max(name) FROM runs", "--memory", "1kB", archive=False, code=1)
    assert "--memory" in said, said


def forms_are_tables_json_and_csv(server):
    ask = ["--server", server.url, "--token", token("root"), "-n", "secret"]
    statement = "SELECT name, labels, start_time, result_id FROM runs"
    of = lambda form: subprocess.run([*SQL, "-o", form, "-c", statement, *ask], check=True, capture_output=True, text=True).stdout
    labels = {"team": "blue", "tekton.dev/pipeline": "nightly-1"}
    row = {"name": "run-1", "labels": labels, "start_time": "2020-01-01T00:00:00Z", "result_id": "s"}
    assert json.loads(of("json")) == [row], of("json")
    assert of("csv").splitlines()[0] == "name,labels,start_time,result_id", of("csv")
    assert "| run-1 |" in of("table") and of("table").endswith("1 row\n"), of("table")
    shell = subprocess.run([*SQL, *ask], input="\\o csv\nSELECT ';' AS a;\nSELECT count(*) FROM runs;\n", capture_output=True, text=True)
    assert (shell.returncode, shell.stdout) == (0, "a\n;\ncount(*)\n1\n"), shell


def connection(served, who=None, **options):
    headers = {"adbc.flight.sql.authorization_header": f"Bearer {token(who)}"} if who else {}
    scheme = "grpc"
    if served.ca:
        scheme = "grpc+tls"
        headers["adbc.flight.sql.client_option.tls_root_certs"] = served.ca.read_text()
    return flight.connect(f"{scheme}://{served.address}", db_kwargs={**headers, **options}, autocommit=True)


def fetched(served, statement, who=None, **options):
    with connection(served, who, **options) as opened, opened.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def refused(served, statement, status, who=None, **options):
    try:
        rows = fetched(served, statement, who, **options)
    except adbc_driver_manager.Error as error:
        assert status in (error.status_code.name, None), (statement, error.status_code, str(error))
        return str(error)
    raise AssertionError(f"{statement}: {rows}")


def clients_of_flight_sql_see_what_their_tokens_may(server, served):
    of_ci = "SELECT count(*) FROM runs WHERE parent = 'ci'"
    wanted = [(ALL - 1 - RECORDS,)]
    assert fetched(served, of_ci, "reader") == wanted
    assert fetched(served, "SELECT count(*) FROM runs", "root") == [(wanted[0][0] + 1,)]
    header = {"adbc.flight.sql.rpc.call_header.hindsight-parent": "ci"}
    assert fetched(served, "SELECT count(*) FROM runs", "reader", **header) == wanted
    assert fetched(served, "SELECT count(*) FROM logs WHERE parent = 'ci'", "reader") == [((RESULTS - 1) * RECORDS,)]
    # Nothing of another namespace, by whatever way it is asked for.
    for statement in [
        "SELECT * FROM runs",
        "SELECT * FROM runs WHERE parent = 'secret'",
        "SELECT * FROM runs WHERE namespace = 'secret'",
        "SELECT * FROM records WHERE parent IN ('ci', 'secret')",
        "SELECT * FROM results",
        "SELECT * FROM logs",
        "SELECT * FROM logs WHERE namespace = 'secret'",
        "SELECT * FROM runs WHERE parent = 'ci' UNION ALL SELECT * FROM runs WHERE parent = 'secret'",
        "SELECT (SELECT count(*) FROM runs WHERE parent = 'secret')",
    ]:
        refused(served, statement, "UNAUTHORIZED", "reader")
    header["adbc.flight.sql.rpc.call_header.hindsight-parent"] = "secret"
    refused(served, "SELECT * FROM runs", "UNAUTHORIZED", "reader", **header)
    header["adbc.flight.sql.rpc.call_header.hindsight-parent"] = "ci"
    assert fetched(served, "SELECT * FROM runs WHERE parent = 'secret'", "reader", **header) == []
    # Who is not known learns nothing, not even whether a statement makes sense.
    for who in (None, "stranger"):
        for statement in ("SELECT 1", "SELEC", of_ci):
            refused(served, statement, "UNAUTHENTICATED", who)
    said = refused(served, "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/etc'", None, "root")
    assert "statements only read" in said, said


def clients_of_flight_sql_list_tables_and_prepare(served):
    with connection(served, "root") as opened:
        tables = opened.adbc_get_objects(depth="columns").read_all().to_pylist()
        schema = tables[0]["catalog_db_schemas"][0]
        found = {table["table_name"]: len(table["table_columns"]) for table in schema["db_schema_tables"]}
        assert found["runs"] == 26 and found["logs"] == 15, found
        assert set(found) == {"runs", "records", "results", "logs"}, found
        with opened.cursor() as cursor:
            cursor.adbc_prepare("SELECT outcome, count(*) AS n FROM runs GROUP BY outcome ORDER BY outcome")
            cursor.execute("SELECT outcome, count(*) AS n FROM runs GROUP BY outcome ORDER BY outcome")
            rows = cursor.fetch_arrow_table()
            assert rows.column_names == ["outcome", "n"] and rows.num_rows == 2, rows
    by_password = {"username": "anybody", "password": token("root")}
    assert fetched(served, "SELECT count(*) FROM results", **by_password) == [(41,)]


def answered(server, flags, ca=None):
    """All of the above of a server, and of a Flight SQL server with these flags, whose certificate is of `ca`."""
    passed = []

    def check(test, *args):
        test(*args)
        passed.append(test.__name__)
        print("ok", test.__name__.replace("_", " "), flush=True)

    given(server)
    given_logs(server)
    logs = server.sql(ALL_LOGS)
    assert len(logs) == LOGS, len(logs)
    check(rows_are_counted_once_while_they_move, server)
    check(logs_stay_when_records_move_and_join_with_them, server, logs)
    check(answers_are_those_of_stats, server)
    check(columns_of_payloads_and_results_are_read, server)
    check(what_is_deleted_or_came_back_is_counted_as_it_is, server)
    check(answers_are_those_of_stats, server)
    check(duckdb_answers_the_same_of_the_same_files, server)
    check(statements_only_read, server)
    check(errors_say_what_was_wrong, server)
    check(forms_are_tables_json_and_csv, server)
    command = [*SQL, "--server", server.url, "--archive-url", server.archive, "--listen", "127.0.0.1:0", *flags]
    served = Process(command, r"serving Arrow Flight SQL on (\S+)")
    served.ca = ca
    try:
        check(clients_of_flight_sql_see_what_their_tokens_may, server, served)
        check(clients_of_flight_sql_list_tables_and_prepare, served)
    finally:
        served.stop()
    return len(passed)


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            passed = answered(server, [])
        finally:
            server.stop()
        print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
