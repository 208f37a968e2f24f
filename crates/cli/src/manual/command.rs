//! The manual page of a command.

use super::environment::{Entries, files, variables};
use super::page::Page;
use crate::exit_codes::exit_codes;
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{bold, italic, roman};
use std::io;

/// The page's name of the command that these words select, without the program's name.
pub fn name(path: &str) -> String {
    format!("convect {path}").trim_end().replace(' ', "-")
}

/// The command's usage in one line, the program and its subcommands apart from the arguments.
fn synopsis(command: &Command, path: &str) -> (String, String) {
    let usage = command.clone().render_usage().to_string();
    let words: Vec<&str> = usage.split_whitespace().skip(1).collect();
    let line = words.join(" ");
    let program = format!("convect {path}").trim_end().to_owned();
    match line.strip_prefix(&program) {
        Some(arguments) => (program, arguments.to_owned()),
        None => (String::new(), line),
    }
}

fn entries(page: &mut Page, heading: &str, entries: Entries) {
    page.section(heading);
    for (name, text) in entries {
        page.entry(vec![vec![italic(*name)]], text);
    }
}

/// Examples: each is a sentence and the command line for it.
fn examples(page: &mut Page, lines: &str) {
    page.section("EXAMPLES");
    let mut code: Vec<&str> = Vec::new();
    for line in lines.lines() {
        let Some(what) = line.strip_prefix("# ") else {
            code.push(line);
            continue;
        };
        if !code.is_empty() {
            page.code(code.drain(..));
        }
        page.paragraph([roman(format!("{what}:"))]);
    }
    page.code(code);
}

/// Other pages: those above the command and beneath it.
fn see_also(page: &mut Page, command: &Command, path: &str) {
    let words: Vec<&str> = path.split(' ').filter(|word| !word.is_empty()).collect();
    let above = (0..words.len()).map(|count| name(&words[..count].join(" ")));
    let below = command.get_subcommands();
    let below = below.map(|below| name(format!("{path} {}", below.get_name()).trim_start()));
    let names: Vec<String> = above.chain(below).collect();
    let commands = names.iter().map(|name| (name.as_str(), "1"));
    let configuration = matches!(words.first(), None | Some(&"serve"));
    let configuration = configuration.then_some(("convect.toml", "5"));
    page.section("SEE ALSO");
    page.references(commands.chain(configuration));
}

/// The page of `command`, which was built with all above it, and which the words of `path` select.
///
/// # Errors
/// When it cannot be rendered.
pub fn page(command: &Command, path: &str, lines: &str) -> io::Result<String> {
    let man = Man::new(command.clone());
    let mut page = Page::new(&name(path), "1");
    page.append(|into| man.render_name_section(into))?;
    page.section("SYNOPSIS");
    let (program, arguments) = synopsis(command, path);
    page.paragraph([bold(program), roman(arguments)]);
    page.append(|into| man.render_description_section(into))?;
    let notes = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    if let Some(notes) = notes {
        for paragraph in notes
            .to_string()
            .split('\n')
            .filter(|text| !text.is_empty())
        {
            page.paragraph([roman(paragraph)]);
        }
    }
    if command.has_subcommands() {
        page.append(|into| man.render_subcommands_section(into))?;
    }
    page.append(|into| man.render_options_section(into))?;
    examples(&mut page, lines);
    page.section("EXIT STATUS");
    for (code, text) in exit_codes(path) {
        page.entry(vec![vec![bold(code.to_string())]], text);
    }
    entries(&mut page, "FILES", files(path));
    entries(&mut page, "ENVIRONMENT", variables(path));
    see_also(&mut page, command, path);
    Ok(page.finish())
}
