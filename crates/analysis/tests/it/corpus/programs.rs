//! What tests and programs print when they fail.

use super::{Cause, Failure, step};
use crate::random::Random;

pub(super) const CAUSES: &[Cause] = &[
    |r| {
        pytest(
            r,
            "test_total_includes_tax",
            "assert Decimal('11.90') == Decimal('10.00')",
        )
    },
    |r| pytest(r, "test_refund_is_idempotent", "KeyError: 'refund_id'"),
    |r| {
        go_panic(
            r,
            "runtime error: invalid memory address or nil pointer dereference",
            "main.(*Server).handleOrder",
        )
    },
    |r| go_panic(r, "assignment to entry in nil map", "main.(*Cache).put"),
    |r| python_http(r, 503, "Server Error: Service Unavailable"),
    |r| python_http(r, 404, "Client Error: Not Found"),
    python_module,
    |r| {
        java(
            r,
            &[
                "java.lang.NullPointerException: Cannot invoke \"com.acme.User.getId()\" because \"user\" is null",
                "\tat com.acme.session.SessionStore.load(SessionStore.java:LINE)",
            ],
        )
    },
    |r| {
        java(
            r,
            &[
                "java.lang.IllegalStateException: ledger is closed",
                "\tat com.acme.ledger.Ledger.append(Ledger.java:LINE)",
            ],
        )
    },
    java_connection,
    java_heap,
    postgres,
    go_test,
    rust_panic,
    segfault,
    terraform,
    curl,
];

fn pytest(r: &mut Random, test: &str, error: &str) -> Failure {
    let text = [
        "=================================== FAILURES ==================================="
            .to_owned(),
        format!("_________________________ {test} __________________________"),
        String::new(),
        format!("    def {test}(client):"),
        format!(">       order = client.create(id=\"{}\")", r.uuid()),
        format!("E       {error}"),
        String::new(),
        format!(
            "tests/test_orders.py:{}: {}",
            r.range(10, 500),
            error.split(':').next().unwrap()
        ),
        "=========================== short test summary info ============================"
            .to_owned(),
        format!("FAILED tests/test_orders.py::{test} - {error}"),
        format!(
            "========================= 1 failed, {} passed in {}.{}s =========================",
            r.range(10, 900),
            r.range(1, 200),
            r.range(10, 99)
        ),
    ];
    step(r, "test", 1, &text)
}

fn go_panic(r: &mut Random, what: &str, function: &str) -> Failure {
    let mut text = vec![format!("panic: {what}")];
    if what.starts_with("runtime error") {
        text.push(format!(
            "[signal SIGSEGV: segmentation violation code=0x1 addr=0x{:x} pc={}]",
            r.range(0, 64) * 8,
            r.address()
        ));
    }
    text.extend([
        String::new(),
        format!("goroutine {} [running]:", r.range(1, 9000)),
        format!(
            "{function}({}, {{{}, {}}})",
            r.address(),
            r.address(),
            r.address()
        ),
        format!(
            "\t{}/main.go:{} +0x{}",
            r.directory(),
            r.range(10, 700),
            r.hex(3)
        ),
        "net/http.HandlerFunc.ServeHTTP(...)".to_owned(),
        format!(
            "\t/usr/local/go/src/net/http/server.go:{} +0x{}",
            r.range(2000, 2300),
            r.hex(2)
        ),
        format!(
            "created by net/http.(*Server).Serve in goroutine {}",
            r.range(1, 99)
        ),
        format!(
            "\t/usr/local/go/src/net/http/server.go:{} +0x{}",
            r.range(2300, 3300),
            r.hex(3)
        ),
    ]);
    if r.chance(0.5) {
        text.push("exit status 2".to_owned());
    }
    step(r, "run", 2, &text)
}

fn python_http(r: &mut Random, status: u32, phrase: &str) -> Failure {
    let directory = r.directory();
    let text = [
        "Traceback (most recent call last):".to_owned(),
        format!(
            "  File \"{directory}/sync.py\", line {}, in <module>",
            r.range(10, 300)
        ),
        "    fetch(sys.argv[1])".to_owned(),
        format!(
            "  File \"{directory}/sync.py\", line {}, in fetch",
            r.range(10, 300)
        ),
        "    response.raise_for_status()".to_owned(),
        format!(
            "  File \"/usr/lib/python3.{}/site-packages/requests/models.py\", line {}, in raise_for_status",
            r.range(8, 13),
            r.range(900, 1100)
        ),
        "    raise HTTPError(http_error_msg, response=self)".to_owned(),
        format!(
            "requests.exceptions.HTTPError: {status} {phrase} for url: https://inventory.example.com/v2/items/{}?request_id={}",
            r.range(1, 99_999),
            r.uuid()
        ),
    ];
    step(r, "sync", 1, &text)
}

fn python_module(r: &mut Random) -> Failure {
    let text = [
        "Traceback (most recent call last):".to_owned(),
        format!(
            "  File \"{}/manage.py\", line {}, in <module>",
            r.directory(),
            r.range(2, 30)
        ),
        "    import psycopg2".to_owned(),
        "ModuleNotFoundError: No module named 'psycopg2'".to_owned(),
    ];
    step(r, "migrate", 1, &text)
}

fn java_frames(r: &mut Random) -> Vec<String> {
    vec![
        format!(
            "\tat com.acme.web.Dispatcher.run(Dispatcher.java:{})",
            r.range(20, 400)
        ),
        format!(
            "\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:{})",
            r.range(1100, 1200)
        ),
        format!(
            "\tat java.base/java.lang.Thread.run(Thread.java:{})",
            r.range(800, 900)
        ),
    ]
}

fn java(r: &mut Random, text: &[&str; 2]) -> Failure {
    let mut all = vec![
        format!(
            "{} ERROR [http-nio-8080-exec-{}] c.a.w.Dispatcher - request {} failed",
            r.log_time(),
            r.range(1, 200),
            r.uuid()
        ),
        format!(
            "Exception in thread \"worker-{}\" {}",
            r.range(1, 64),
            text[0]
        ),
        text[1].replace("LINE", &r.range(20, 900).to_string()),
    ];
    all.extend(java_frames(r));
    step(r, "verify", 1, &all)
}

fn java_connection(r: &mut Random) -> Failure {
    let mut all = vec![format!(
        "{} ERROR c.a.batch.Importer - batch {} failed",
        r.log_time(),
        r.range(1, 90_000)
    )];
    all.push("com.acme.batch.ImportException: cannot reach the broker".to_owned());
    all.extend(java_frames(r));
    all.push(format!(
        "Caused by: java.net.ConnectException: Connection refused: broker.messaging.svc/{}",
        r.socket().replace(['[', ']'], "")
    ));
    all.push(format!(
        "\tat java.base/sun.nio.ch.Net.pollConnect(Net.java:{})",
        r.range(20, 900)
    ));
    all.push(format!("\t... {} more", r.range(3, 40)));
    step(r, "import", 1, &all)
}

fn java_heap(r: &mut Random) -> Failure {
    let mut text = vec![format!(
        "java.lang.OutOfMemoryError: Java heap space\nDumping heap to java_pid{}.hprof ...\nHeap dump file created [{} bytes in {}.{} secs]",
        r.range(1, 900),
        r.range(1_000_000, 9_000_000_000),
        r.range(1, 20),
        r.range(100, 999)
    )];
    text.extend(java_frames(r));
    step(r, "verify", 3, &text)
}

fn postgres(r: &mut Random) -> Failure {
    let text = [
        format!(
            "{} UTC [{}] ERROR:  deadlock detected",
            r.log_time().replace(',', "."),
            r.range(20, 9000)
        ),
        format!(
            "DETAIL:  Process {} waits for ShareLock on transaction {}; blocked by process {}.",
            r.range(20, 9000),
            r.range(1000, 99_999_999),
            r.range(20, 9000)
        ),
    ];
    step(r, "migrate", 3, &text)
}

fn go_test(r: &mut Random) -> Failure {
    let text = [
        "=== RUN   TestLeaseIsRenewed".to_owned(),
        format!(
            "    lease_test.go:{}: lease {} expired after {}, want renewal",
            r.range(20, 300),
            r.uuid(),
            r.seconds()
        ),
        format!(
            "--- FAIL: TestLeaseIsRenewed ({:.2}s)",
            r.between(0.0, 30.0)
        ),
        "FAIL".to_owned(),
        format!("FAIL\tgithub.com/acme/lease\t{}", r.seconds()),
        "FAIL".to_owned(),
    ];
    step(r, "test", 1, &text)
}

fn rust_panic(r: &mut Random) -> Failure {
    let text = [
        format!(
            "thread 'tokio-runtime-worker' panicked at src/index/merge.rs:{}:{}:",
            r.range(10, 900),
            r.range(5, 60)
        ),
        format!(
            "index out of bounds: the len is {} but the index is {}",
            r.range(1, 100),
            r.range(100, 900)
        ),
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace".to_owned(),
    ];
    step(r, "reindex", 101, &text)
}

fn segfault(r: &mut Random) -> Failure {
    let text = [format!(
        "{}/run.sh: line {}: {:5} Segmentation fault      (core dumped) ./simulate --seed {}",
        r.directory(),
        r.range(3, 60),
        r.range(10, 30_000),
        r.range(1, 1_000_000)
    )];
    step(r, "simulate", 139, &text)
}

fn terraform(r: &mut Random) -> Failure {
    let text = [
        "╷".to_owned(),
        "│ Error: Error acquiring the state lock".to_owned(),
        "│ ".to_owned(),
        format!(
            "│ Error message: operation error DynamoDB: PutItem, https response error StatusCode: 400, RequestID: {}, ConditionalCheckFailedException: The conditional request failed",
            r.upper(52)
        ),
        "│ Lock Info:".to_owned(),
        format!("│   ID:        {}", r.uuid()),
        format!("│   Who:       {}@{}", r.word(), r.node()),
        format!("│   Created:   {}", r.http_time()),
        "╵".to_owned(),
    ];
    step(r, "apply", 1, &text)
}

fn curl(r: &mut Random) -> Failure {
    let text = [
        "  % Total    % Received % Xferd  Average Speed   Time".to_owned(),
        format!(
            "curl: (28) Failed to connect to artifacts.example.com port 443 after {} ms: Connection timed out",
            r.range(100_000, 200_000)
        ),
    ];
    step(r, "fetch", 28, &text)
}
