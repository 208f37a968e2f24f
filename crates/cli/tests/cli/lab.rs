//! `convect lab` runs the program beside it.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn lab(folder: &tempfile::TempDir) -> Output {
    let program = folder.path().join("convect");
    let mut command = Command::new(program);
    command.args(["lab", "replay", "--help", "a b"]);
    command.output().unwrap()
}

#[test]
fn lab_passes_arguments_and_exit_code_through() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_convect"), folder.path().join("convect")).unwrap();
    let missing = lab(&folder);
    let said = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        said.contains("convect-lab is not installed: install the package"),
        "{said}"
    );
    let program = folder.path().join("convect-lab");
    std::fs::write(&program, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let found = lab(&folder);
    let said = String::from_utf8(found.stdout).unwrap();
    assert_eq!(
        (&said[..], found.status.code()),
        ("<replay><--help><a b>", Some(7))
    );
}
