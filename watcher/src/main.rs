//! The program; everything is in the library.

use std::process::ExitCode;

use rustix::{fs::Mode, process::umask};

fn main() -> ExitCode {
    // The spool holds payloads: files are their owner's alone.
    umask(Mode::RWXG | Mode::RWXO);
    hindsight_watcher::cli::main(std::env::args())
}
