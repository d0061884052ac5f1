//! The plugin of kubectl; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    hindsight_controller::cli::plugin::main(std::env::args())
}
