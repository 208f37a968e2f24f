//! Help texts: examples of every command, and their width.

use cli::{examples, grammar, parse_line};
use std::ffi::OsString;

/// Every command with the words that select it, without the program's name, except for `help`.
fn commands(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
    found.push((path.trim_start().to_owned(), command.clone()));
    for below in command.get_subcommands() {
        if below.get_name() != "help" {
            commands(below, &format!("{path} {}", below.get_name()), found);
        }
    }
}

fn all() -> Vec<(String, clap::Command)> {
    let mut command = grammar().term_width(80);
    command.build();
    let mut found = Vec::new();
    commands(&command, "", &mut found);
    assert!(found.len() > 120, "{}", found.len());
    found
}

/// The arguments of an example: what the shell would pass to the program.
fn words(line: &str) -> Vec<OsString> {
    let own = line.split(['|', '<', '>']).next().unwrap();
    own.split_whitespace().map(OsString::from).collect()
}

#[test]
fn every_command_has_examples_and_every_example_a_command() {
    let examples = examples();
    let all = all();
    for (path, command) in &all {
        let lines = examples.get(path.as_str()).copied().unwrap_or_default();
        let joined = lines.replace("\\\n", "");
        let own = format!("convect {path}");
        assert!(
            joined.lines().any(|line| line.starts_with(own.trim())),
            "{own} has no example of its own"
        );
        let count = lines.lines().filter(|line| line.starts_with("# ")).count();
        assert!((1..=3).contains(&count), "{own} has {count} examples");
        let help = command.clone().render_long_help().to_string();
        let (_, shown) = help.split_once("\nExamples:\n").expect(&own);
        let shown: Vec<&str> = shown.lines().map(|line| &line[2..]).collect();
        assert_eq!(shown.join("\n"), lines, "{own}");
    }
    for path in examples.keys() {
        assert!(all.iter().any(|(known, _)| known == path), "[{path}]");
    }
}

#[test]
fn every_example_is_a_valid_command_line() {
    let mut count = 0;
    for lines in examples().values() {
        let joined = lines.replace("\\\n", "");
        for line in joined.lines().filter(|line| line.starts_with("convect ")) {
            match parse_line(words(line)) {
                Ok(_) => count += 1,
                Err(error) => panic!("{line}: {error}"),
            }
        }
    }
    assert!(count > 150, "{count}");
}

#[test]
fn help_is_80_columns_wide() {
    for (path, mut command) in all() {
        for help in [command.render_help(), command.render_long_help()] {
            for line in help.to_string().lines() {
                assert!(line.chars().count() <= 80, "convect {path}: {line}");
            }
        }
    }
}

#[test]
fn every_list_has_the_options_of_lists() {
    let mut lists = 0;
    for (path, command) in all() {
        let is_list = path == "audit" || path.ends_with("list");
        let has = |short| {
            command
                .get_arguments()
                .any(|option| option.get_short() == Some(short))
        };
        let mut options = command.get_arguments();
        let has_sort = options.any(|option| option.get_long() == Some("sort"));
        let found = [has('o'), has('H'), has('p'), has_sort];
        assert_eq!(found, [is_list; 4], "convect {path}");
        lists += usize::from(is_list);
    }
    assert!(lists >= 17, "{lists}");
}

#[test]
fn global_options_have_headings_of_their_own() {
    for (path, command) in all() {
        for option in command.get_arguments() {
            let heading = match option.get_long() {
                Some("socket" | "server" | "ca" | "token-file" | "context") => Some("Connection"),
                Some("json" | "color") => Some("Output"),
                Some("columns" | "no-header" | "exact" | "sort") => Some("Output"),
                Some("pin") if path.is_empty() => Some("Connection"),
                _ => None,
            };
            assert_eq!(option.get_help_heading(), heading, "{path} {option}");
        }
    }
    let (_, last) = all().pop().unwrap();
    let longs: Vec<&str> = last
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .collect();
    assert!(
        longs.contains(&"socket") && longs.contains(&"json"),
        "{longs:?}"
    );
}
