//! The `hindsight` binary.

fn main() -> std::process::ExitCode {
    hindsight::cli::main()
}
