//! A list as it was requested: columns, order, names, form.

use super::{Column, Get, Head, Pattern, STATES, layout};
use crate::list_arguments::ListOptions;
use crate::show::{print, print_json, print_styled, read};
use crate::terminal::{fold, width};
use crate::{Failure, colour, visible};
use api::v1::Problem;
use serde::de::DeserializeOwned;
use std::cmp::Ordering;

/// A list of `T` as it was requested on the command line.
pub struct Listing<T> {
    columns: Vec<Column<T>>,
    keys: Vec<Get<T>>,
    order: Option<(Get<T>, bool)>,
    patterns: Vec<Pattern>,
    /// Whether the columns were chosen: then none is omitted.
    chosen: bool,
    script: bool,
    exact: bool,
    json: bool,
}

fn known<T>(columns: &[Column<T>]) -> String {
    let names = columns.iter().map(Column::name);
    names.collect::<Vec<_>>().join(", ")
}

fn place<T>(columns: &[Column<T>], name: &str) -> Result<usize, Failure> {
    columns
        .iter()
        .position(|column| column.is(name))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "unknown column '{name}': choose from {}",
                known(columns)
            ))
        })
}

impl<T> Listing<T> {
    /// A list with these columns; all objects, unless `names` limits it.
    ///
    /// # Errors
    /// When an option names a column that is not there, or is given with `--json`.
    pub fn new(
        columns: Vec<Column<T>>,
        options: &ListOptions,
        names: &[String],
        json: bool,
    ) -> Result<Self, Failure> {
        if json && options.is_any() {
            return Err(Failure::Usage(
                "-o, -H, -p and --sort format a table: remove them, or --json, whose response is \
                 complete and exact"
                    .to_owned(),
            ));
        }
        let mut columns = columns;
        if !columns.iter().any(|column| column.key)
            && let Some(first) = columns.first_mut()
        {
            first.key = true;
        }
        let order = match options.sort.as_deref() {
            None => None,
            Some(name) => {
                let descending = name.starts_with('-');
                let index = place(&columns, name.strip_prefix('-').unwrap_or(name))?;
                Some((columns[index].value, descending))
            }
        };
        let keys = columns.iter().filter(|column| column.key || column.matched);
        let keys = keys.map(|column| column.value).collect();
        let chosen: Vec<usize> = match options.columns.as_slice() {
            [] => (0..columns.len())
                .filter(|index| !columns[*index].hidden)
                .collect(),
            [all] if all == "all" => (0..columns.len()).collect(),
            names => names
                .iter()
                .map(|name| place(&columns, name))
                .collect::<Result<_, _>>()?,
        };
        let column = |index: usize| {
            let of = &columns[index];
            Column {
                header: of.header,
                right: of.right,
                key: of.key,
                matched: of.matched,
                hidden: of.hidden,
                value: of.value,
            }
        };
        Ok(Self {
            columns: chosen.into_iter().map(column).collect(),
            keys,
            order,
            patterns: names.iter().map(|name| Pattern::new(name)).collect(),
            chosen: !options.columns.is_empty(),
            script: options.no_header,
            exact: options.exact,
            json,
        })
    }

    fn is_wanted(&self, item: &T) -> bool {
        let mut patterns = self.patterns.iter();
        self.patterns.is_empty() || patterns.any(|pattern| self.is_match(pattern, item))
    }

    fn is_match(&self, pattern: &Pattern, item: &T) -> bool {
        let mut keys = self.keys.iter().map(|key| key(item).exact());
        keys.any(|key| pattern.matches(&key))
    }

    /// Fails if a name without wildcards matches nothing.
    fn check(&self, items: &[&T]) -> Result<(), Failure> {
        let is_absent = |pattern: &&Pattern| {
            !pattern.is_wild() && !items.iter().any(|item| self.is_match(pattern, item))
        };
        match self.patterns.iter().find(is_absent) {
            None => Ok(()),
            Some(pattern) => Err(Failure::Refused(Problem::not_found(format!(
                "nothing in this list is named '{}': run it without a name to see all",
                pattern.text()
            )))),
        }
    }

    fn lines(&self, items: &[&T], width: Option<usize>) -> String {
        let mut items: Vec<&T> = items.to_vec();
        if let Some((value, descending)) = self.order {
            let compare = |one: &&T, other: &&T| -> Ordering {
                let order = value(one).compare(&value(other));
                if descending { order.reverse() } else { order }
            };
            items.sort_by(compare);
        }
        let cell = |column: &Column<T>, item: &T| {
            let value = (column.value)(item);
            match self.exact {
                true => value.exact(),
                false if self.script && value.shown().is_empty() => "-".to_owned(),
                false => value.shown().to_owned(),
            }
        };
        let row = |item: &&T| -> Vec<String> {
            let cells = self.columns.iter().map(|column| cell(column, item));
            cells.collect()
        };
        let rows: Vec<Vec<String>> = items.iter().map(row).collect();
        if self.script {
            let line = |row: &Vec<String>| {
                let cells = row.iter().map(|cell| visible::cell(cell));
                cells.collect::<Vec<_>>().join("\t") + "\n"
            };
            return rows.iter().map(line).collect();
        }
        let head = |column: &Column<T>| Head {
            header: column.header.to_owned(),
            right: column.right,
            kept: self.chosen || column.key || STATES.contains(&column.header),
            state: STATES.contains(&column.header),
        };
        let heads: Vec<Head> = self.columns.iter().map(head).collect();
        layout(&heads, &rows, width, colour::is_enabled())
    }

    /// Parses a response; prints it as it is where nothing else is requested: with `--json` and
    /// without names.
    ///
    /// # Errors
    /// When the daemon has an incompatible version, or the output is closed.
    pub fn read<L: DeserializeOwned>(&self, answer: &[u8]) -> Result<Option<L>, Failure> {
        match self.json && self.patterns.is_empty() {
            true => print_json(answer, true).map(|()| None),
            false => read(answer).map(Some),
        }
    }

    /// The objects that the names select.
    ///
    /// # Errors
    /// When a name without wildcards selects nothing.
    pub fn wanted<'a>(
        &self,
        items: impl IntoIterator<Item = &'a T>,
    ) -> Result<Vec<&'a T>, Failure> {
        let items: Vec<&T> = items.into_iter().collect();
        self.check(&items)?;
        Ok(items
            .into_iter()
            .filter(|item| self.is_wanted(item))
            .collect())
    }

    /// Prints the objects that are wanted; with `--json` the response `answer`, whose `items` they
    /// are.
    ///
    /// # Errors
    /// When a name matches nothing, or the output is closed.
    pub fn print<'a>(
        &self,
        answer: &[u8],
        items: impl IntoIterator<Item = &'a T>,
    ) -> Result<(), Failure>
    where
        T: 'a,
    {
        let items: Vec<&T> = items.into_iter().collect();
        let wanted = self.wanted(items.iter().copied())?;
        if self.json && self.patterns.is_empty() {
            return print_json(answer, true);
        }
        if self.json {
            return print_json(&self.filtered(answer, &items)?, true);
        }
        print_styled(&self.lines(&wanted, width()))
    }

    /// Prints what belongs to a list besides its rows; nothing for scripts.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn note(&self, text: &str) -> Result<(), Failure> {
        match self.script || self.json || text.is_empty() {
            true => Ok(()),
            false => {
                let folded = text.lines().map(|line| fold(line, 0, width()) + "\n");
                print(&folded.collect::<String>())
            }
        }
    }

    /// The response with only the items that are wanted.
    fn filtered(&self, answer: &[u8], items: &[&T]) -> Result<Vec<u8>, Failure> {
        let unreadable = |error: serde_json::Error| Failure::Failed(error.to_string());
        let mut value: serde_json::Value = serde_json::from_slice(answer).map_err(unreadable)?;
        if let Some(list) = value.get_mut("items").and_then(|list| list.as_array_mut()) {
            let mut wanted = items.iter().map(|item| self.is_wanted(item));
            list.retain(|_| wanted.next().unwrap_or(true));
        }
        serde_json::to_vec(&value).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Value;

    type Item = (&'static str, u64);

    const ITEMS: [Item; 3] = [("tank/vm1", 2048), ("tank/vm2", 4096), ("ice/db", 512)];

    fn columns() -> Vec<Column<Item>> {
        vec![
            Column::text("VOLUME", |item: &Item| Value::text(item.0)),
            Column::number("MAX SIZE", |item: &Item| Value::bytes(item.1)),
            Column::number("LENGTH", |item: &Item| Value::count(item.0.len() as u64)).hidden(),
        ]
    }

    fn lines(options: &ListOptions, names: &[&str]) -> Result<String, Failure> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let listing = Listing::new(columns(), options, &names, false)?;
        let items: Vec<&Item> = ITEMS.iter().collect();
        Ok(listing.lines(&listing.wanted(items)?, None))
    }

    fn options(columns: &[&str], sort: Option<&str>) -> ListOptions {
        ListOptions {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            no_header: true,
            exact: true,
            sort: sort.map(str::to_owned),
        }
    }

    #[test]
    fn columns_are_chosen_in_order_and_sorted_by_exact_value() {
        let text = lines(&options(&["max_size", "name"], Some("max-size")), &[]).unwrap();
        assert_eq!(text, "512\tice/db\n2048\ttank/vm1\n4096\ttank/vm2\n");
        let text = lines(&options(&["name"], Some("-max_size")), &[]).unwrap();
        assert_eq!(text, "tank/vm2\ntank/vm1\nice/db\n");
        let all = lines(&options(&["all"], None), &["ice"]).unwrap();
        assert_eq!(all, "ice/db\t512\t6\n");
        let plain = lines(&ListOptions::default(), &[]).unwrap();
        assert!(
            plain.starts_with("VOLUME    MAX SIZE\ntank/vm1     2 KiB\n"),
            "{plain}"
        );
    }

    #[test]
    fn unknown_column_lists_the_columns() {
        for wrong in [options(&["colour"], None), options(&[], Some("-colour"))] {
            let failure = lines(&wrong, &[]).unwrap_err();
            assert_eq!(failure.code(), 2);
            assert_eq!(
                failure.to_string(),
                "unknown column 'colour': choose from volume, max_size, length"
            );
        }
        let both = Listing::new(columns(), &options(&["name"], None), &[], true);
        assert_eq!(both.err().map(|failure| failure.code()), Some(2));
    }

    #[test]
    fn names_and_patterns_limit_the_list_and_an_absent_name_is_an_error() {
        let name = options(&["name"], None);
        assert_eq!(lines(&name, &["vm*"]).unwrap(), "tank/vm1\ntank/vm2\n");
        assert_eq!(lines(&name, &["ice", "vm2"]).unwrap(), "tank/vm2\nice/db\n");
        assert_eq!(lines(&name, &["x*"]).unwrap(), "");
        assert_eq!(lines(&name, &["vm1", "x"]).unwrap_err().code(), 3);
    }

    #[test]
    fn json_keeps_only_items_that_match() {
        let names = ["vm2".to_owned()];
        let listing = Listing::new(columns(), &ListOptions::default(), &names, true).unwrap();
        let answer = br#"{"items":[{"n":1},{"n":2},{"n":3}],"next":null}"#;
        let items: Vec<&Item> = ITEMS.iter().collect();
        let text = String::from_utf8(listing.filtered(answer, &items).unwrap()).unwrap();
        assert_eq!(text, r#"{"items":[{"n":2}],"next":null}"#);
    }
}
