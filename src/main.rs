//! The `hindsight` binary.

use rustix::{fs::Mode, process::umask};

fn main() -> std::process::ExitCode {
    // What is written holds payloads, and the key of page tokens: files are their owner's alone.
    umask(Mode::RWXG | Mode::RWXO);
    hindsight::cli::main()
}
