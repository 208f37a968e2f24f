//! Renders the screen of `convect top`. Pure functions.

use super::watched::{LiveView, PolicyNow, PoolNow};
use crate::iostat::{LOAD_HEAD, load_line};
use crate::map::{Paint, bar};
use crate::progress::pace;
use units::format_bytes;

/// Size of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Columns.
    pub columns: usize,
    /// Lines.
    pub lines: usize,
}

/// Maximum lines of jobs and of policies.
const JOBS: usize = 5;
const POLICIES: usize = 8;
/// Columns of a tier bar.
const STRIP: usize = 64;

/// Reads of a pool by tier, and its promotion and demotion rates.
fn tiers(now: &PoolNow, paint: Paint) -> String {
    let [ram, fast, slow] = now.load.shares;
    format!(
        "{} up {}/s down {}/s",
        bar([ram, fast, slow], STRIP, paint),
        format_bytes(now.promoted as u64),
        format_bytes(now.demoted as u64)
    )
}

const POLICY_HEAD: &str = "policy            level volumes  minimums       IOPS     held    met";

/// Minimums and attained performance of volumes with a policy, in one line.
fn policy_line(now: &PolicyNow) -> String {
    let policy = &now.policy;
    let met = now.met.map(|met| format!("{:.1} %", 100.0 * met));
    format!(
        "{:<16} {:>6} {:>7} {:>9} {:>10.0} {:>8.0} {:>6}",
        format!("{}/{}", policy.pool, policy.name),
        policy.level,
        policy.volumes,
        policy.promised_iops,
        now.iops,
        now.held,
        met.unwrap_or_else(|| "-".to_owned()),
    )
}

/// Truncates a long line. Coloured lines always fit.
fn cut(line: &str, columns: usize) -> String {
    match line.contains('\x1b') {
        true => line.to_owned(),
        false => line.chars().take(columns).collect(),
    }
}

/// The lines of the screen, each with its line end.
pub fn screen(watched: &LiveView, size: Size, paint: Paint) -> String {
    let mut lines = vec![LOAD_HEAD.to_owned()];
    for now in watched.pools() {
        lines.push(load_line(&now.pool.name, &now.load));
        lines.push(tiers(now, paint));
    }
    if !watched.policies().is_empty() {
        lines.push(String::new());
        lines.push(POLICY_HEAD.to_owned());
        lines.extend(watched.policies().iter().take(POLICIES).map(policy_line));
    }
    let jobs = watched.running().take(JOBS);
    let jobs: Vec<String> = jobs
        .map(|job| {
            let (kind, subject) = (&job.kind, &job.subject);
            format!("{:>5.1} %  {kind} {subject}  {}", job.percent, pace(job))
        })
        .collect();
    let room = size.lines.saturating_sub(lines.len() + jobs.len() + 4);
    let busiest = watched.busiest();
    lines.push(String::new());
    // Shares by tier are known for pools only.
    let shares = LOAD_HEAD.find("  RAM%").unwrap_or(LOAD_HEAD.len());
    let whole = |line: String| line.chars().take(shares).collect::<String>();
    lines.push(whole(LOAD_HEAD.replacen("pool  ", "volume", 1)));
    let volumes = busiest.iter().take(room);
    lines.extend(volumes.map(|(name, load)| whole(load_line(name, load))));
    if !jobs.is_empty() {
        lines.push(String::new());
        lines.extend(jobs);
    }
    let shown = lines.iter().take(size.lines);
    shown.map(|line| cut(line, size.columns) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::v1::{Counters, Job, JobState, LivePool, LiveState, LiveVolume};

    fn watched(volumes: usize) -> LiveView {
        let event = |at_ms, many: u64| LiveState {
            at_ms,
            whole: at_ms == 1000,
            changes: 0,
            pools: vec![LivePool {
                name: "tank".to_owned(),
                state: "online".to_owned(),
                counters: Counters {
                    reads: many * 4,
                    blocks_ram: many * 2,
                    blocks_slow: many * 2,
                    ..Counters::default()
                },
                used: 0,
                fast_dirty: 0,
                fast_shadow: 0,
                ram_bytes: 0,
            }],
            volumes: (0..volumes)
                .map(|number| LiveVolume {
                    pool: "tank".to_owned(),
                    name: format!("v{number}"),
                    did: [many * number as u64, 0, 0, 0, 0, 0],
                })
                .collect(),
            policies: None,
            jobs: Some(vec![Job {
                id: 1,
                kind: "scrub".to_owned(),
                subject: "tank".to_owned(),
                state: JobState::Running,
                done: 1,
                total: 4,
                percent: 25.0,
                rate: 1 << 20,
                seconds_left: Some(9),
                message: String::new(),
                began_s: 0,
                ended_s: None,
            }]),
        };
        let mut watched = LiveView::default();
        watched.take(event(1000, 0));
        watched.take(event(2000, 100));
        watched
    }

    #[test]
    fn screen_lists_pools_then_busiest_volumes_then_jobs() {
        let size = Size {
            columns: 100,
            lines: 24,
        };
        let text = screen(&watched(3), size, Paint::Letters);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].starts_with("tank") && lines[1].contains("400"),
            "{text}"
        );
        let strip = format!("{}{}", "R".repeat(32), "S".repeat(32));
        assert!(lines[2].starts_with(&strip), "{text}");
        assert!(
            lines[5].starts_with("tank/v2") && lines[6].starts_with("tank/v1"),
            "{text}"
        );
        assert_eq!(lines[9], " 25.0 %  scrub tank  1 MiB/s, 9 s left");
    }

    #[test]
    fn screen_fits_the_terminal() {
        for (columns, lines) in [(40, 10), (10, 3), (200, 50), (1, 1)] {
            let text = screen(&watched(100), Size { columns, lines }, Paint::Letters);
            assert!(text.lines().count() <= lines, "{columns} {lines}\n{text}");
            let fits = text.lines().all(|line| line.chars().count() <= columns);
            assert!(fits, "{columns} {lines}\n{text}");
        }
    }
}
