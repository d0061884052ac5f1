# Names for what people and CI run. Each target installs what it needs.

CARGO ?= cargo
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: contract demo takeover test image image-test bench bench-start bench-scale bench-runs bench-feed bench-logs bench-archive bench-retention bench-ray bench-isolation flood crash chaos chaos-logs chaos-workflows fuzz fuzz-server openapi-test wire-test lint tidy model postgres mariadb chromium screenshots bench-ui size sql test-sql bench-sql lint-sql sql-cluster test-sql-cluster sql-image bench-kfp bench-workflows differential kfp-test

# Server, watcher and a simulated cluster whose runs are stored and collected.
# DEMO='--runs 200 --exit' passes options on.
demo:
	$(CARGO) build --locked --workspace --bins --example demo
	$(CARGO) run --locked --quiet --example demo -- $(DEMO)

# Every test, on SQLite and on a throwaway PostgreSQL, and of pages in a browser.
test: postgres mariadb chromium
	tests/with-postgres $(CARGO) test --locked --workspace

# The image of all programs, with whatever container engine is there; IMAGE names it.
IMAGE ?= hindsight:0.1.0
image:
	$(CARGO) build --locked --profile dist --package hindsight --package hindsight-watcher --package hindsight-controller --bins
	deploy/image/build $${CARGO_TARGET_DIR:-target}/dist $(IMAGE)

# The same of programs that are built in a minute; then it is unpacked, and each program runs from it as the
# user 65532 on a read-only root. Needs root.
image-test:
	$(CARGO) build --locked --workspace --bins
	rm -f $${CARGO_TARGET_DIR:-target}/image.tar
	deploy/image/build $${CARGO_TARGET_DIR:-target}/debug hindsight:test $${CARGO_TARGET_DIR:-target}/image.tar
	deploy/image/try $${CARGO_TARGET_DIR:-target}/image.tar

# Create, get, list and import on both databases, and the watcher from end to end.
bench: postgres
	$(CARGO) build --locked --release -p hindsight-watcher
	tests/with-postgres $(CARGO) bench --locked

# Processor time of the start of a command, at most 20 ms.
bench-start:
	$(CARGO) bench --locked --bench start

# SIGKILL to the server on both databases, and to PostgreSQL, 50 times each under a write load.
crash: postgres
	HINDSIGHT_TEST_KILLS=50 tests/with-postgres $(CARGO) test --locked --test it kills:: -- --nocapture --test-threads=1

# CHAOS_RUNS runs, 100 a second, while watcher, server and database are killed and the API server
# errs, on both databases. CHAOS_BUILD=--release plays release builds, which take long to make.
CHAOS_RUNS ?= 20000
CHAOS_BUILD ?=
chaos: postgres
	$(CARGO) build --locked $(CHAOS_BUILD) --workspace --bins
	HINDSIGHT_TEST_CHAOS=$(CHAOS_RUNS) tests/with-postgres $(CARGO) test --locked $(CHAOS_BUILD) --test it chaos:: -- --nocapture --test-threads=1 --skip chaos::logs --skip chaos::workflows

# Reading among 10^4 to 10^6 records. The data sets take some 10 GB and are made once;
# SIZES=10000 is done in a minute.
SIZES ?= 10000 100000 1000000
bench-scale: postgres
	HINDSIGHT_TEST_PG_KEEP=$${CARGO_TARGET_DIR:-target}/bench/scale/postgres SIZES='$(SIZES)' \
		tests/with-postgres $(CARGO) bench --locked --bench scale

# What 500 followers cost that wait: processor time and memory; SECONDS says how long they do.
bench-feed: postgres
	tests/with-postgres $(CARGO) bench --locked --bench feed

# One log of SIZE MiB: appended, its end, a part and all of it read. STRICT=1 fails where a bound is passed.
SIZE ?= 64
bench-logs: postgres
	SIZE='$(SIZE)' tests/with-postgres $(CARGO) bench --locked --bench logs

# What runs take as Parquet files, beside lines of JSON under zstd, and what is read to find them; it fails where
# a run of eleven tasks takes more than 12 KB. Then questions about SIZE records in files of a directory and of a
# bucket that answers late; STRICT=1 fails where one takes longer than it should.
bench-archive: SIZE = 300000
bench-archive: postgres
	$(CARGO) bench --locked --package hindsight-archive --bench archive
	SIZE='$(SIZE)' tests/with-postgres $(CARGO) bench --locked --bench tiers

# Lists and creates beside a pass of retention that deletes SIZES records, on both databases, and before it; the
# longest wait for a lock. STRICT=1 fails where one is over its bound.
bench-retention: SIZES = 100000
bench-retention: postgres
	SIZES='$(SIZES)' tests/with-postgres $(CARGO) bench --locked --bench retention

# Questions about runs among the same: lists, why, diff, flaky, completion. STRICT=1 fails where one
# takes longer than it should; RUN_SIZES=10000 is done in a minute.
RUN_SIZES ?= 1000000
bench-runs: postgres
	HINDSIGHT_TEST_PG_KEEP=$${CARGO_TARGET_DIR:-target}/bench/scale/postgres SIZES='$(RUN_SIZES)' \
		ONLY=runs tests/with-postgres $(CARGO) bench --locked --bench scale

# Pages of the history of 10,000 deleted clusters of Ray, on both databases. STRICT=1 fails where p95 is over 25 ms.
bench-ray: SIZES = 10000
bench-ray: postgres
	SIZES='$(SIZES)' tests/with-postgres $(CARGO) bench --locked --bench ray

# Lists of SIZE pipelines of Kubeflow with ten versions each, on both databases. STRICT=1 fails where one takes longer
# than it should.
bench-kfp: SIZE = 100000
bench-kfp: postgres
	SIZE='$(SIZE)' tests/with-postgres $(CARGO) bench --locked --package hindsight-kfp --bench kfp

# WORKFLOWS workflows of 20 steps at once on one controller, on the simulator. STRICT=1 fails where fewer than 200 steps
# start in a second, or the controller takes more than 150 MiB or two writes of status for a step.
WORKFLOWS ?= 1000
bench-workflows:
	WORKFLOWS='$(WORKFLOWS)' $(CARGO) bench --locked --package hindsight-controller --bench workflows

# Calls of known callers beside calls of anybody, and small calls beside a caller who asks for much.
bench-isolation: postgres
	tests/with-postgres $(CARGO) bench --locked --bench isolation

# 200 connections that stall, bomb, take nothing and reset, from strangers and from one caller: what the
# server holds, and how long others wait.
flood:
	$(CARGO) bench --locked --bench isolation -- flood

# Random bytes against everything that reads text of strangers, FUZZ_SECONDS each. Wants
# `cargo install cargo-fuzz`; on a stable compiler it borrows the flags of a nightly one. A
# finding is a file in fuzz/artifacts: fix it, and keep the file as fuzz/corpus/TARGET/found-..., which an
# ordinary test replays.
FUZZ_SECONDS ?= 120
fuzz:
	for target in filter cost selector words order token name payload; do \
		RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --sanitizer none $$target \
			-- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 || exit 1; \
	done

# Random requests by REST and gRPC to a server on SQLite, over HTTP/1.1 and HTTP/2, spoilt on their
# way. A finding is printed with its seed, which HINDSIGHT_TEST_FUZZ_SEED tries again.
FUZZ_SERVER_SECONDS ?= 600
fuzz-server:
	HINDSIGHT_TEST_FUZZ_SECONDS=$(FUZZ_SERVER_SECONDS) $(CARGO) test --locked --test it server::fuzz:: -- --nocapture

# The server's OpenAPI document against its answers, by schemathesis, which is installed below
# target/ from PyPI.
openapi-test:
	$(CARGO) build --locked --workspace --bins
	tests/openapi/check

# Every method by gRPC's own client for Python, which is installed below target/ from PyPI.
wire-test:
	$(CARGO) build --locked --workspace --bins
	tests/wire/check

# RECORDS records in the database, in files and in both, and FILTERS random filters, orders and pages: lists are those of
# plain evaluation. It takes two to four hours, because filters that match little read every record; FILTERS=1000 with SEED=1,
# 2 and so on takes as long in parts, and a seed asks the same again. Without one it is random.
RECORDS ?= 100000
FILTERS ?= 5000
differential: postgres
	HINDSIGHT_TEST_DIFFERENTIAL='$(RECORDS) $(FILTERS) $(SEED)' \
		tests/with-postgres $(CARGO) test --locked --release -p hindsight --lib query::tests::tiers -- --nocapture

# The store of pipelines by the kfp SDK, which is installed below target/ from PyPI.
kfp-test:
	$(CARGO) build --locked --bin hindsight
	tests/kfp/check

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# SQL over the history, a workspace of its own because DataFusion takes long to compile: the program alone, its tests
# beside a server, `hindsight stats`, DuckDB and a client of Flight SQL from PyPI, and its own rules of style.
sql:
	cd sql && $(CARGO) build --locked --release

test-sql:
	$(CARGO) build --locked --workspace --bin hindsight
	cd sql && $(CARGO) test --locked && $(CARGO) build --locked --bins
	sql/tests/check

lint-sql:
	cd sql && $(CARGO) fmt --all --check && $(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# The same on several machines, with Ballista: the program, its tests with a scheduler and two executors beside
# PostgreSQL, a bucket and certificates, and an image for `deploy/sql`.
sql-cluster:
	cd sql && $(CARGO) build --locked --release --package hindsight-sql-cluster

test-sql-cluster: postgres
	$(CARGO) build --locked --workspace --bin hindsight
	cd sql && $(CARGO) test --locked --package hindsight-sql-cluster && $(CARGO) build --locked --package hindsight-sql-cluster
	tests/with-postgres sql/tests/check cluster

SQL_IMAGE ?= hindsight-sql:0.1.0
sql-image: sql-cluster
	NAMES=hindsight-sql-cluster deploy/image/build $${CARGO_TARGET_DIR:-sql/target}/release $(SQL_IMAGE)

# Statements over SIZE records in files of the archive's writer, beside DuckDB on the same files; it fails where answers
# differ, or a GROUP BY takes more than twice as long.
bench-sql: SIZE = 10000000
bench-sql:
	cd sql && $(CARGO) build --locked --release --bins --examples
	SIZE='$(SIZE)' sql/bench/run

# A million random histories of a run, against what the watcher plans; and HISTORIES of a workflow, a custom task and a
# delegated PipelineRun each, against what the controller does.
HISTORIES ?= 1000000
model:
	HINDSIGHT_TEST_HISTORIES='$(HISTORIES)' $(CARGO) test --locked --release -p hindsight-workflow --lib model
	PROPTEST_CASES=1000000 $(CARGO) test --locked --release -p hindsight-watcher --lib plan::tests::histories

# LOGGED_RUNS runs whose pods go two seconds after they end, while watchers are killed and the server comes
# and goes; then the same while processes of server and watcher and PostgreSQL are killed and the bucket is away:
# 999 of 1,000 lines are stored, and all of cancelled runs, none twice, none out of order, and every hole is marked. In
# debug builds a watcher takes longer to start than a pod waits for it.
LOGGED_RUNS ?= 2000
chaos-logs: CHAOS_BUILD = --release
chaos-logs: postgres
	HINDSIGHT_TEST_LOGGED_RUNS=$(LOGGED_RUNS) $(CARGO) test --locked -p hindsight-watcher --test it logs::chaos -- --nocapture
	$(CARGO) build --locked $(CHAOS_BUILD) --workspace --bins
	HINDSIGHT_TEST_LOGGED_RUNS=$(LOGGED_RUNS) tests/with-postgres $(CARGO) test --locked $(CHAOS_BUILD) --test it chaos::logs -- --nocapture --test-threads=1

# CHAOS_WORKFLOWS workflows of 20 steps while controllers, watcher, server and PostgreSQL are killed and the API server
# errs: each step has one Job after those it depends on, and every end is stored. Debug builds are too slow for it.
CHAOS_WORKFLOWS ?= 2000
chaos-workflows: CHAOS_BUILD = --release
chaos-workflows: postgres
	$(CARGO) build --locked $(CHAOS_BUILD) --workspace --bins
	HINDSIGHT_TEST_WORKFLOWS=$(CHAOS_WORKFLOWS) tests/with-postgres $(CARGO) test --locked $(CHAOS_BUILD) --test it chaos::workflows -- --nocapture --test-threads=1

# A watcher that starts beside TAKEOVER_RUNS finished runs, on the simulator: each is stored at once, written
# to at the configured pace, and collected.
TAKEOVER_RUNS ?= 50000
takeover:
	HINDSIGHT_TEST_RUNS=$(TAKEOVER_RUNS) $(CARGO) test --locked --release -p hindsight-watcher --test it taken_over -- --nocapture

# What the simulated cluster must do, and scenes of the watcher, of the cluster service and of the controller of
# workflows, on the API server of KUBECONFIG. HINDSIGHT_TEST_RAY_CRD names the definition of RayClusters that KubeRay
# publishes; without, a server that lacks the kind gets one without a schema. It takes the rights to create namespaces, kinds, roles, bindings and webhooks, and to
# impersonate.
contract:
	@test -n "$(KUBECONFIG)" || { echo "name an API server: make contract KUBECONFIG=PATH" >&2; exit 1; }
	tests/on-cluster '$(abspath $(KUBECONFIG))' $(CARGO) test --locked -p kubesim --test contract a_real_server -- --nocapture
	tests/on-cluster '$(abspath $(KUBECONFIG))' $(CARGO) test --locked -p hindsight-watcher --test it real::the_watcher_does_the_same_on_a_real_server -- --nocapture
	tests/on-cluster '$(abspath $(KUBECONFIG))' $(CARGO) test --locked -p hindsight-ray --test kubernetes the_cluster_service_does_the_same_on_a_real_server -- --nocapture
	tests/on-cluster '$(abspath $(KUBECONFIG))' $(CARGO) test --locked -p hindsight-controller --test it real::the_controller_does_the_same_on_a_real_server -- --nocapture
	tests/on-cluster '$(abspath $(KUBECONFIG))' $(CARGO) test --locked -p hindsight-kfp --test kubernetes real::the_store_and_the_webhooks_do_the_same_on_a_real_server -- --nocapture

# The house rules alone.
tidy:
	$(CARGO) test --locked --test tidy

# The pictures of docs/ui.md, of the pages as they are.
screenshots: chromium
	HINDSIGHT_FORBID_SKIP=1 HINDSIGHT_TEST_SCREENSHOTS=write $(CARGO) test --locked --test it browser::screenshots::

# What pages take in a browser on a slow machine, beside docs/ui.md: SIZES are the records, 10000 in its short
# form, and data sets are those of bench-scale.
bench-ui: SIZES = 1000000
bench-ui: postgres chromium
	HINDSIGHT_TEST_PG_KEEP=$${CARGO_TARGET_DIR:-target}/bench/scale/postgres SIZES='$(SIZES)' \
		tests/with-postgres $(CARGO) bench --locked --bench ui

# What the web UI, the cluster service of KubeRay and the pipelines of Kubeflow add to the server's binary and memory; it fails
# where one adds more than 2 MiB to the binary.
size:
	tests/bench/size

# A browser, the fonts of its pictures, and axe-core.
chromium:
	@if command -v chromium >/dev/null && command -v npm >/dev/null && \
		[ -f /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf ]; then \
		:; \
	elif command -v apt-get >/dev/null; then \
		echo "installing Chromium"; \
		$(SUDO) apt-get update -q && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
			chromium fonts-dejavu-core $$(command -v npm >/dev/null || echo npm); \
	else \
		echo "chromium, npm or the fonts DejaVu are missing, and there is no apt-get to install them with" >&2; \
		exit 1; \
	fi
	@tests/browser/axe

# The binaries of PostgreSQL; tests/with-postgres makes its own cluster of them.
postgres:
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null; then \
		:; \
	elif command -v apt-get >/dev/null; then \
		echo "installing PostgreSQL"; \
		$(SUDO) apt-get update -q && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends postgresql; \
	else \
		echo "PostgreSQL is missing, and there is no apt-get to install it with;" \
			"put initdb on the PATH" >&2; \
		exit 1; \
	fi

# The server of MariaDB, from which archives are imported; a test that needs one makes its own.
mariadb:
	@if command -v mariadb-install-db >/dev/null && command -v my_print_defaults >/dev/null; then \
		:; \
	elif command -v apt-get >/dev/null; then \
		echo "installing MariaDB"; \
		$(SUDO) apt-get update -q && \
		$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
			mariadb-server-core mariadb-client-core; \
	else \
		echo "MariaDB is missing, and there is no apt-get to install it with;" \
			"put mariadbd and mariadb-install-db on the PATH" >&2; \
		exit 1; \
	fi
