//! The program `convect`: see the library for what it does.

fn main() -> std::process::ExitCode {
    cli::main()
}
