//! The source of a manual page (roff with the macros of man(7)), written section by section.

use clap_mangen::roff::{Inline, Roff, bold, roman};
use std::io::{self, Write};

/// A page being written.
pub struct Page(String);

/// What each document begins with: the definition of an apostrophe.
fn preamble() -> String {
    Roff::new().render()
}

fn without_preamble(text: &str) -> &str {
    text.strip_prefix(&preamble()).unwrap_or(text)
}

impl Page {
    /// A page with this name, in this section of the manual.
    pub fn new(name: &str, section: &str) -> Self {
        let version = concat!("Convect ", env!("CARGO_PKG_VERSION"));
        let mut page = Self(preamble());
        let head = [name, section, "\"\"", version, "Convect"];
        page.add(Roff::new().control("TH", head));
        page
    }

    fn add(&mut self, roff: &Roff) {
        self.0.push_str(without_preamble(&roff.render()));
    }

    /// Begins a section.
    pub fn section(&mut self, heading: &str) {
        self.add(Roff::new().control("SH", [heading]));
    }

    /// A paragraph.
    pub fn paragraph(&mut self, parts: impl Into<Vec<Inline>>) {
        let last = self.0.lines().next_back();
        let mut roff = Roff::new();
        if !last.is_some_and(|line| line.starts_with(".SH")) {
            roff.control("PP", []);
        }
        roff.text(parts);
        self.add(&roff);
    }

    /// A text with one or more headings.
    pub fn entry(&mut self, heads: Vec<Vec<Inline>>, text: &str) {
        let mut roff = Roff::new();
        for (index, head) in heads.into_iter().enumerate() {
            roff.control(if index == 0 { "TP" } else { "TQ" }, []);
            roff.text(head);
        }
        roff.text([roman(text)]);
        self.add(&roff);
    }

    /// Lines that stay as they are.
    pub fn code<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        let mut roff = Roff::new();
        roff.control("EX", []);
        for line in lines {
            roff.text([roman(line)]);
        }
        roff.control("EE", []);
        self.add(&roff);
    }

    /// References to other pages: name and section of the manual.
    pub fn references<'a>(&mut self, pages: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let mut parts = Vec::new();
        for (name, section) in pages {
            if !parts.is_empty() {
                parts.push(roman(", "));
            }
            parts.push(bold(name));
            parts.push(roman(format!("({section})")));
        }
        self.paragraph(parts);
    }

    /// What another writer of roff renders.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn append(
        &mut self,
        render: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        render(&mut bytes)?;
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.push_str(without_preamble(&text));
        Ok(())
    }

    /// The source.
    pub fn finish(self) -> String {
        self.0
    }
}
