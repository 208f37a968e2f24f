//! Which crate may know which.

use architecture_test::{Manifest, workspace_crates};

/// The workspace's own crates as dependencies name them.
const OURS: [&str; 23] = [
    "units",
    "checksum",
    "block",
    "reactor",
    "drives",
    "format",
    "placement",
    "qos",
    "rivals",
    "traces",
    "stream",
    "engine",
    "inspect",
    "remote",
    "api",
    "daemon",
    "cli",
    "scsi",
    "frontend-iscsi",
    "frontend-nbd",
    "frontend-fuse",
    "frontend-vhost-user-blk",
    "vhost-client",
];

fn find(name: &str) -> Manifest {
    let found = workspace_crates()
        .into_iter()
        .find(|manifest| manifest.name == name);
    found.unwrap_or_else(|| panic!("the workspace has no crate {name}"))
}

fn ours(manifest: &Manifest) -> Vec<&str> {
    let names = manifest.dependencies.iter().map(String::as_str);
    names.filter(|name| OURS.contains(name)).collect()
}

#[track_caller]
fn only(name: &str, allowed: &[&str]) {
    let manifest = find(name);
    let beyond: Vec<_> = ours(&manifest)
        .into_iter()
        .filter(|used| !allowed.contains(used))
        .collect();
    assert!(
        beyond.is_empty(),
        "{name} may use of ours only {allowed:?}, but uses {beyond:?}"
    );
}

#[test]
fn each_crate_uses_only_the_crates_beneath_it() {
    only("convect-units", &[]);
    only("convect-checksum", &[]);
    only("convect-block", &["checksum", "units"]);
    only("convect-reactor", &["block", "units"]);
    only("convect-drives", &["block", "reactor", "units"]);
    only("convect-format", &["checksum", "units"]);
    only("convect-placement", &["units"]);
    only("convect-qos", &["block", "format", "units"]);
    only("convect-stream", &["units"]);
    only("convect-scsi", &["block", "reactor"]);
    only(
        "convect-engine",
        &[
            "block",
            "drives",
            "format",
            "placement",
            "qos",
            "reactor",
            "units",
        ],
    );
    only(
        "convect-inspect",
        &["block", "drives", "format", "reactor", "units"],
    );
    only("convect-api", &["units"]);
    only("convect-remote", &["reactor"]);
    only("convect-rivals", &[]);
    only("convect-traces", &[]);
    only("convect-vhost-client", &[]);
    only("convect-bench", &["block", "engine", "format", "reactor"]);
    only(
        "convect-fuzz-targets",
        &[
            "block",
            "format",
            "frontend-iscsi",
            "frontend-nbd",
            "reactor",
            "scsi",
            "stream",
            "units",
        ],
    );
    only(
        "convect-lab",
        &[
            "units",
            "api",
            "checksum",
            "format",
            "placement",
            "remote",
            "rivals",
            "traces",
            "vhost-client",
        ],
    );
}

#[test]
fn a_front_end_never_sees_the_engine() {
    let mut seen = 0;
    for manifest in workspace_crates() {
        if manifest.relative_folder().starts_with("crates/frontends/") {
            only(&manifest.name, &["block", "reactor", "scsi", "units"]);
            seen += 1;
        }
    }
    assert!(
        seen >= 3,
        "the front ends were not found where they should be"
    );
}

#[test]
fn the_engine_sees_no_front_end() {
    let engine = find("convect-engine");
    assert!(
        !engine
            .dependencies
            .iter()
            .any(|name| name.contains("frontend"))
    );
}

#[test]
fn only_the_daemon_uses_tokio() {
    let tokio_like = ["tokio", "axum", "hyper", "hyper-util", "async-std", "smol"];
    for manifest in workspace_crates() {
        if ["convect-daemon", "convect-cli"].contains(&manifest.name.as_str()) {
            continue;
        }
        for name in &manifest.dependencies {
            assert!(
                !tokio_like.contains(&name.as_str()),
                "{} uses {name}",
                manifest.name
            );
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for manifest in workspace_crates() {
        let text = std::fs::read_to_string(manifest.folder.join("Cargo.toml")).expect("readable");
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}",
            manifest.name
        );
    }
}
