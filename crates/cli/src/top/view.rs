//! What of the live data is shown, and how keys change it: a state machine without I/O.

use super::keys::Key;
use crate::Load;

/// Maximum length of a filter, in characters.
const FILTER_MAX: usize = 64;

/// Order of the volumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sort {
    /// Operations per second.
    #[default]
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean latency, of reads or writes.
    Latency,
    /// Name.
    Name,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Iops => Self::Bandwidth,
            Self::Bandwidth => Self::Latency,
            Self::Latency => Self::Name,
            Self::Name => Self::Iops,
        }
    }

    /// Its name on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Bandwidth => "bandwidth",
            Self::Latency => "latency",
            Self::Name => "name",
        }
    }

    fn figure(self, load: &Load) -> f64 {
        match self {
            Self::Iops => load.read_iops + load.write_iops,
            Self::Bandwidth => load.read_bytes + load.write_bytes,
            Self::Latency => load.read_ms.max(load.write_ms),
            Self::Name => 0.0,
        }
    }
}

/// Lines of the list of volumes when it was drawn last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Lines for volumes on the screen.
    pub room: usize,
    /// Volumes in the list.
    pub total: usize,
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Draw again.
    Draw,
    /// Quit.
    Quit,
}

/// What is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct View {
    /// Order of the volumes; figures begin with the largest, names with the first.
    pub sort: Sort,
    /// Whether that order is reversed.
    pub reversed: bool,
    /// Only names that contain this, whatever the case.
    pub filter: String,
    /// Whether keys are added to the filter.
    pub editing: bool,
    /// Whether idle volumes and policies are shown too.
    pub all: bool,
    /// Whether the keys are explained instead.
    pub help: bool,
    /// First volume that is shown.
    pub first: usize,
}

impl View {
    /// Applies a key.
    pub fn key(&mut self, key: Key, extent: Extent) -> Outcome {
        if self.help {
            self.help = false;
            return match key {
                Key::Char('q') => Outcome::Quit,
                _ => Outcome::Draw,
            };
        }
        if self.editing {
            self.edit(key);
            return Outcome::Draw;
        }
        let last = extent.total.saturating_sub(extent.room);
        let page = extent.room.max(1);
        match key {
            Key::Char('q') => return Outcome::Quit,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('s') => (self.sort, self.first) = (self.sort.next(), 0),
            Key::Char('S') => (self.reversed, self.first) = (!self.reversed, 0),
            Key::Char('/') => self.editing = true,
            Key::Char('a') => (self.all, self.first) = (!self.all, 0),
            Key::Escape => (self.filter, self.first) = (String::new(), 0),
            Key::Up | Key::Char('k') => self.first = self.first.min(last).saturating_sub(1),
            Key::Down | Key::Char('j') => self.first = (self.first + 1).min(last),
            Key::PageUp => self.first = self.first.min(last).saturating_sub(page),
            Key::PageDown => self.first = (self.first + page).min(last),
            Key::Home => self.first = 0,
            Key::End => self.first = last,
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        Outcome::Draw
    }

    fn edit(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.filter.chars().count() < FILTER_MAX => self.filter.push(c),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.editing = false,
            Key::Escape => {
                self.editing = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.first = 0;
    }

    /// Whether an object with this name is shown.
    pub fn shows(&self, name: &str, is_busy: bool) -> bool {
        let is_named = || name.to_lowercase().contains(&self.filter.to_lowercase());
        (self.all || is_busy) && (self.filter.is_empty() || is_named())
    }

    /// The volumes that are listed, in order.
    pub fn listed(&self, volumes: Vec<(String, Load)>) -> Vec<(String, Load)> {
        let is_busy = |load: &Load| Sort::Iops.figure(load) > 0.0;
        let mut listed: Vec<(String, Load)> = volumes
            .into_iter()
            .filter(|(name, load)| self.shows(name, is_busy(load)))
            .collect();
        listed.sort_by(|one, other| {
            let figures = self
                .sort
                .figure(&other.1)
                .total_cmp(&self.sort.figure(&one.1));
            let order = figures.then_with(|| one.0.cmp(&other.0));
            if self.reversed {
                order.reverse()
            } else {
                order
            }
        });
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent {
        room: 10,
        total: 25,
    };

    fn after(keys: &[Key]) -> View {
        let mut view = View::default();
        for key in keys {
            assert_eq!(view.key(*key, EXTENT), Outcome::Draw, "{key:?}");
        }
        view
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    fn volumes() -> Vec<(String, Load)> {
        let load = |iops, bytes| Load {
            read_iops: iops,
            read_bytes: bytes,
            ..Load::default()
        };
        let named = |name: &str, load| (name.to_owned(), load);
        vec![
            named("tank/a", load(1.0, 9.0)),
            named("tank/idle", load(0.0, 0.0)),
            named("tank/B", load(5.0, 2.0)),
        ]
    }

    fn names(view: &View) -> Vec<String> {
        let listed = view.listed(volumes());
        listed.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn q_quits_but_not_while_a_filter_is_typed() {
        assert_eq!(View::default().key(Key::Char('q'), EXTENT), Outcome::Quit);
        assert_eq!(
            after(&[Key::Char('?')]).key(Key::Char('q'), EXTENT),
            Outcome::Quit
        );
        assert_eq!(after(&typed("/q")).filter, "q");
    }

    #[test]
    fn scrolling_stays_within_the_list() {
        let cases: [(&[Key], usize); 9] = [
            (&[Key::Up], 0),
            (&[Key::Down], 1),
            (&[Key::PageDown], 10),
            (&[Key::PageDown, Key::PageDown], 15),
            (&[Key::End, Key::Down], 15),
            (&[Key::End, Key::Up], 14),
            (&[Key::End, Key::PageUp], 5),
            (&[Key::End, Key::Home], 0),
            (&[Key::End, Key::Char('s')], 0),
        ];
        for (keys, first) in cases {
            assert_eq!(after(keys).first, first, "{keys:?}");
        }
    }

    #[test]
    fn volumes_are_sorted_by_the_chosen_figure_and_idle_ones_hidden() {
        assert_eq!(names(&after(&[])), ["tank/B", "tank/a"]);
        assert_eq!(names(&after(&typed("s"))), ["tank/a", "tank/B"]);
        assert_eq!(names(&after(&typed("sss"))), ["tank/B", "tank/a"]);
        assert_eq!(names(&after(&typed("S"))), ["tank/a", "tank/B"]);
        assert_eq!(after(&typed("ssss")).sort, Sort::Iops);
        assert_eq!(
            names(&after(&typed("a"))),
            ["tank/B", "tank/a", "tank/idle"]
        );
    }

    #[test]
    fn filter_is_edited_applied_and_cleared() {
        let mut keys = typed("/bx");
        keys.extend([Key::Backspace, Key::Enter]);
        let view = after(&keys);
        assert!(!view.editing);
        assert_eq!(names(&view), ["tank/B"]);
        keys.push(Key::Escape);
        assert_eq!(after(&keys).filter, "");
        let long = after(&typed(&format!("/{}", "x".repeat(100))));
        assert_eq!(long.filter.len(), FILTER_MAX);
    }

    #[test]
    fn any_key_closes_the_help() {
        assert!(after(&typed("?")).help);
        assert!(!after(&typed("?x")).help);
    }
}
