//! The program `convect`: see the library for what it does.

use mimalloc::MiMalloc;

/// A request on its way takes a few pieces of memory from one thread's and gives them back on it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
