//! The program `convect`: see the library.

use mimalloc::MiMalloc;

/// mimalloc: buffers of a request are allocated on one thread and freed on another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}
