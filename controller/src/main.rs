//! The program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hindsight_controller::cli::main(std::env::args())
}
