//! `convect-lab`: demonstrations, benchmarks and torture of a daemon that it starts itself.
//!
//! Responsible for: the workloads, what is measured, and how it is shown.
//! Leaves out: the engine. It is reached only as anybody reaches it: by the `convect` command
//! and through the front ends.

fn main() {
    println!("usage: convect-lab demo|torture|fresh-writes|scale|idle");
}
