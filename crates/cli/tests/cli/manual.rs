//! Manual pages.

use crate::scripted::convect;
use std::collections::BTreeMap;

/// The pages by file name, with their sources.
fn pages() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let said = convect(&format!("man {}", folder.path().display()));
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
    let files = std::fs::read_dir(folder.path()).unwrap();
    let page = |file: std::io::Result<std::fs::DirEntry>| {
        let file = file.unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        (file.file_name().into_string().unwrap(), text)
    };
    files.map(page).collect()
}

/// The names that a page's section SEE ALSO refers to, as file names.
fn references(page: &str) -> Vec<String> {
    let (_, section) = page.split_once(".SH \"SEE ALSO\"\n").unwrap_or_default();
    let section = section.replace("\\-", "-").replace(['(', ')'], "");
    let names = section.split(", ");
    let name = |text: &str| text.trim().replace("\\fB", "").replace("\\fR", ".");
    names.map(name).collect()
}

/// The sections of a page.
fn sections(page: &str) -> Vec<&str> {
    let lines = page.lines();
    let headings = lines.filter_map(|line| line.strip_prefix(".SH "));
    headings.map(|heading| heading.trim_matches('"')).collect()
}

#[test]
fn every_page_has_examples_exit_status_files_and_environment() {
    let pages = pages();
    assert!(pages.len() > 120, "{}", pages.len());
    for (name, page) in pages.iter().filter(|(name, _)| name.ends_with(".1")) {
        let found = sections(page);
        assert_eq!(found[..3], ["NAME", "SYNOPSIS", "DESCRIPTION"], "{name}");
        let last = [
            "EXAMPLES",
            "EXIT STATUS",
            "FILES",
            "ENVIRONMENT",
            "SEE ALSO",
        ];
        assert_eq!(found[found.len() - 5..], last, "{name}");
    }
}

#[test]
fn every_page_refers_to_existing_pages() {
    let pages = pages();
    for (name, page) in &pages {
        let named = references(page);
        assert!(!named.is_empty(), "{name}");
        for other in named {
            assert!(pages.contains_key(&other), "{name} refers to {other}");
            assert_ne!(*name, other);
        }
    }
    let of = |name: &str| references(&pages[name]);
    assert_eq!(of("convect-pool-create.1"), ["convect.1", "convect-pool.1"]);
    assert_eq!(of("convect-serve.1"), ["convect.1", "convect.toml.5"]);
}

#[test]
fn pages_differ_where_the_commands_do() {
    let pages = pages();
    assert!(pages["convect-check.1"].contains("the pool is consistent"));
    assert!(!pages["convect-check.1"].contains("CONVECT_SOCKET\\fR"));
    assert!(pages["convect-volume-set.1"].contains("CONVECT_SOCKET\\fR"));
    assert!(pages["convect-volume-set.1"].contains("15/16 of the fast tier"));
    assert!(pages["convect.toml.5"].contains("\\fBram_tier\\fR = \"256M\""));
}
