//! Rules for the content and the length of sources.

use architecture_test::{Source, mentions, root, sources_under, workspace_crates};

#[track_caller]
fn none_of(sources: &[Source], banned: &[&str], why: &str) {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (number, line) in source.code() {
            for word in banned.iter().filter(|word| mentions(line, word)) {
                found.push(format!("{}:{number}: {word}", source.name));
            }
        }
    }
    assert!(found.is_empty(), "{why}:\n{}", found.join("\n"));
}

#[test]
fn format_placement_qos_and_stream_do_no_io_and_read_no_clock() {
    let banned = [
        "std::fs",
        "std::net",
        "std::io",
        "std::thread",
        "std::time",
        "Instant",
        "SystemTime",
    ];
    for folder in [
        "crates/format/src",
        "crates/placement/src",
        "crates/qos/src",
        "crates/stream/src",
    ] {
        let sources = sources_under(folder);
        assert!(!sources.is_empty(), "{folder} has no sources");
        none_of(
            &sources,
            &banned,
            "pure code takes bytes and times as arguments",
        );
    }
}

#[test]
fn the_engine_takes_clock_chance_and_threads_from_outside() {
    let mut sources = sources_under("crates/engine/src");
    assert!(!sources.is_empty());
    // The control side runs on its own threads and may wait for them.
    sources.retain(|source| !source.name.starts_with("crates/engine/src/control/"));
    let banned = [
        "Instant",
        "SystemTime",
        "HashMap",
        "HashSet",
        "std::thread",
        "thread::spawn",
        "rand",
    ];
    none_of(
        &sources,
        &banned,
        "a run has to repeat from its seed, in one thread",
    );
}

#[test]
fn no_file_is_longer_than_800_lines() {
    let too_long: Vec<_> = sources_under("crates")
        .into_iter()
        .map(|source| (source.text.lines().count(), source.name))
        .filter(|(lines, _)| *lines > 800)
        .collect();
    assert!(too_long.is_empty(), "split these: {too_long:?}");
}

#[test]
fn lib_and_mod_files_only_declare() {
    let mut found = Vec::new();
    for source in sources_under("crates") {
        if source.is_test() || !["lib.rs", "mod.rs"].contains(&source.file_name()) {
            continue;
        }
        for (number, line) in source.code().filter(|(_, line)| mentions(line, "fn")) {
            found.push(format!("{}:{number}: {}", source.name, line.trim()));
        }
    }
    assert!(
        found.is_empty(),
        "move this into a file named after it:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_crate_says_at_its_head_what_it_is_for() {
    for manifest in workspace_crates() {
        let source = manifest.folder.join("src");
        let file = ["lib.rs", "main.rs"].map(|name| source.join(name));
        let file = file
            .iter()
            .find(|file| file.exists())
            .expect("a lib.rs or a main.rs");
        let text = std::fs::read_to_string(file).expect("readable");
        assert!(text.starts_with("//! "), "{} has no head", file.display());
    }
}

#[test]
fn nothing_is_left_to_do_in_the_code() {
    none_of(
        &sources_under("crates"),
        &["todo!", "unimplemented!", "dbg!"],
        "finish it",
    );
}

#[test]
fn what_decides_a_landing_is_the_test_command() {
    let run = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    let calls = |line: &str| line.starts_with("exec") && line.contains("./dev test");
    assert!(run.lines().any(calls), ".ci/run does not call ./dev test");
}

/// Documents and scripts compile nowhere, so that no other check notices an unfinished merge.
#[test]
fn no_document_or_script_has_marks_of_an_unfinished_merge() {
    let mut folders = vec![root(), root().join("docs"), root().join("scripts")];
    folders.extend(["tests/e2e", "tests/guest"].map(|folder| root().join(folder)));
    let (mut looked_at, mut found) = (0, Vec::new());
    for folder in folders {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_file() {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            looked_at += 1;
            let marks: [&[u8]; 2] = [b"<<<<<<< ", b">>>>>>> "];
            let mut lines = text.split(|byte| *byte == b'\n');
            if lines.any(|line| marks.iter().any(|mark| line.starts_with(mark))) {
                found.push(path);
            }
        }
    }
    assert!(looked_at > 80, "only {looked_at} files");
    assert!(found.is_empty(), "merge them: {found:?}");
}
