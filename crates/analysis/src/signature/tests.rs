//! What signatures keep, what they drop, and what they cost.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn template(text: &str) -> String {
    Signature::of_text(text).map_or_else(String::new, |it| it.template().to_owned())
}

#[track_caller]
fn same(a: &str, b: &str) {
    assert_eq!(
        Signature::of_text(a).map(|it| it.key()),
        Signature::of_text(b).map(|it| it.key()),
        "{} / {}",
        template(a),
        template(b)
    );
}

#[track_caller]
fn differ(a: &str, b: &str) {
    assert_ne!(
        Signature::of_text(a).map(|it| it.key()),
        Signature::of_text(b).map(|it| it.key()),
        "{}",
        template(a)
    );
}

#[test]
fn values_become_placeholders() {
    for (text, expected) in [
        (
            "TaskRun \"x-abc12\" failed to finish within \"1h0m0s\"",
            "TaskRun \"<name>\" failed to finish within \"<duration>\"",
        ),
        (
            "dial tcp 10.1.2.3:443: i/o timeout",
            "dial tcp <addr>: i/o timeout",
        ),
        (
            "dial tcp [fd00::1]:443: i/o timeout",
            "dial tcp <addr>: i/o timeout",
        ),
        (
            "GET https://api.example.com/v1/x?id=7: 404 Not Found",
            "GET https://api.example.com/<path>: 404 Not Found",
        ),
        (
            "open /tmp/build-123/config.yaml: no such file or directory",
            "open <path>/config.yaml: no such file or directory",
        ),
        (
            "checkout of 3f2a9c1d4e5f60718293a4b5c6d7e8f901234567 at 2024-05-01T12:00:00Z",
            "checkout of <hash> at <time>",
        ),
        (
            "expired on Wed, 01 May 2024 12:34:56 GMT",
            "expired on <time>",
        ),
        (
            "pull of docker.io/library/golang:1.22@sha256:3f2a9c1d4e5f",
            "pull of docker.io/library/golang:<number>@<hash>",
        ),
        (
            "pvc-2b6c1f0e-8d3a-4c5b-9e7f-1a2b3c4d5e6f is lost",
            "pvc-<id> is lost",
        ),
        (
            "fatal: couldn't find remote ref refs/heads/fix/x-12",
            "fatal: couldn't find remote ref refs/heads/<name>",
        ),
        ("truncated to 20,000 chars", "truncated to <number> chars"),
        ("open C:\\build\\42\\a.txt: denied", "open <path> denied"),
        (
            "\u{1b}[31merror\u{1b}[0m: 3 tests failed",
            "error: <number> tests failed",
        ),
    ] {
        assert_eq!(template(text), expected);
    }
}

#[test]
fn what_tells_causes_apart_stays() {
    differ("exited with code 137", "exited with code 1");
    differ(
        "command terminated with exit status 2",
        "command terminated with exit status 127",
    );
    differ("HTTP/1.1 404", "HTTP/2 503");
    differ(
        "server returned HTTP status 429",
        "server returned HTTP status 503",
    );
    differ(
        "The requested URL returned error: 403",
        "The requested URL returned error: 500",
    );
    differ(
        "error[E0308]: mismatched types",
        "error[E0277]: mismatched types",
    );
    differ(
        "error TS2304: cannot resolve",
        "error TS2322: cannot resolve",
    );
    differ("curl: (6) failed", "curl: (28) failed");
    differ(
        "\"step-build\" exited with code 1",
        "\"step-test\" exited with code 1",
    );
    differ(
        "missing parameters: [revision]",
        "missing parameters: [image]",
    );
    differ(
        "serviceaccount \"builder\" not found",
        "serviceaccount \"deployer\" not found",
    );
    differ(
        "exec: \"/usr/bin/git\": not found",
        "exec: \"/usr/bin/jq\": not found",
    );
    differ(
        "open /a/config.yaml: no such file",
        "open /a/secret.json: no such file",
    );
    differ(
        "Could not resolve host: github.com",
        "Could not resolve host: gitlab.com",
    );
    differ("signal 9", "signal 11");
    differ("[Errno 13] cannot read", "[Errno 28] cannot read");
}

#[test]
fn what_differs_from_run_to_run_goes() {
    same("HTTP/1.1 404", "HTTP/2 404");
    same(
        "pods \"a-x7k2p-pod\" not found",
        "pods \"b-c-wvzkt-pod\" not found",
    );
    same("Pod team-a/web-x7k2p was lost", "Pod dev/api-1234 was lost");
    same("commit 3f2a9c1 is missing", "commit 1234567 is missing");
    same("1 error found", "2 errors found");
    same(
        "job-x7k2p: started by alice@example.com",
        "job-zzkvw: started by bob@example.com",
    );
    same("limits.cpu=500m, used 2", "limits.cpu=2, used 500m");
    same(
        "0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient memory. preemption: 0/5 nodes are available.",
        "0/9 nodes are available: 1 Insufficient memory, 8 Insufficient cpu. preemption: none.",
    );
    let exited = |image: &str, pod: &str| {
        format!(
            "\"step-build\" exited with code 1 (image: \"docker.io/{image}\"); for logs run: kubectl -n a logs {pod} -c step-build"
        )
    };
    same(
        &exited("a/b@sha256:12ab", "x"),
        &exited("c/d@sha256:34cd", "y"),
    );
    same(
        &exited("a/b", "x"),
        "\"step-build\" exited with code 1: Error",
    );
}

/// Programs that the corpus of the integration tests does not have.
#[test]
fn texts_of_other_programs_are_read_too() {
    for (text, expected) in [
        (
            "Operation cannot be fulfilled on taskruns.tekton.dev \"build-x7k2p\": the object has been modified",
            "Operation cannot be fulfilled on taskruns.tekton.dev \"<name>\": the object has been modified",
        ),
        (
            "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total)",
            "CUDA out of memory. Tried to allocate <size> (GPU <number>; <size> total)",
        ),
        (
            "error NU1101: Unable to find package Acme.Core. [/src/App/App.csproj]",
            "error NU1101: Unable to find package Acme.Core. [<path>]",
        ),
        (
            "/tmp/scripts/script-0-x7k2p: line 3: yq: command not found",
            "<path>: line <number>: yq: command not found",
        ),
        (
            "failed to calculate checksum of ref moby::s9vuvaoyhdbf7wq3k4q1qrlz0: \"/package.json\": not found",
            "failed to calculate checksum of ref moby::<id>: \"<path>/package.json\": not found",
        ),
        (
            "unattached volumes=[kube-api-access-x7k2p cache]: timed out after 30 seconds",
            "unattached volumes=[kube-api-access-<id> cache]: timed out after <duration>",
        ),
        (
            "fatal: [10.0.1.2]: UNREACHABLE! => {\"msg\": \"connect to host 10.0.1.2 port 22\"}",
            "fatal: [<addr>]: UNREACHABLE! => {\"msg\": \"connect to host <addr> port <number>\"}",
        ),
        ("ORA-12541: TNS:no listener", "ORA-12541: TNS:no listener"),
    ] {
        assert_eq!(template(text), expected);
    }
}

#[test]
fn the_line_of_a_log_is_found_that_says_most() {
    let of = |log: &str| {
        let signature = Signature::of(&Evidence {
            log_tail: log,
            ..Evidence::default()
        });
        signature
            .map(|it| it.template().to_owned())
            .unwrap_or_default()
    };
    let noise = "12:00:01 INFO failed=0\nWARN retry after error\n";
    let panic = "panic: boom\n\ngoroutine 1 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:1\nmain.run(0x1)\n\t/src/main.go:3\nexit status 2\n";
    assert_eq!(of(&format!("{noise}{panic}")), "panic: boom at main.run");
    assert_eq!(
        of(&format!(
            "{noise}Error: disk is full\nmake: *** [Makefile:3: all] Error 1\n{noise}"
        )),
        "Error: disk is full"
    );
    assert_eq!(
        of("start\nError:\nno route to the registry\n"),
        "Error: no route to the registry"
    );
    assert_eq!(of("start\nall is well\n"), "");
}

#[test]
fn nothing_known_has_no_signature() {
    assert_eq!(Signature::of(&Evidence::default()), None);
    assert_eq!(Signature::of_text(" \n\t"), None);
}

#[test]
fn the_first_step_that_failed_is_named() {
    let exit = |step, code, reason| Exit { step, code, reason };
    let exits = [
        exit("fetch", 0, "Completed"),
        exit("build", 137, "OOMKilled"),
        exit("push", 1, "Skipped"),
    ];
    let signature = Signature::of(&Evidence {
        exits: &exits,
        ..Evidence::default()
    })
    .unwrap();
    assert_eq!(
        signature.template(),
        "step build: exit code 137 (OOMKilled)"
    );
}

/// A key is stored: a change that changes this one raises [`VERSION`].
#[test]
fn the_keys_of_version_2_stay() {
    let signature = Signature::of_text("\"step-build\" exited with code 1").unwrap();
    assert_eq!(
        (VERSION, signature.key().to_string().as_str()),
        (2, "27bqah3c5c7")
    );
}

/// Texts in which the forms occur that the reader knows.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,12}",
        "[a-f0-9.:/@=,-]{1,24}",
        "(error|code|exit|pod|task|id|request|run|May|Wed|at|failed) ?",
        "[ \n\t\"'`(){}<>\\[\\]\\\\;,|…]{1,3}",
        "(<id>|<number>|<time>|<path>|<addr>|http://|refs/heads/|sha256:|C:\\\\|0x|\u{1b}\\[1m)",
        "[0-9]{1,4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(Z|,[0-9]{3})?",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_text_has_a_bounded_signature_that_is_its_own(text in texts(), log in texts()) {
        let message = Evidence { message: &text, log_tail: &log, ..Evidence::default() };
        let vague = Evidence { message: "exited with code 1", ..message };
        for signature in [&message, &vague].into_iter().filter_map(Signature::of) {
            prop_assert!(signature.template().chars().count() <= MAX_TEMPLATE);
            prop_assert!(!signature.template().contains(char::is_control));
            let again = Signature::of_text(signature.template()).unwrap();
            prop_assert_eq!(again.template(), signature.template());
            prop_assert_eq!(again.key(), signature.key());
        }
    }
}

#[test]
fn a_line_that_counts_failures_says_less_than_the_failure() {
    for summary in [
        "Tests:       1 failed, 30 passed, 31 total",
        "✖ 1 problem (1 error, 0 warnings)",
        "1 migration failed, nothing was changed",
        "==== 3 failures",
    ] {
        let log = format!("start\nerror: column total is missing\n{summary}\n");
        let evidence = Evidence {
            log_tail: &log,
            ..Evidence::default()
        };
        let signature = Signature::of(&evidence).unwrap();
        assert_eq!(
            signature.template(),
            "error: column total is missing",
            "{summary}"
        );
    }
    let one = Signature::of_text("exited\nattempt 3 failed: connection refused\n").unwrap();
    assert!(one.template().contains("connection refused"));
}

#[test]
fn time_grows_no_faster_than_the_text() {
    let hostile = [
        "a", "1", "/", "\"", "<", "[", "a-", "1.", "1:", "a/", "1,", "x@", "::", "0x", "id ",
        "<time> ", "<id>, ", "May 1 ",
    ];
    for piece in hostile {
        let took = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let start = Instant::now();
            std::hint::black_box(template::line(&text));
            start.elapsed().as_secs_f64()
        };
        // Eight times the text; a quadratic reader takes 64 times as long, whatever runs beside it.
        let linear = (0..20).any(|_| took(1 << 15) < took(1 << 12) * 24.0);
        assert!(linear, "{piece:?}");
    }
}

#[test]
fn no_more_is_read_than_the_bounds_say() {
    let text = "x1 ".repeat(10_000_000);
    let start = Instant::now();
    let signature = Signature::of(&Evidence {
        message: &text,
        log_tail: &text,
        reason: &text,
        ..Evidence::default()
    });
    assert!(start.elapsed().as_secs_f64() < 2.0);
    assert!(signature.is_some());
}
