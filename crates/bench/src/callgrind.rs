//! Telling callgrind what to count: the client requests of Valgrind's manual, section 3.1, which do nothing
//! elsewhere.

use std::ffi::CString;

/// Whether a program runs under Valgrind.
const RUNNING: u64 = 0x1001;
/// Where callgrind's own begin: `CT`.
const BASE: u64 = 0x4354_0000;
const ZERO: u64 = BASE + 1;
const DUMP_AT: u64 = BASE + 3;
const START: u64 = BASE + 4;

/// A request with one argument; gives 0 outside of Valgrind.
#[cfg(target_arch = "x86_64")]
fn request(code: u64, argument: u64) -> u64 {
    let words = [code, argument, 0, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: to a processor these are rotations by 128 bits in all and an exchange of a register with itself;
    // Valgrind knows the sequence, reads the words, which live through it, and answers in rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

/// Other processors have other sequences, and tables of their own.
#[cfg(not(target_arch = "x86_64"))]
fn request(_code: u64, _argument: u64) -> u64 {
    0
}

/// Whether instructions are counted.
pub fn is_counting() -> bool {
    request(RUNNING, 0) > 0
}

/// Begins to count from nothing, in all threads.
pub fn begin() {
    request(START, 0);
    request(ZERO, 0);
}

/// Leaves a dump for each thread that says `name` and for how many requests its figure is.
pub fn end(name: &str, requests: u64) {
    let text = CString::new(format!("{name} {requests}")).expect("names have no zeroes");
    request(DUMP_AT, text.as_ptr() as u64);
}
