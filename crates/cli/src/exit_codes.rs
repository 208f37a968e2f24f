//! What the exit codes of each command mean: for `--help` and the manual pages.

/// Exit codes in ascending order, each with its meaning.
pub type ExitCodes = &'static [(u8, &'static str)];

const CLIENT: ExitCodes = &[
    (0, "success"),
    (1, "failed"),
    (2, "wrong usage"),
    (3, "not found"),
    (4, "exists already, or the drive is in use"),
    (5, "busy"),
    (
        6,
        "refused without an option such as --force or --yes, or to this user",
    ),
    (7, "no daemon reached, or its certificate is not trusted"),
    (130, "interrupted with Ctrl-C"),
];
const LOCAL: ExitCodes = &[(0, "success"), (1, "failed"), (2, "wrong usage")];
const CHECK: ExitCodes = &[
    (0, "the pool is consistent"),
    (1, "errors were found, no data is lost"),
    (2, "data is lost, or wrong usage"),
    (8, "the pool could not be checked"),
];
const RESTORE: ExitCodes = &[
    (0, "everything was copied"),
    (
        2,
        "some blocks were unreadable (listed, and left as holes), or wrong usage",
    ),
    (8, "nothing was copied"),
];
const OFFLINE: ExitCodes = &[
    (0, "success"),
    (2, "wrong usage"),
    (6, "not confirmed"),
    (8, "the pool could not be read"),
];
const LAB: ExitCodes = &[
    (0, "success"),
    (1, "failed, or the program `convect-lab` is not installed"),
    (2, "wrong usage"),
];

/// The exit codes of the command that these words select, without the program's name.
pub fn exit_codes(path: &str) -> ExitCodes {
    match path.split(' ').next() {
        Some("check" | "repair") => CHECK,
        Some("restore") => RESTORE,
        Some("dump" | "reidentify") => OFFLINE,
        Some("lab") => LAB,
        Some("serve" | "completions" | "man") => LOCAL,
        _ => CLIENT,
    }
}
