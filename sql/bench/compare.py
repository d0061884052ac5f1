"""Times statements over files of the archive's writer with hindsight-sql and with DuckDB, which must give the same
answers. Lines of JSON: one for each statement and engine, with the least of three times in milliseconds. It fails where
answers differ, or where hindsight-sql takes more than twice as long; STRICT=0 only says so.

Usage: compare.py PROGRAM FOLDER ROWS THREADS [PROGRAM OF THE CLUSTER]
"""

import csv, io, json, os, subprocess, sys, time

import duckdb

from process import Process

STATEMENTS = {
    "count by outcome": (
        "SELECT outcome, count(*) AS runs FROM {table} GROUP BY outcome ORDER BY outcome"
    ),
    "pipelines: runs, failures, mean": (
        "SELECT pipeline, count(*) AS runs, count(*) FILTER (WHERE outcome <> 'SUCCESS') AS failed,"
        " sum(duration_us) AS us FROM {table} GROUP BY pipeline ORDER BY pipeline"
    ),
    "namespace and pipeline of one day": (
        "SELECT parent, pipeline, count(*) AS runs, max(duration_us) AS us FROM {table}"
        " WHERE create_time >= TIMESTAMPTZ '2026-01-03 00:00:00Z' AND create_time < TIMESTAMPTZ '2026-01-04 00:00:00Z'"
        " GROUP BY parent, pipeline ORDER BY parent, pipeline"
    ),
    "percentiles of pipelines": (
        "SELECT pipeline, quantile_disc(duration_us, 0.95) AS us FROM {table} GROUP BY pipeline ORDER BY pipeline"
    ),
}
# The one that the bound is for; the others are told beside it.
BOUND = "pipelines: runs, failures, mean"
MOST = 2.0


def ours(program, folder, threads, sql):
    command = [*program, "--files", folder, "--threads", threads, "--memory", "4GiB", "-o", "csv", "-c", sql]
    began = time.monotonic()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took = time.monotonic() - began
    return [tuple(row) for row in list(csv.reader(io.StringIO(out)))[1:]], took


def cluster(program, folder, threads):
    """A scheduler and two executors of half the threads each, and the command that asks them."""
    scheduler = Process([program, "scheduler", "--listen", "127.0.0.1:0"], r"scheduling on (\S+)")
    url = "http://" + scheduler.address
    command = [program, "executor", "--scheduler", url, "--archive-url", folder, "--listen", "127.0.0.1:0"]
    command += ["--threads", str(max(1, int(threads) // 2)), "--memory", "2GiB"]
    executors = [Process(command, r"executing on (\S+)") for _ in range(2)]
    return [program, "query", "--scheduler", url], [*executors, scheduler]


def theirs(connection, sql):
    began = time.monotonic()
    rows = connection.execute(sql).fetchall()
    took = time.monotonic() - began
    return [tuple("" if value is None else str(value) for value in row) for row in rows], took


def main():
    program, folder, rows, threads, *of_cluster = sys.argv[1:]
    engines, processes = {"hindsight-sql": [program]}, []
    if of_cluster:
        engines["cluster"], processes = cluster(*of_cluster, folder, threads)
    try:
        compared(engines, folder, rows, threads)
    finally:
        for process in processes:
            process.stop()


def compared(engines, folder, rows, threads):
    connection = duckdb.connect(config={"threads": int(threads)})
    connection.execute("SET TimeZone = 'UTC'")
    table = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    missed = False
    for name, statement in STATEMENTS.items():
        other = [theirs(connection, statement.format(table=table)) for _ in range(3)]
        least = {"duckdb": min(took for _, took in other)}
        for engine, program in engines.items():
            mine = [ours(program, folder, threads, statement.format(table="records")) for _ in range(3)]
            assert mine[0][0] == other[0][0] and mine[0][0], (name, engine, mine[0][0][:5], other[0][0][:5])
            least[engine] = min(took for _, took in mine)
        for engine, took in least.items():
            print(json.dumps({"statement": name, "rows": int(rows), "engine": engine, "ms": round(took * 1000)}), flush=True)
        ratio = least["hindsight-sql"] / least["duckdb"]
        met = ratio <= MOST if name == BOUND else None
        print(json.dumps({"statement": name, "times as long as duckdb": round(ratio, 2), "within": met}), flush=True)
        missed |= met is False
    total = sum(int(row[1]) for row in ours(engines["hindsight-sql"], folder, threads, STATEMENTS["count by outcome"].format(table="records"))[0])
    assert total == int(rows), (total, rows)
    if missed and os.environ.get("STRICT", "1") != "0":
        sys.exit(f"hindsight-sql takes more than {MOST} times as long as DuckDB for: {BOUND}")


main()
