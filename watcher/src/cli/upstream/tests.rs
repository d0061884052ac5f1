//! What becomes of the flags of Tekton Results' watcher.

use super::translate;

#[track_caller]
fn check(args: &str, expected: &str, notes: usize) {
    let translated = translate(args.split_whitespace().map(str::to_owned), |_| false);
    assert_eq!(
        (translated.args.join(" ").as_str(), translated.notes.len()),
        (expected, notes)
    );
}

#[test]
fn flags_of_upstream_become_ours() {
    check("-namespace ci", "--namespace=ci", 0);
    check(
        "-namespace=ci --summary_labels=a,b",
        "--namespace=ci --summary-labels=a,b",
        0,
    );
    check(
        "-check_owner=false -disable_crd_update",
        "--check-owner=false --no-annotations=true",
        0,
    );
    check(
        "-disable_storing_incomplete_runs=true",
        "--store-incomplete=false",
        0,
    );
    check(
        "-completed_run_grace_period 150s",
        "--collect=true --grace=150s",
        0,
    );
    for never in ["0", "0s", "0m", "0h", "0ms", "0m0s", "-0s"] {
        check(&format!("-completed_run_grace_period={never}"), "", 0);
    }
    check(
        "-completed_run_grace_period=never",
        "--collect=true --grace=never",
        0,
    );
    check(
        "-api_addr api:8080 -auth_mode insecure",
        "--server=http://api:8080",
        0,
    );
    check(
        "-auth_mode token -api_addr=api:8080",
        "--server=https://api:8080 --token-file=/var/run/secrets/kubernetes.io/serviceaccount/token",
        0,
    );
    check("-auth_mode token -token x", "--token=x", 0);
    // Empty is upstream's default.
    check(
        "-label_selector= --namespace= -summary_labels=",
        "--summary-labels=",
        0,
    );
}

#[test]
fn what_has_no_meaning_is_accepted_and_said() {
    check(
        "-store_deadline 10m -logs_api=false -store_event -qps=50 -disable-ha",
        "--finalizers=true --store-deadline=10m --logs=off --store-events=true --writes-per-second=150",
        1,
    );
    check("-logs_api -logs_timestamps", "--logs=finished", 1);
    check(
        "-logs_api=true -update_log_timeout 300s",
        "--logs=finished",
        1,
    );
    check(
        "-qps 0 -burst=0",
        "--writes-per-second=15 --writes-burst=30",
        0,
    );
    check(
        "-qps=-1 -burst 20",
        "--writes-per-second=100000 --writes-burst=60",
        0,
    );
}

#[test]
fn authorities_are_trusted_where_upstream_has_them() {
    let args = |args: &str| {
        let args = args.split_whitespace().map(str::to_owned);
        translate(args, |path| path == "/etc/tls/tls.crt").args
    };
    for secure in ["token -token=t", "google"] {
        let args = args(&format!("-auth_mode {secure}"));
        assert!(
            args.contains(&"--server-ca=/etc/tls/tls.crt".to_owned()),
            "{args:?}"
        );
    }
    let own = "-auth_mode token -token=t --server-ca=own.pem";
    assert_eq!(args(own), ["--token=t", "--server-ca=own.pem"]);
    assert!(args("-auth_mode insecure").is_empty());
}

#[test]
fn our_own_flags_stay_as_they_are() {
    for args in [
        "--namespace ci",
        "--server http://x:1 --collect",
        "-h",
        "--help",
        "--threadiness=3",
        "--config f --no-such-flag",
        "-V",
    ] {
        check(args, args, 0);
    }
}

#[test]
fn a_value_that_is_missing_is_left_to_the_parser() {
    check("-namespace", "--namespace", 0);
}
