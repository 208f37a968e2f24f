//! The table of all examples.

use std::collections::BTreeMap;

const FAMILIES: [&str; 9] = [
    include_str!("access.txt"),
    include_str!("daemon.txt"),
    include_str!("export.txt"),
    include_str!("observe.txt"),
    include_str!("offline.txt"),
    include_str!("pool.txt"),
    include_str!("qos.txt"),
    include_str!("snapshot.txt"),
    include_str!("volume.txt"),
];

/// Sections: the words that select a command, without the program's name, and the lines.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = FAMILIES
        .into_iter()
        .flat_map(|family| family.trim_end().split("\n\n"));
    sections.filter_map(|section| {
        let (head, lines) = section.split_once('\n')?;
        Some((head.strip_prefix('[')?.strip_suffix(']')?, lines))
    })
}

/// The lines of each command's examples, by the words that select it, without the program's name.
pub fn examples() -> BTreeMap<&'static str, &'static str> {
    sections().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bracket_begins_a_section_and_no_command_has_two() {
        let heads = FAMILIES.into_iter().flat_map(str::lines);
        let heads = heads.filter(|line| line.starts_with('[')).count();
        assert_eq!((sections().count(), examples().len()), (heads, heads));
    }

    #[test]
    fn every_command_line_follows_what_it_does() {
        for (command, lines) in sections() {
            assert!(lines.starts_with("# "), "{command}");
            for line in lines.lines() {
                let form = ["# ", "    ", "convect", "man ", "eval "];
                assert!(form.iter().any(|form| line.starts_with(form)), "{line}");
                // A manual page of 80 columns indents it by 7.
                assert!(line.chars().count() <= 73, "{line}");
            }
        }
    }
}
