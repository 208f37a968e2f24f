//! The program of the simulation: everything is in the library, so that the tests and the program are one build.

use std::process::ExitCode;

fn main() -> ExitCode {
    sim::main()
}
