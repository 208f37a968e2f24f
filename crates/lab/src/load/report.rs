//! The figures of a load, for people and for programs.

use super::run::Outcome;
use super::second::{Second, Series};
use crate::screen::{self, thousands};
use serde::Serialize;

const US: f64 = 1e3;
const MIB: f64 = (1u64 << 20) as f64;

/// How soon requests were answered, in microseconds.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// p50.
    pub p50_us: f64,
    /// p99.
    pub p99_us: f64,
    /// p99.9.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl From<&Second> for Latency {
    fn from(second: &Second) -> Self {
        let us = |percent| second.percentile_ns(percent) as f64 / US;
        Self {
            p50_us: us(50.0),
            p99_us: us(99.0),
            p999_us: us(99.9),
            max_us: second.longest_ns as f64 / US,
        }
    }
}

/// Results of one kind of requests.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct Kind {
    /// Requests answered a second.
    pub iops: f64,
    /// MiB per second.
    pub mib_per_s: f64,
    /// Requests that were due and never sent.
    pub unsent: u64,
    /// How soon they were answered.
    #[serde(flatten)]
    pub latency: Latency,
}

impl Kind {
    fn of(series: &Series) -> Self {
        let whole = series.whole();
        let seconds = series.0.len().max(1) as f64;
        Self {
            iops: whole.count() as f64 / seconds,
            mib_per_s: whole.bytes as f64 / MIB / seconds,
            unsent: whole.unsent,
            latency: Latency::from(&whole),
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        let Latency {
            p50_us,
            p99_us,
            p999_us,
            max_us,
        } = self.latency;
        let mut row = vec![
            name.to_owned(),
            thousands(self.iops),
            thousands(self.mib_per_s),
        ];
        row.extend([p50_us, p99_us, p999_us, max_us].map(|us| format!("{us:.1}")));
        row.push(self.unsent.to_string());
        row
    }
}

/// All figures of a load.
#[derive(Serialize, Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Seconds that count.
    pub seconds: u64,
    /// Reads and writes together.
    pub all: Kind,
    /// Reads.
    pub reads: Kind,
    /// Writes.
    pub writes: Kind,
    /// Cores that this program took.
    pub client_cores: f64,
    /// Cores that the server took.
    pub server_cores: Option<f64>,
    /// Cores that everybody else took on this machine.
    pub other_cores: f64,
    /// Requests a second for each core that the server took.
    pub iops_per_server_core: Option<f64>,
    /// MiB per second for each.
    pub mib_per_s_per_server_core: Option<f64>,
}

impl From<&Outcome> for Figures {
    fn from(outcome: &Outcome) -> Self {
        let mut all = outcome.reads.clone();
        all.merge(&outcome.writes);
        let all = Kind::of(&all);
        let server = outcome.server.map(|seconds| seconds / outcome.looked);
        let per_core = |figure: f64| {
            server
                .filter(|cores| *cores > 0.0)
                .map(|cores| figure / cores)
        };
        Self {
            seconds: outcome.reads.0.len() as u64,
            all,
            reads: Kind::of(&outcome.reads),
            writes: Kind::of(&outcome.writes),
            client_cores: outcome.own / outcome.looked,
            server_cores: server,
            other_cores: (outcome.all - outcome.own - outcome.server.unwrap_or(0.0)).max(0.0)
                / outcome.looked,
            iops_per_server_core: per_core(all.iops),
            mib_per_s_per_server_core: per_core(all.mib_per_s),
        }
    }
}

impl Figures {
    /// For people.
    pub fn table(&self) -> String {
        let head = [
            "",
            "IOPS",
            "MiB/s",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "max us",
            "never sent",
        ];
        let kinds = [("reads", &self.reads), ("writes", &self.writes)];
        let used = kinds
            .iter()
            .filter(|(_, kind)| kind.iops > 0.0 || kind.unsent > 0);
        let mut rows: Vec<Vec<String>> = used.map(|(name, kind)| kind.row(name)).collect();
        if rows.len() != 1 {
            rows.push(self.all.row("all"));
        }
        let mut text = screen::table(&head, &rows);
        text += &format!("  processor: client {:.2} cores", self.client_cores);
        if let (Some(cores), Some(iops)) = (self.server_cores, self.iops_per_server_core) {
            text += &format!(
                ", server {cores:.2}; {} IOPS a server core",
                thousands(iops)
            );
        }
        text + &format!("; others {:.2}\n", self.other_cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Answer;

    #[test]
    fn figures_are_for_a_second_and_for_a_core() {
        let mut outcome = Outcome {
            looked: 2.0,
            own: 1.0,
            server: Some(0.5),
            all: 1.7,
            ..Outcome::default()
        };
        for number in 0..1_000 {
            outcome.reads.answered(Answer {
                at_ns: number * 2_000_000 + 1_000,
                due_ns: number * 2_000_000,
                bytes: 1 << 20,
            });
        }
        outcome.reads.cut(0, 2);
        outcome.writes.cut(0, 2);
        let figures = Figures::from(&outcome);
        assert_eq!((figures.all.iops, figures.all.mib_per_s), (500.0, 500.0));
        assert_eq!(
            (figures.client_cores, figures.server_cores),
            (0.5, Some(0.25))
        );
        assert_eq!(figures.iops_per_server_core, Some(2_000.0));
        assert!((figures.other_cores - 0.1).abs() < 1e-9);
        assert_eq!(figures.reads.latency.p50_us, 1.0);
        let text = figures.table();
        assert!(text.contains("reads") && !text.contains("writes"), "{text}");
        assert!(text.contains("2,000 IOPS a server core"), "{text}");
        let json = serde_json::to_value(figures).expect("JSON");
        assert_eq!(json["reads"]["p99_us"], 1.0);
    }
}
