//! Encoder of the text formats OpenMetrics and Prometheus, which differ only in their headers.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// Kind of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Monotonic, until its object is reset.
    Counter,
    /// Any value.
    Gauge,
    /// Always 1; the information is in its labels.
    Info,
    /// Cumulative counts by upper bound, and a sum.
    Histogram,
}

/// A metric with its labels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Family {
    /// Name, without the suffix of its kind; its last word is the unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
    /// Help text: one line without quotes and backslashes.
    pub help: &'static str,
}

impl Family {
    /// Suffix of the kind.
    fn suffix(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
            Kind::Info => "_info",
        }
    }

    /// Name of its samples.
    pub fn sample(&self) -> String {
        format!("{}{}", self.name, self.suffix())
    }

    /// Unit; none for plain numbers.
    fn unit(&self) -> Option<&'static str> {
        let last = self.name.rsplit('_').next();
        last.filter(|word| ["bytes", "seconds", "ratio"].contains(word))
    }
}

/// Data of a histogram.
pub struct Counted<'a> {
    /// Formatted bounds, in ascending order.
    pub bounds: &'a [String],
    /// Counts per bucket; the last is beyond all bounds.
    pub counts: &'a [u64],
    /// Sum of all values.
    pub sum: f64,
}

/// Text format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
}

impl Format {
    /// Its content type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Samples by metric.
#[derive(Default)]
pub struct Page(BTreeMap<&'static str, (Option<Family>, String)>);

fn escape(to: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => to.push_str("\\\\"),
            '"' => to.push_str("\\\""),
            '\n' => to.push_str("\\n"),
            other => to.push(other),
        }
    }
}

impl Page {
    /// Adds a sample; `of` has its label values, which must be unique within the metric.
    pub fn add(&mut self, family: Family, of: &[&str], value: impl Display) {
        self.line(family, (family.suffix(), None), of, value);
    }

    /// Adds a histogram; as [`Page::add`].
    pub fn add_histogram(&mut self, family: Family, of: &[&str], counted: &Counted<'_>) {
        let mut count = 0;
        let bounds = counted.bounds.iter().map(String::as_str);
        for (bound, more) in bounds.chain(["+Inf"]).zip(counted.counts) {
            count += more;
            self.line(family, ("_bucket", Some(bound)), of, count);
        }
        self.line(family, ("_sum", None), of, counted.sum);
        self.line(family, ("_count", None), of, count);
    }

    fn line(
        &mut self,
        family: Family,
        (suffix, bound): (&str, Option<&str>),
        of: &[&str],
        value: impl Display,
    ) {
        debug_assert_eq!(family.labels.len(), of.len(), "{}", family.name);
        let (known, lines) = self.0.entry(family.name).or_default();
        *known = Some(family);
        lines.push_str(family.name);
        lines.push_str(suffix);
        let labels = family
            .labels
            .iter()
            .zip(of)
            .map(|(name, value)| (*name, *value));
        let mut between = "{";
        for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            lines.push_str(between);
            lines.push_str(label);
            lines.push_str("=\"");
            escape(lines, value);
            lines.push('"');
            between = ",";
        }
        let end = if between == "{" { "" } else { "}" };
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{end} {value}");
    }

    /// The page as text.
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        for (family, lines) in self.0.values() {
            if let Some(family) = family {
                head(&mut text, family, format);
            }
            text.push_str(lines);
        }
        if format == Format::OpenMetrics {
            text.push_str("# EOF\n");
        }
        text
    }
}

fn head(text: &mut String, family: &Family, format: Format) {
    let name = match format {
        Format::OpenMetrics => family.name.to_owned(),
        Format::Prometheus => family.sample(),
    };
    let kind = match (family.kind, format) {
        (Kind::Counter, _) => "counter",
        (Kind::Histogram, _) => "histogram",
        (Kind::Info, Format::OpenMetrics) => "info",
        _ => "gauge",
    };
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
    if let (Some(unit), Format::OpenMetrics) = (family.unit(), format) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Family = Family {
        name: "a_read_bytes",
        kind: Kind::Counter,
        labels: &["pool", "drive"],
        help: "Bytes read.",
    };
    const SESSIONS: Family = Family {
        name: "a_sessions",
        kind: Kind::Gauge,
        labels: &[],
        help: "Hosts.",
    };
    const BUILD: Family = Family {
        name: "a_build",
        kind: Kind::Info,
        labels: &["version"],
        help: "What answers.",
    };

    fn page() -> Page {
        let mut page = Page::default();
        page.add(SESSIONS, &[], 3);
        page.add(READ, &["tank", "file:/a"], 4096);
        page.add(BUILD, &["1.0"], 1);
        page.add(READ, &["tank", "file:/b"], u64::MAX);
        page
    }

    #[test]
    fn openmetrics_has_unsuffixed_families_units_and_eof() {
        assert_eq!(
            page().text(Format::OpenMetrics),
            "# HELP a_build What answers.\n# TYPE a_build info\na_build_info{version=\"1.0\"} 1\n\
             # HELP a_read_bytes Bytes read.\n# TYPE a_read_bytes counter\n\
             # UNIT a_read_bytes bytes\n\
             a_read_bytes_total{pool=\"tank\",drive=\"file:/a\"} 4096\n\
             a_read_bytes_total{pool=\"tank\",drive=\"file:/b\"} 18446744073709551615\n\
             # HELP a_sessions Hosts.\n# TYPE a_sessions gauge\na_sessions 3\n# EOF\n"
        );
    }

    #[test]
    fn prometheus_format_has_sample_names_without_units_and_eof() {
        let text = page().text(Format::Prometheus);
        assert!(text.contains("# TYPE a_read_bytes_total counter\na_read_bytes_total{"));
        assert!(text.contains("# TYPE a_build_info gauge\n"));
        assert!(
            !text.contains("# UNIT") && !text.contains("# EOF"),
            "{text}"
        );
    }

    #[test]
    fn histogram_is_cumulative_and_ends_with_infinity() {
        let family = Family {
            name: "a_wait_seconds",
            kind: Kind::Histogram,
            labels: &["pool"],
            help: "Waits.",
        };
        let mut page = Page::default();
        let bounds = ["0.5".to_owned(), "1".to_owned()];
        let counted = Counted {
            bounds: &bounds,
            counts: &[2, 0, 3],
            sum: 7.25,
        };
        page.add_histogram(family, &["p"], &counted);
        for format in [Format::OpenMetrics, Format::Prometheus] {
            let text = page.text(format);
            assert!(text.contains("# TYPE a_wait_seconds histogram\n"), "{text}");
            assert!(
                text.contains(
                    "a_wait_seconds_bucket{pool=\"p\",le=\"0.5\"} 2\n\
                 a_wait_seconds_bucket{pool=\"p\",le=\"1\"} 2\n\
                 a_wait_seconds_bucket{pool=\"p\",le=\"+Inf\"} 5\n\
                 a_wait_seconds_sum{pool=\"p\"} 7.25\na_wait_seconds_count{pool=\"p\"} 5\n"
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn label_values_are_escaped() {
        let mut page = Page::default();
        page.add(BUILD, &["a\"b\\c\nd,e}ü"], 1);
        let text = page.text(Format::OpenMetrics);
        let line = text.lines().nth(2).unwrap();
        assert_eq!(line, r#"a_build_info{version="a\"b\\c\nd,e}ü"} 1"#);
    }

    #[test]
    fn empty_page_is_valid() {
        assert_eq!(Page::default().text(Format::OpenMetrics), "# EOF\n");
        assert_eq!(Page::default().text(Format::Prometheus), "");
    }
}
