//! The image: what the Dockerfile copies is made by a script that is run here too. `make image-test`
//! builds it with a container engine, unpacks it and runs its programs.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::{arguments, container, overlay, pods, render::root};

const PROGRAMS: [&str; 4] = [
    "hindsight",
    "hindsight-watcher",
    "hindsight-workflow",
    "kubectl-workflow",
];

fn dockerfile() -> String {
    std::fs::read_to_string(root().join("image/Dockerfile")).unwrap()
}

fn files(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{below}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &path, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn the_image_holds_the_programs_their_libraries_and_no_shell() {
    let programs = Path::new(env!("CARGO_BIN_EXE_hindsight")).parent().unwrap();
    for program in PROGRAMS {
        let path = programs.join(program);
        assert!(
            path.exists(),
            "{} is missing: cargo build --workspace --bins",
            path.display()
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let rootfs = folder.path().join("rootfs");
    let made = Command::new("sh")
        // Only root may give files away.
        .args(["-c", "chown() { :; }; . \"$0\" \"$@\""])
        .arg(root().join("image/rootfs"))
        .args([programs, &rootfs])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let mut found = BTreeSet::new();
    files(&rootfs, "", &mut found);
    let bin = found
        .iter()
        .filter_map(|path| path.strip_prefix("/usr/bin/"));
    assert_eq!(bin.collect::<Vec<_>>(), PROGRAMS);
    assert!(!found.iter().any(|path| path.starts_with("/bin/")));
    for library in [
        "libc.so.6",
        "libgcc_s.so.1",
        "ca-certificates.crt",
        "passwd",
    ] {
        assert!(
            found.iter().any(|path| path.ends_with(library)),
            "{library}: {found:?}"
        );
    }
    assert!(
        found.iter().any(|path| path.contains("/ld-linux")),
        "{found:?}"
    );
}

#[test]
fn the_image_runs_what_pods_run_as_nobody_in_particular() {
    let text = dockerfile();
    let line = |start: &str| {
        let found = text.lines().rfind(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start}"))[start.len()..].trim()
    };
    assert_eq!(line("FROM "), "scratch");
    assert_eq!(line("USER "), "65532:65532");
    assert_eq!(line("ENTRYPOINT "), "[\"/usr/bin/hindsight\"]");
    let objects = overlay("complete");
    for (name, pod) in pods(&objects) {
        assert_eq!(pod["spec"]["securityContext"]["runAsUser"], 65532, "{name}");
        let command = container(pod)["command"][0].as_str();
        let expected = (name == "hindsight-watcher").then_some("/usr/bin/hindsight-watcher");
        assert_eq!(command, expected, "{name}");
    }
    assert_eq!(
        arguments(container(pods(&objects)["hindsight"]))[0],
        "serve"
    );
    assert_eq!(line("COPY "), "rootfs /");
}
