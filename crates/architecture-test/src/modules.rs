//! The modules of one crate: what each defines, and which other modules its paths lead to.
//!
//! Paths are resolved as the compiler does it as far as style here needs it: `crate`, `self`, `super` and the names of
//! child modules, through re-exports with `use`. What does not lead into the crate is left out.

use crate::Source;
use std::collections::{BTreeMap, BTreeSet};

/// A module's path in its crate; empty for the root.
pub type Path = Vec<String>;

/// The modules of a crate.
#[derive(Debug, Default)]
pub struct Modules {
    /// Code of each, without comments and tests.
    code: BTreeMap<Path, String>,
    /// What each takes into its scope with `use`: the name, and the path as it is written.
    uses: BTreeMap<Path, Vec<(String, Path)>>,
}

/// Siblings that use each other, by the module that they are children of.
pub type Cycles = BTreeMap<Path, Vec<BTreeSet<String>>>;

fn path_of(folder: &str, name: &str) -> Path {
    let inner = name.strip_prefix(folder).unwrap_or(name);
    let inner = inner.trim_start_matches('/').trim_end_matches(".rs");
    let mut path: Path = inner.split('/').map(str::to_owned).collect();
    if matches!(
        path.last().map(String::as_str),
        Some("lib" | "main" | "mod")
    ) {
        path.pop();
    }
    path
}

/// The paths of a tree of `use`, each with the name that it has in scope.
fn expand(tree: &str, before: &[String], found: &mut Vec<(String, Path)>) {
    let tree = tree.trim();
    if let Some((first, inner)) = tree.split_once('{') {
        let mut path = before.to_vec();
        path.extend(
            first
                .split("::")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
        let inner = inner.trim_end().trim_end_matches('}');
        let (mut depth, mut begin) = (0_usize, 0);
        for (at, character) in inner.char_indices().chain([(inner.len(), ',')]) {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    let part = inner.get(begin..at).unwrap_or_default();
                    if !part.trim().is_empty() {
                        expand(part, &path, found);
                    }
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    let (written, shown) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = before.to_vec();
    path.extend(written.trim().split("::").map(str::to_owned));
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let last = path.last().cloned().unwrap_or_default();
    let name = if shown.is_empty() {
        last
    } else {
        shown.trim().to_owned()
    };
    found.push((name, path));
}

/// The trees of `use` in some code.
fn use_trees(code: &str) -> Vec<String> {
    let mut trees = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let begins = rest[..at].lines().last().unwrap_or_default().trim();
        let is_item =
            rest[..at].is_empty() || rest[..at].ends_with('\n') || begins.starts_with("pub");
        rest = &rest[at + "use ".len()..];
        if is_item && let Some(end) = rest.find(';') {
            trees.push(rest[..end].replace('\n', " "));
            rest = &rest[end..];
        }
    }
    trees
}

/// Paths that begin with `crate` or `super` in code that is not a `use`.
fn inline_paths(code: &str) -> Vec<Path> {
    let is_path = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let words = code.split(|character: char| !is_path(character));
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    paths
        .map(|path| path.split("::").map(str::to_owned).collect())
        .collect()
}

impl Modules {
    /// Those of the sources below a folder, `crates/daemon/src` say.
    #[must_use]
    pub fn of(folder: &str, sources: &[Source]) -> Self {
        let mut modules = Self::default();
        for source in sources.iter().filter(|source| !source.is_test()) {
            let lines: Vec<&str> = source.code().map(|(_, line)| line).collect();
            let (path, code) = (path_of(folder, &source.name), lines.join("\n"));
            let mut uses = Vec::new();
            for tree in use_trees(&code) {
                expand(&tree, &[], &mut uses);
            }
            modules.uses.insert(path.clone(), uses);
            modules.code.insert(path, code);
        }
        modules
    }

    /// The module that a path leads to, written in the module `from`; nothing for what is in another crate.
    fn resolve(&self, from: &[String], written: &[String], depth: usize) -> Option<Path> {
        let mut parts = written.iter();
        let first = parts.next()?;
        let mut at: Path = match first.as_str() {
            "crate" => Path::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let child = [from, &[name.to_owned()]].concat();
                self.code.contains_key(&child).then_some(child)?
            }
        };
        let mut rest = parts.as_slice();
        while let Some((next, after)) = rest.split_first() {
            if next == "super" {
                at.pop();
            } else {
                let child = [&at[..], std::slice::from_ref(next)].concat();
                if !self.code.contains_key(&child) {
                    break;
                }
                at = child;
            }
            rest = after;
        }
        // A name that its module only passes on leads to where it is defined.
        if let Some(name) = rest.first()
            && depth < 8
        {
            let uses = self.uses.get(&at)?;
            if let Some((_, further)) = uses.iter().find(|(known, _)| known == name) {
                return self.resolve(&at, further, depth + 1).or(Some(at));
            }
        }
        Some(at)
    }

    /// Which children of a module use which of its other children, by the module.
    #[must_use]
    pub fn edges(&self) -> BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> {
        let mut edges = BTreeMap::<Path, BTreeMap<String, BTreeSet<String>>>::new();
        for (from, code) in &self.code {
            let uses = self.uses.get(from).into_iter().flatten();
            let paths = uses.map(|(_, path)| path.clone()).chain(inline_paths(code));
            for to in paths.filter_map(|path| self.resolve(from, &path, 0)) {
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
                    let of = edges.entry(from[..common].to_vec()).or_default();
                    of.entry(user.clone()).or_default().insert(used.clone());
                }
            }
        }
        edges
    }

    /// Sibling modules that use each other, in a circle of any length.
    #[must_use]
    pub fn cycles(&self) -> Cycles {
        let mut cycles = Cycles::new();
        for (parent, edges) in self.edges() {
            let reach = |from: &str| {
                let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
                while let Some(at) = next.pop() {
                    for to in edges.get(&at).into_iter().flatten() {
                        if seen.insert(to.clone()) {
                            next.push(to.clone());
                        }
                    }
                }
                seen
            };
            let reached: BTreeMap<&String, BTreeSet<String>> =
                edges.keys().map(|name| (name, reach(name))).collect();
            let circle = |name: &String| -> BTreeSet<String> {
                let both = reached[name]
                    .iter()
                    .filter(|other| reached.get(other).is_some_and(|back| back.contains(name)));
                both.cloned().collect()
            };
            let mut found: Vec<BTreeSet<String>> = edges.keys().map(circle).collect();
            found.retain(|circle| !circle.is_empty());
            found.sort();
            found.dedup();
            if !found.is_empty() {
                cycles.insert(parent, found);
            }
        }
        cycles
    }

    /// How many fields each struct has, by module and name.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<(Path, String), usize> {
        let mut fields = BTreeMap::new();
        for (path, code) in &self.code {
            let mut inside = None;
            for line in code.lines() {
                match (&inside, definition(line, "struct")) {
                    (None, Some(name)) if line.trim_end().ends_with('{') => {
                        fields.insert((path.clone(), name.to_owned()), 0);
                        inside = Some(name.to_owned());
                    }
                    (Some(_), _) if line == "}" => inside = None,
                    (Some(name), _) if is_field(line) => {
                        *fields.entry((path.clone(), name.clone())).or_default() += 1;
                    }
                    _ => {}
                }
            }
        }
        fields
    }

    /// The modules in which each type has methods of its own, by the module that defines it and its name.
    #[must_use]
    pub fn impls(&self) -> BTreeMap<(Path, String), BTreeSet<Path>> {
        let mut impls = BTreeMap::<(Path, String), BTreeSet<Path>>::new();
        for (path, code) in &self.code {
            for name in code.lines().filter_map(inherent) {
                let home = self.definer(path, name);
                let of = impls.entry((home, name.to_owned())).or_default();
                of.insert(path.clone());
            }
        }
        impls
    }

    /// Where a type is defined that a module names so.
    fn definer(&self, at: &[String], name: &str) -> Path {
        let defines = |code: &String| {
            let mut lines = code.lines();
            lines.any(|line| {
                let mut kinds = ["struct", "enum", "trait"].into_iter();
                kinds.any(|kind| definition(line, kind) == Some(name))
            })
        };
        if self.code.get(at).is_some_and(defines) {
            return at.to_vec();
        }
        let uses = self.uses.get(at).into_iter().flatten();
        let mut named = uses.filter(|(known, _)| known == name);
        let found = named.find_map(|(_, path)| self.resolve(at, path, 0));
        found.unwrap_or_else(|| at.to_vec())
    }
}

/// The name that a line defines, at the beginning of a line as rustfmt has it.
fn definition<'a>(line: &'a str, kind: &str) -> Option<&'a str> {
    let mut words = line.split([' ', '<', '(', '{', ';']);
    let mut word = words.next()?;
    while word.starts_with("pub") || word.ends_with(')') || matches!(word, "super" | "crate" | "in")
    {
        word = words.next()?;
    }
    if word != kind {
        return None;
    }
    words.next().filter(|name| !name.is_empty())
}

fn is_field(line: &str) -> bool {
    let Some(line) = line
        .strip_prefix("    ")
        .filter(|line| !line.starts_with(' '))
    else {
        return false;
    };
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ').map_or("", |(_, field)| field),
        None => line,
    };
    let name = line.split(':').next().unwrap_or_default();
    line.contains(':') && !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The type that a line begins to give methods of its own.
fn inherent(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    if rest.contains(" for ") {
        return None;
    }
    rest.split([' ', '<', '{'])
        .next()
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source {
                name: format!("crates/x/src/{name}"),
                text: (*text).to_owned(),
            })
            .collect();
        Modules::of("crates/x/src", &sources)
    }

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let cycles = modules(files).cycles().into_values().flatten();
        cycles.map(|circle| circle.into_iter().collect()).collect()
    }

    #[test]
    fn siblings_that_use_each_other_are_a_cycle() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Thing;\n");
        let none = ("c.rs", "");
        let a = ("a.rs", "use crate::Thing;\nstruct A;\n");
        assert!(circles(&[lib, a, ("b.rs", "use std::fmt;\n"), none]).is_empty());
        // Through a re-export, by `super` from a child, by a path in the code, and around three.
        for b in [
            "use super::a::A;\n",
            "fn f(a: crate::a::A) {}\n",
            "use crate::{\n    a::A,\n};\n",
        ] {
            assert_eq!(circles(&[lib, a, ("b.rs", b), none]), [["a", "b"]], "{b}");
        }
        let three = [
            lib,
            a,
            ("b.rs", "use crate::c;\n"),
            ("c.rs", "use crate::a::A;\n"),
        ];
        assert_eq!(circles(&three), [["a", "b", "c"]]);
    }

    #[test]
    fn a_child_and_its_parent_are_no_cycle() {
        let files = [
            ("lib.rs", "mod a;\n"),
            ("a.rs", "mod inner;\nuse inner::B;\npub struct A;\n"),
            ("a/inner.rs", "use super::A;\npub struct B;\n"),
        ];
        assert!(circles(&files).is_empty());
    }

    #[test]
    fn fields_and_files_with_methods_are_counted() {
        let modules = modules(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            (
                "a.rs",
                "pub(super) struct A<'a> {\n    pub(super) one: &'a u8, // one: a\n    two: u8,\n}\nimpl A<'_> {\n    fn f() {}\n}\n",
            ),
            (
                "b.rs",
                "use crate::a::A;\nstruct B;\nimpl<T> A<T> {\n}\nimpl std::fmt::Debug for B {\n}\n",
            ),
        ]);
        let a = (vec!["a".to_owned()], "A".to_owned());
        assert_eq!(modules.fields()[&a], 2);
        assert_eq!(modules.impls().len(), 1, "{:?}", modules.impls());
        assert_eq!(modules.impls()[&a].len(), 2);
    }
}
