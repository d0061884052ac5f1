//! What fetches, compilers, package managers and image builders print.

use super::{Cause, Failure, lines, step};
use crate::random::Random;

pub(super) const CAUSES: &[Cause] = &[
    git_ref,
    git_host,
    go_compile,
    rust_type,
    maven_symbol,
    npm_missing,
    npm_peer,
    pip_version,
    image_denied,
    image_full,
    linker,
    helm,
    forbidden,
];

fn git_ref(r: &mut Random) -> Failure {
    let text = [format!(
        "{{\"level\":\"error\",\"ts\":{}.{},\"caller\":\"git/git.go:{}\",\"msg\":\"Error running git [fetch --recurse-submodules=yes --depth=1 origin --update-head-ok --force refs/heads/{}/{}]: exit status 128\\nfatal: couldn't find remote ref refs/heads/{}\\n\"}}",
        r.range(1_700_000_000, 1_800_000_000),
        r.range(1, 999_999),
        r.range(40, 90),
        r.word(),
        r.run(),
        r.run()
    )];
    step(r, "clone", 1, &text)
}

fn git_host(r: &mut Random) -> Failure {
    let text = [
        format!("Cloning into '{}'...", r.directory()),
        format!(
            "fatal: unable to access 'https://github.com/acme/{}.git/': Could not resolve host: github.com",
            r.word()
        ),
    ];
    step(r, "clone", 128, &text)
}

fn go_compile(r: &mut Random) -> Failure {
    let text = [
        "# github.com/acme/shop/internal/pricing".to_owned(),
        format!(
            "internal/pricing/discount.go:{}:{}: undefined: roundHalfEven",
            r.range(3, 400),
            r.range(2, 60)
        ),
        format!("make: *** [Makefile:{}: build] Error 1", r.range(3, 90)),
    ];
    step(r, "build", 1, &text)
}

fn rust_type(r: &mut Random) -> Failure {
    let line = r.range(2, 600);
    let text = [
        "error[E0308]: mismatched types".to_owned(),
        format!("   --> src/codec.rs:{line}:{}", r.range(1, 60)),
        "    |".to_owned(),
        format!("{line} |     let width: u32 = header.len();"),
        "    |                ---   ^^^^^^^^^^^^ expected `u32`, found `usize`".to_owned(),
        String::new(),
        "For more information about this error, try `rustc --explain E0308`.".to_owned(),
        format!(
            "error: could not compile `codec` (lib) due to 1 previous error; {} warnings emitted",
            r.range(2, 30)
        ),
    ];
    step(r, "build", 101, &text)
}

fn maven_symbol(r: &mut Random) -> Failure {
    let directory = r.directory();
    let text = [
        "[ERROR] COMPILATION ERROR : ".to_owned(),
        format!("[ERROR] {directory}/src/main/java/com/acme/OrderService.java:[{},{}] cannot find symbol", r.range(5, 400), r.range(5, 60)),
        "  symbol:   method getTaxRate()".to_owned(),
        "[INFO] BUILD FAILURE".to_owned(),
        format!("[INFO] Total time:  {}.{} s", r.range(2, 90), r.range(100, 999)),
        format!("[INFO] Finished at: {}", r.time()),
        format!("[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:compile (default-compile) on project {}: Compilation failure", r.word()),
        "[ERROR] ".to_owned(),
        "[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.".to_owned(),
        "[ERROR] Re-run Maven using the -X switch to enable full debug logging.".to_owned(),
        "[ERROR] ".to_owned(),
        "[ERROR] For more information about the errors and possible solutions, please read the following articles:".to_owned(),
        "[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/MojoFailureException".to_owned(),
    ];
    step(r, "package", 1, &text)
}

fn npm_end(r: &mut Random) -> [String; 3] {
    let (date, clock) = (r.range(10, 29), r.range(10, 60));
    [
        String::new(),
        "npm ERR! A complete log of this run can be found in:".to_owned(),
        format!(
            "npm ERR!     /root/.npm/_logs/2025-03-{date}T11_{clock}_07_{}Z-debug-0.log",
            r.range(100, 999)
        ),
    ]
}

fn npm_missing(r: &mut Random) -> Failure {
    let version = r.version();
    let mut text = vec![
        "npm ERR! code E404".to_owned(),
        "npm ERR! 404 Not Found - GET https://registry.npmjs.org/@acme%2fui-kit - Not found"
            .to_owned(),
        "npm ERR! 404 ".to_owned(),
        format!("npm ERR! 404  '@acme/ui-kit@{version}' is not in this registry."),
        "npm ERR! 404 ".to_owned(),
        "npm ERR! 404 Note that you can also install from a".to_owned(),
        "npm ERR! 404 tarball, folder, http url, or git folder.".to_owned(),
    ];
    text.extend(npm_end(r));
    step(r, "install", 1, &text)
}

fn npm_peer(r: &mut Random) -> Failure {
    let mut text = vec![
        "npm ERR! code ERESOLVE".to_owned(),
        "npm ERR! ERESOLVE unable to resolve dependency tree".to_owned(),
        "npm ERR! ".to_owned(),
        format!("npm ERR! Found: react@{}", r.version()),
        "npm ERR! node_modules/react".to_owned(),
        format!(
            "npm ERR!   react@\"^{}\" from the root project",
            r.version()
        ),
        "npm ERR! Fix the upstream dependency conflict, or retry".to_owned(),
        "npm ERR! this command with --force or --legacy-peer-deps".to_owned(),
    ];
    text.extend(npm_end(r));
    step(r, "install", 1, &text)
}

fn pip_version(r: &mut Random) -> Failure {
    let versions: Vec<_> = (0..r.range(3, 9)).map(|_| r.version()).collect();
    let text = [
        format!(
            "ERROR: Could not find a version that satisfies the requirement acme-models=={} (from versions: {})",
            r.version(),
            versions.join(", ")
        ),
        format!(
            "ERROR: No matching distribution found for acme-models=={}",
            r.version()
        ),
    ];
    step(r, "install", 1, &text)
}

fn image_denied(r: &mut Random) -> Failure {
    let text = [
        format!("#{} pushing layers {} done", r.range(9, 30), r.seconds()),
        format!(
            "#{} ERROR: failed to push registry.example.com/shop/web:{}: denied: requested access to the resource is denied",
            r.range(9, 30),
            r.hex(7)
        ),
        "------".to_owned(),
        " > exporting to image:".to_owned(),
        "------".to_owned(),
        format!(
            "ERROR: failed to solve: failed to push registry.example.com/shop/web:{}: denied: requested access to the resource is denied",
            r.hex(7)
        ),
    ];
    step(r, "image", 1, &text)
}

fn image_full(r: &mut Random) -> Failure {
    let text = [format!(
        "error building image: error building stage: failed to get filesystem from image: write {}/layer-{}.tar: no space left on device",
        r.directory(),
        r.range(1, 30)
    )];
    step(r, "image", 1, &text)
}

fn linker(r: &mut Random) -> Failure {
    let text = [
        format!(
            "/usr/bin/ld: {}/CMakeFiles/app.dir/main.cpp.o: in function `main':",
            r.directory()
        ),
        format!(
            "main.cpp:(.text+{}): undefined reference to `crypto::sign(std::string const&)'",
            r.address()
        ),
        "collect2: error: ld returned 1 exit status".to_owned(),
        format!(
            "make[{}]: *** [CMakeFiles/app.dir/build.make:{}: app] Error 1",
            r.range(1, 4),
            r.range(80, 200)
        ),
        format!("make: *** [Makefile:{}: all] Error 2", r.range(80, 200)),
    ];
    step(r, "build", 2, &text)
}

fn helm(r: &mut Random) -> Failure {
    let text = [
        format!(
            "wait.go:{}: {} [debug] Deployment is not ready: {}/{}. {} out of 3 expected pods are ready",
            r.range(100, 500),
            r.go_time(),
            r.namespace(),
            r.word(),
            r.range(0, 3)
        ),
        "Error: UPGRADE FAILED: timed out waiting for the condition".to_owned(),
    ];
    step(r, "deploy", 1, &text)
}

fn forbidden(r: &mut Random) -> Failure {
    let ns = r.namespace();
    let mut text = lines(["deployment.apps/web unchanged"]);
    text.push(format!("Error from server (Forbidden): error when creating \"{}/ingress.yaml\": ingresses.networking.k8s.io is forbidden: User \"system:serviceaccount:{ns}:deployer\" cannot create resource \"ingresses\" in API group \"networking.k8s.io\" in the namespace \"{ns}\"", r.directory()));
    step(r, "deploy", 1, &text)
}
