//! Drives that cannot be opened are refused with one sentence, and nothing is left behind.

use crate::support::folder::Folder;
use drives::OpenErrorKind::{self, Busy, NotFound, Permission, Syntax, TooSmall, Unsupported};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[track_caller]
fn refused(spec: &str, kind: OpenErrorKind, says: &str) {
    let error = drives::open(spec).expect_err(spec);
    assert_eq!(error.kind, kind, "{spec}: {error}");
    assert!(error.message.contains(says), "{spec}: {error}");
}

#[test]
fn text_that_names_no_drive_is_refused() {
    for (spec, says) in [
        ("", "not a drive"),
        ("sdb", "not a drive"),
        ("floppy:a", "the kinds are file, nvme, ram, null, model"),
        ("file:", "no name"),
        ("file:relative/path", "absolute path"),
        ("file:/tmp/x?colour=red", "the only one is size"),
        ("file:/tmp/x?size=much", "is not a size"),
        ("ram:a b?size=1G", "letters, digits"),
        ("ram:a/b?size=1G", "letters, digits"),
        ("null:x", "null:x?size=1T"),
        ("null:x?size=2000001", "multiple of 4096"),
        ("model:hdd-7200", "add the underlying drive"),
        ("model:hdd-5400:null:x?size=1G", "the profiles are hdd-7200"),
        ("model:hdd-7200,spin=1:null:x?size=1G", "seed=NUMBER"),
        ("model:hdd-7200,seed=x:null:x?size=1G", "seed=NUMBER"),
        ("model:hdd-7200,iops=0:null:x?size=1G", "iops=NUMBER"),
        (
            "model:ssd-sata,iops=1,iops=2:null:x?size=1G",
            "each at most once",
        ),
        (
            "model:hdd-7200:model:ssd-sata:null:x?size=1G",
            "cannot be based on another model",
        ),
    ] {
        refused(spec, Syntax, says);
        assert_eq!(drives::canonical(spec).unwrap_err().kind, Syntax, "{spec}");
        assert_eq!(drives::found_on(spec).unwrap_err().kind, Syntax, "{spec}");
    }
}

#[test]
fn what_is_there_and_cannot_be_a_drive_is_refused() {
    let folder = Folder::new();
    let at = folder.path().display();
    fs::write(folder.path().join("tiny"), [0; 4096]).unwrap();
    refused(&format!("file:{at}"), Unsupported, "is a directory");
    refused(
        "/dev/null",
        Unsupported,
        "neither a regular file nor a block device",
    );
    refused(&format!("{at}/tiny"), TooSmall, "has 4 KiB");
    refused(
        &format!("{at}/tiny?size=1K"),
        TooSmall,
        "the minimum size of a drive is 1 MiB",
    );
    refused(&format!("{at}/absent"), NotFound, "?size=8G");
    refused(
        &format!("{at}/no/folder?size=8M"),
        NotFound,
        "create it first",
    );
    refused("ram:never-made", NotFound, "add a size");
    refused("ram:huge?size=1P", Unsupported, "choose a smaller size");
}

#[test]
fn a_file_that_exists_with_less_than_the_size_asked_for_is_refused_and_kept() {
    let folder = Folder::new();
    let path = folder.path().join("drive");
    let spec = |size: &str| format!("file:{}?size={size}", path.display());
    drop(drives::open(&spec("8M")).unwrap());
    refused(&spec("16M"), TooSmall, "less than the specified 16 MiB");
    assert_eq!(fs::metadata(&path).unwrap().len(), 8 << 20);
    let drive = drives::open(&spec("4M")).unwrap();
    assert_eq!(drive.info().size, 8 << 20, "bigger is fine");
}

#[test]
fn a_created_file_is_sparse_and_its_owners_alone() {
    let folder = Folder::new();
    let path = folder.path().join("drive");
    let drive = drives::open(&format!("file:{}?size=64G", path.display())).unwrap();
    assert_eq!(drive.info().size, 64 << 30);
    let meta = fs::metadata(&path).unwrap();
    assert!(meta.blocks() * 512 < 1 << 20);
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_size_that_the_file_system_cannot_hold_leaves_no_file() {
    let folder = Folder::new();
    let path = folder.path().join("drive");
    let spec = format!("file:{}?size=7E", path.display());
    if let Err(error) = drives::open(&spec) {
        assert_eq!(error.kind, Unsupported, "{error}");
        assert!(!path.exists());
    }
}

#[test]
fn a_locked_file_names_who_holds_it() {
    let folder = Folder::new();
    let spec = format!("file:{}/drive?size=8M", folder.path().display());
    let _held = drives::open(&spec).unwrap();
    refused(&spec, Busy, "locked by this process");
}

#[test]
fn a_file_without_permission_is_refused() {
    // The super-user may open everything.
    // SAFETY: a plain system call without arguments.
    if unsafe { libc::geteuid() } == 0 {
        return;
    }
    let folder = Folder::new();
    let path = folder.path().join("drive");
    fs::write(&path, vec![0; 2 << 20]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    refused(path.to_str().unwrap(), Permission, "run as a user");
}

#[test]
fn memory_is_kept_by_name_with_its_size() {
    let spec = "ram:kept-by-name?size=4M";
    drop(drives::open(spec).unwrap());
    let again = drives::open("ram:kept-by-name").unwrap();
    assert_eq!(again.info().size, 4 << 20);
    assert_eq!(again.info().spec, "ram:kept-by-name?size=4M");
    drop(again);
    refused("ram:kept-by-name?size=8M", Unsupported, "another size");
    assert!(drives::forget_ram("kept-by-name"));
    assert!(!drives::forget_ram("kept-by-name"));
    refused("ram:kept-by-name", NotFound, "add a size");
}

#[test]
fn one_drive_has_one_canonical_text() {
    for (spec, canonical) in [
        ("/dev/sdb", "file:/dev/sdb"),
        ("file:/srv//a/./b/?size=8G", "file:/srv/a/b"),
        ("ram:a?size=1024M", "ram:a?size=1G"),
        ("null:a?size=1536K", "null:a?size=1536K"),
        (
            "model:hdd-7200:/srv/a?size=1G",
            "model:hdd-7200:file:/srv/a",
        ),
        (
            "model:ssd-sata,iops=9000,seed=7:ram:a?size=1G",
            "model:ssd-sata,seed=7,iops=9000:ram:a?size=1G",
        ),
        (
            "model:ssd-sata,seed=7:ram:a?size=1G",
            "model:ssd-sata,seed=7:ram:a?size=1G",
        ),
    ] {
        assert_eq!(drives::canonical(spec).unwrap(), canonical, "{spec}");
    }
}

#[test]
fn looking_at_a_drive_neither_creates_nor_locks_it() {
    let folder = Folder::new();
    let path = folder.path().join("drive");
    let spec = format!("file:{}?size=8M", path.display());
    assert_eq!(drives::found_on(&spec).unwrap(), None);
    assert!(!path.exists());
    let _held = drives::open(&spec).unwrap();
    assert_eq!(drives::found_on(&spec).unwrap(), None);
    assert_eq!(
        drives::found_on("ram:looked-at?size=1M").unwrap(),
        None,
        "memory that is not there"
    );
    assert_eq!(
        drives::open("ram:looked-at").unwrap_err().kind,
        NotFound,
        "and was not made by looking"
    );
}

#[test]
fn who_only_reads_does_so_beside_others_but_not_beside_a_writer() {
    let folder = Folder::new();
    let spec = format!("file:{}/drive?size=8M", folder.path().display());
    assert_eq!(
        drives::open_read_only(&spec).unwrap_err().kind,
        NotFound,
        "reading makes no file"
    );
    let writer = drives::open(&spec).unwrap();
    assert_eq!(drives::open_read_only(&spec).unwrap_err().kind, Busy);
    drop(writer);
    let (one, two) = (
        drives::open_read_only(&spec).unwrap(),
        drives::open_read_only(&spec).unwrap(),
    );
    refused(&spec, Busy, "locked by this process");
    drop((one, two));
    drives::open(&spec).unwrap();
}

#[test]
fn a_file_that_was_made_is_removed_unless_another_is_in_its_place() {
    let folder = Folder::new();
    let path = folder.path().join("d");
    let spec = format!("file:{}?size=1M", path.display());
    let made = drives::make_file(&spec).unwrap().unwrap();
    assert!(drives::make_file(&spec).unwrap().is_none(), "it is there");
    made.remove().unwrap();
    assert!(!path.exists());
    let model = format!("model:ssd-sata:{spec}");
    let made = drives::make_file(&model).unwrap().unwrap();
    fs::rename(&path, folder.path().join("kept")).unwrap();
    fs::write(&path, "another").unwrap();
    made.remove().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"another");
    for other in [&format!("file:{}", path.display()), "null:n?size=1M", "x"] {
        assert!(drives::make_file(other).unwrap().is_none(), "{other}");
    }
    let within = format!("file:{}/absent/d?size=1M", folder.path().display());
    assert_eq!(drives::make_file(&within).unwrap_err().kind, NotFound);
}

#[test]
fn a_drive_is_the_same_by_all_of_its_names() {
    let folder = Folder::new();
    let name = |name: &str| folder.path().join(name).display().to_string();
    for file in ["a", "b"] {
        fs::write(name(file), [0; 4096]).unwrap();
    }
    std::os::unix::fs::symlink(name("a"), name("by-id")).unwrap();
    let identity = |file: &str| drives::identity(&format!("file:{}", name(file)));
    assert!(identity("a").is_some());
    assert_eq!(identity("a"), identity("by-id"));
    assert_ne!(identity("a"), identity("b"));
    assert_eq!(drives::identity("null:n?size=1M"), None);
    assert_eq!(identity("absent"), None);
}

#[test]
fn a_fifo_is_no_drive_and_nobody_waits_for_its_other_end() {
    let folder = Folder::new();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let spec = format!("file:{}", fifo.display());
    refused(
        &spec,
        Unsupported,
        "neither a regular file nor a block device",
    );
    assert_eq!(drives::found_on(&spec).unwrap_err().kind, Unsupported);
}
