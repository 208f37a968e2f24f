//! `convect lab` runs the program beside it.

use crate::scripted::copy_program;
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
    let convect = env!("CARGO_BIN_EXE_convect").as_ref();
    copy_program(convect, &folder.path().join("convect"));
    let missing = lab(&folder);
    let said = String::from_utf8(missing.stderr).unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        said.contains("convect-lab is not installed: install the package"),
        "{said}"
    );
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n").unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    copy_program(&script, &folder.path().join("convect-lab"));
    let found = lab(&folder);
    let said = String::from_utf8(found.stdout).unwrap();
    assert_eq!(
        (&said[..], found.status.code()),
        ("<replay><--help><a b>", Some(7))
    );
}
