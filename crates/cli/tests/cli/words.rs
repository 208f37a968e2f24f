//! Words of the command line.

use api::v1::{FrontEnd, Layout, Parameter, Tier};
use clap::CommandFactory;
use cli::{Arguments, drive_spec, front_end_parameters, object, vdrives};
use std::path::Path;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn drives_are_specifications_or_paths() {
    for (text, spec) in [
        ("/dev/sda", "file:/dev/sda"),
        ("file:/a?size=8G", "file:/a?size=8G"),
        ("file:a.img?size=8G", "file:/here/a.img?size=8G"),
        ("ram:x?size=1G", "ram:x?size=1G"),
        ("model:hdd-7200,seed=3:b", ""),
        ("model:hdd-7200,seed=3:/b", "model:hdd-7200,seed=3:file:/b"),
        ("model:hdd-7200:file:b", "model:hdd-7200:file:/here/b"),
        (
            "model:ssd-sata:ram:x?size=1G",
            "model:ssd-sata:ram:x?size=1G",
        ),
        ("model:hdd-7200", ""),
        ("model:hdd-1:/b", ""),
        ("model:hdd-7200:floppy:b", ""),
        ("floppy:a", ""),
        ("file:", ""),
        ("sda", ""),
        ("", ""),
    ] {
        let read = drive_spec(text, Some(Path::new("/here"))).ok();
        assert_eq!(read.as_deref().unwrap_or(""), spec, "{text}");
    }
}

#[test]
fn remote_drive_paths_must_be_absolute() {
    for (text, good) in [
        ("/dev/sda", true),
        ("file:/a?size=8G", true),
        ("ram:x?size=1G", true),
        ("model:hdd-7200:/b", true),
        ("file:a.img?size=8G", false),
        ("model:hdd-7200:file:b", false),
    ] {
        let read = drive_spec(text, None);
        assert_eq!(read.is_ok(), good, "{text}");
        if let Err(failure) = read {
            assert!(
                failure.to_string().contains("the absolute path"),
                "{failure}"
            );
        }
    }
}

#[test]
fn vdrives_are_parsed_by_tier() {
    let words = words("fast /a slow stripe:64k /b /c fast mirror /d /e slow stripe /f");
    let read = vdrives(&words, Some(Path::new("/"))).unwrap();
    let shape: Vec<_> = read
        .iter()
        .map(|v| (v.tier, v.layout, v.drives.len()))
        .collect();
    let stripe = Layout::Stripe { chunk: 64 << 10 };
    assert_eq!(
        shape,
        [
            (Tier::Fast, Layout::Concat, 1),
            (Tier::Slow, stripe, 2),
            (Tier::Fast, Layout::Mirror, 2),
            (Tier::Slow, stripe, 1),
        ]
    );
    assert_eq!(read[1].drives, ["file:/b", "file:/c"]);
}

#[test]
fn invalid_vdrives_are_refused_with_advice() {
    for (text, said) in [
        ("/a", "write fast or slow before"),
        ("fast", "a vdrive has no drives"),
        ("fast slow /a", "a vdrive has no drives"),
        ("fast mirror", "a vdrive has no drives"),
        ("fast /a mirror", "right after fast or slow"),
        ("fast stripe mirror /a", "right after fast or slow"),
        ("fast stripe:lots /a", "'lots' is not a size"),
        ("fast raid5 /a /b", "'raid5' is not a drive"),
    ] {
        let error = vdrives(&words(text), Some(Path::new("/"))).expect_err(text);
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert_eq!(error.code(), 2, "{text}");
    }
}

#[test]
fn volume_names_include_their_pool() {
    assert_eq!(object("tank/vm1").unwrap(), ("tank", "vm1"));
    for text in ["tank", "tank/", "/vm1", "a/b/c", ""] {
        assert_eq!(object(text).expect_err(text).code(), 2);
    }
}

#[test]
fn protocol_parameters_are_validated() {
    let parameter = |name: &str, required| Parameter {
        name: name.to_owned(),
        about: format!("about {name}"),
        required,
    };
    let row = FrontEnd {
        name: "nbd".to_owned(),
        about: "x".to_owned(),
        parameters: vec![parameter("listen", true), parameter("queues", false)],
    };
    for (text, read) in [
        ("--listen unix:/a", Ok("listen=unix:/a")),
        (
            "--queues=2 --listen=tcp:[::1]:1",
            Ok("listen=tcp:[::1]:1 queues=2"),
        ),
        ("--listen --queues", Ok("listen=--queues")),
        ("", Err("requires --listen")),
        ("--queues 1", Err("about listen")),
        ("--listen", Err("--listen has no value")),
        ("--lisen a", Err("no parameter --lisen")),
        ("unix:/a", Err("write --KEY VALUE")),
        ("--listen a --listen b", Err("is given twice")),
    ] {
        match (front_end_parameters(&row, &words(text)), read) {
            (Ok(found), Ok(read)) => {
                let found: Vec<_> = found.iter().map(|(k, v)| format!("{k}={v}")).collect();
                assert_eq!(found.join(" "), read);
            }
            (Err(error), Err(said)) => {
                assert!(error.to_string().contains(said), "{text}: {error}");
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
}

/// Commands that have none beneath them, in full.
fn leaves(command: &clap::Command, before: &str, found: &mut Vec<String>) {
    for below in command.get_subcommands() {
        let name = format!("{before}{}", below.get_name());
        match below.has_subcommands() {
            true => leaves(below, &format!("{name} "), found),
            false => found.push(name),
        }
    }
}

#[test]
fn documentation_maps_every_command_to_the_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("### What the command changes").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let told: Vec<&str> = rows
        .iter()
        .flat_map(|row| {
            row.split(" | ")
                .next()
                .unwrap()
                .split('`')
                .skip(1)
                .step_by(2)
        })
        .collect();
    let mut all = Vec::new();
    leaves(&Arguments::command(), "", &mut all);
    assert!(all.len() > 60, "{all:?}");
    let lacking: Vec<&String> = all
        .iter()
        .filter(|name| !told.contains(&name.as_str()))
        .collect();
    assert_eq!(lacking, Vec::<&String>::new());
    let gone: Vec<&&str> = told
        .iter()
        .filter(|told| all.iter().all(|name| name != **told))
        .collect();
    assert_eq!(gone, Vec::<&&str>::new());
}

/// Usages in which what takes any number of words comes before a word of its own, and would take that, too.
fn greedy(command: &mut clap::Command, found: &mut Vec<String>) {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        let below = command.find_subcommand_mut(&name).unwrap();
        greedy(below, found);
    }
    let many = |arg: &&clap::Arg| {
        let takes = arg
            .get_num_args()
            .is_some_and(|range| range.max_values() > 1);
        !arg.is_positional() && takes
    };
    let many: Vec<String> = command
        .get_arguments()
        .filter(many)
        .filter_map(|arg| arg.get_long().map(|long| format!("--{long} ")))
        .collect();
    let usage = command.render_usage().to_string();
    for option in many {
        let behind = usage
            .split_once(&option)
            .map(|(_, behind)| behind.to_owned());
        let behind = behind.unwrap_or_else(|| panic!("{option} is not in {usage}"));
        let words = behind.split_whitespace().skip(1).collect::<Vec<_>>();
        if words.iter().any(|word| !word.starts_with("--")) {
            found.push(usage.clone());
        }
    }
}

#[test]
fn usage_has_no_argument_after_a_greedy_option() {
    let mut found = Vec::new();
    greedy(&mut Arguments::command(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}
