//! convect.toml(5): the example configuration that packages install, as a manual page.
//!
//! The example documents each setting once: paragraphs of comments, each followed by the settings
//! that it describes, with their defaults and commented out. Lines of a paragraph that are indented are
//! an example of their own.

use super::page::Page;
use clap_mangen::roff::{Inline, bold, italic, roman};

const EXAMPLE: &str = include_str!("../../../../packaging/convect.toml");

const SAMPLE: &str = "\
# The web page for other hosts, a large cache in RAM, scrubs every fortnight
listen = \"0.0.0.0:9443\"
ram_tier = \"4G\"

[scrub]
every = \"14d\"
at = 3";

/// A paragraph and the settings that it describes.
struct Block<'a> {
    prose: Vec<&'a str>,
    sample: Vec<&'a str>,
    settings: Vec<&'a str>,
}

impl<'a> Block<'a> {
    fn parse(text: &'a str) -> Self {
        let (mut prose, mut sample, mut settings) = (Vec::new(), Vec::new(), Vec::new());
        for line in text.lines().filter_map(|line| line.strip_prefix('#')) {
            match (line.strip_prefix("   "), line.strip_prefix(' ')) {
                (Some(line), _) => sample.push(line),
                (None, Some(line)) => prose.push(line),
                (None, None) => settings.push(line),
            }
        }
        Self {
            prose,
            sample,
            settings,
        }
    }
}

/// A setting and its default.
fn head(line: &str) -> Vec<Inline> {
    match line.split_once(" = ") {
        Some((name, value)) => vec![bold(name), roman(format!(" = {value}"))],
        None => vec![bold(line)],
    }
}

/// The page.
pub fn page() -> String {
    let mut page = Page::new("convect.toml", "5");
    page.section("NAME");
    page.paragraph([roman("convect.toml - configuration of the Convect daemon")]);
    page.section("SYNOPSIS");
    page.paragraph([italic("/etc/convect/convect.toml")]);
    page.section("DESCRIPTION");
    let mut blocks = EXAMPLE.split("\n\n").map(Block::parse);
    if let Some(head) = blocks.next() {
        page.paragraph([roman(head.prose.join(" "))]);
    }
    page.paragraph([roman(
        "The file is in the format TOML and is read when the daemon starts; another one can be given \
         with `convect serve --config FILE`. Unknown settings and invalid values are errors that name \
         the line. Options of `convect serve` precede the file. Sizes are numbers of bytes, or texts \
         like \"512M\" and \"4G\" (powers of 1,024); durations are texts like \"30s\", \"10m\", \
         \"12h\" and \"30d\".",
    )]);
    page.section("SETTINGS");
    for block in blocks {
        let heads = block.settings.iter().map(|line| head(line)).collect();
        page.entry(heads, &block.prose.join(" "));
        if !block.sample.is_empty() {
            page.code(block.sample);
        }
    }
    page.section("EXAMPLES");
    page.code(SAMPLE.lines());
    page.section("FILES");
    page.entry(
        vec![vec![italic("/etc/convect/convect.toml")]],
        "Read if it exists, unless another file is given.",
    );
    page.section("SEE ALSO");
    page.references([("convect", "1"), ("convect-serve", "1")]);
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn parse(text: &str) -> Result<daemon::Config, String> {
        daemon::Config::parse(text, Path::new("convect.toml")).map_err(|error| error.to_string())
    }

    /// The settings that the daemon knows beneath `section`, out of its message about an unknown one.
    fn known(section: &str) -> Vec<String> {
        let message = parse(&format!("{section}\nno-such-setting = 1")).unwrap_err();
        let (_, names) = message.split_once("expected one of ").expect(&message);
        let names = names.split('`').skip(1).step_by(2);
        names.map(str::to_owned).collect()
    }

    #[test]
    fn page_documents_every_setting_of_the_daemon() {
        let page = page();
        let has = |name: &str| page.contains(&format!("\\fB{name}\\fR"));
        let mut count = 0;
        for section in ["", "[scrub]", "[remote_paths]"] {
            for name in known(section) {
                assert!(has(&name) || has(&format!("[{name}]")), "{section} {name}");
                count += 1;
            }
        }
        assert!(count > 25, "{count}");
    }

    #[test]
    fn example_of_the_page_is_valid() {
        let config = parse(SAMPLE).unwrap();
        assert_eq!(config.ram_tier, 4 << 30);
    }
}
