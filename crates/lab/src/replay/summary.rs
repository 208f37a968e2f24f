//! Summary of all traces and sizes: Convect compared with the best alternative.

use super::cost::Tally;
use super::hits::{self, Row};

/// Policies of which the best is what Convect's latency is held against.
const BEST_OF: [&str; 3] = ["lru-64k", "lru-256k", "nhit3-64k"];

/// Convect in parts of the others, for each trace and size.
#[derive(Default)]
pub struct Summary {
    latency: Vec<f64>,
    disk: Vec<f64>,
    migrated: Vec<f64>,
    latency_of_best: Vec<f64>,
    migrated_share: Vec<f64>,
    gap_closed: Vec<f64>,
}

impl Summary {
    /// Takes in the tables of one size.
    pub fn add(&mut self, tiers: &[Tally], rows: &[Row]) {
        let find = |name: &str| tiers.iter().find(|tally| tally.name == name);
        let (Some(own), Some(lru)) = (find("convect"), find("lru-64k")) else {
            return;
        };
        let ratio = |own: f64, other: f64| own / other.max(f64::MIN_POSITIVE);
        self.latency.push(ratio(own.latency_ms(), lru.latency_ms()));
        self.disk.push(ratio(own.disk_ms, lru.disk_ms));
        let migrated = ratio(own.migrated_share(), lru.migrated_share());
        self.migrated.push(migrated);
        let best = BEST_OF.iter().filter_map(|name| find(name));
        let best = best.map(Tally::latency_ms).fold(f64::MAX, f64::min);
        self.latency_of_best.push(ratio(own.latency_ms(), best));
        self.migrated_share.push(own.migrated_share());
        self.gap_closed.extend(hits::gap_closed(rows, "convect"));
    }

    /// Prints means and worst cases, if there was a table.
    pub fn print(&self) {
        if self.latency.is_empty() {
            return;
        }
        let most = |values: &[f64]| values.iter().copied().fold(f64::MIN, f64::max);
        let least = self.gap_closed.iter().copied().fold(f64::MAX, f64::min);
        let mean = self.gap_closed.iter().sum::<f64>() / self.gap_closed.len().max(1) as f64;
        println!("\nconvect in {} cases, beside lru-64k:", self.latency.len());
        let line = |what: &str, values: &[f64]| {
            let (mean, most) = (geometric_mean(values), most(values));
            println!("  {what}: {mean:.3} times (geometric mean), at most {most:.2}");
        };
        line("latency", &self.latency);
        line("disk time", &self.disk);
        line("bytes migrated", &self.migrated);
        line(
            "latency, to the best of lru-64k, lru-256k and nhit3",
            &self.latency_of_best,
        );
        println!(
            "  bytes migrated for a byte asked for: at most {:.2}",
            most(&self.migrated_share)
        );
        println!(
            "  on demand at 4 KiB: {:.1} % of the gap to belady closed (mean), at least {:.1} %",
            mean * 100.0,
            least * 100.0
        );
    }
}

fn geometric_mean(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (logs / values.len().max(1) as f64).exp()
}
