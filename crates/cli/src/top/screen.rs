//! Renders the screen of `convect top`. Pure functions.

use super::view::{Extent, View};
use super::watched::{LiveView, PolicyNow, PoolNow};
use crate::Load;
use crate::iostat::{LOAD_HEAD, LOAD_SHORT, load_line};
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
fn tiers(now: &PoolNow, columns: usize, paint: Paint) -> String {
    let [ram, fast, slow] = now.load.shares;
    let rates = format!(
        " up {}/s down {}/s",
        format_bytes(now.promoted as u64),
        format_bytes(now.demoted as u64)
    );
    match columns.saturating_sub(rates.len()).min(STRIP) {
        0 => cut(rates.trim_start(), columns),
        strip => bar([ram, fast, slow], strip, paint) + &rates,
    }
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

/// Cuts a text without colours to a number of columns.
fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() > columns {
        true => text
            .chars()
            .take(columns.saturating_sub(1))
            .chain(['…'])
            .take(columns)
            .collect(),
        false => text.to_owned(),
    }
}

/// Columns of a name in a line of load, as [`LOAD_HEAD`] has them.
const NAME: usize = 16;
/// Most columns that a name gets on a wide terminal.
const NAME_MAX: usize = 40;

/// How lines of load fit the terminal.
struct Fit {
    columns: usize,
    /// Columns of a name.
    name: usize,
    /// End of the figures that volumes have too: shares by tier are known for pools only.
    volume: usize,
    /// End of the figures of pools.
    pool: usize,
}

impl Fit {
    fn new(columns: usize) -> Self {
        let volume = LOAD_SHORT;
        let pool = match columns < LOAD_HEAD.len() {
            true => volume,
            false => LOAD_HEAD.len(),
        };
        let name = (columns + NAME).saturating_sub(pool).clamp(NAME, NAME_MAX);
        Self {
            columns,
            name,
            volume,
            pool,
        }
    }

    /// A name and the figures of a line of load up to `end`.
    fn line(&self, name: &str, load: &str, end: usize) -> String {
        let figures: String = load.chars().take(end).skip(NAME).collect();
        let width = self.name;
        cut(
            &format!("{:<width$}{figures}", cut(name, width)),
            self.columns,
        )
    }

    fn load(&self, name: &str, load: &Load, end: usize) -> String {
        self.line(name, &load_line("", load), end)
    }
}

/// Maximum characters of an alert's message.
const MESSAGE: usize = 120;

/// The open alerts in one line, the most severe first.
fn alerts(watched: &LiveView) -> Option<String> {
    let alerts = watched.alerts()?;
    let worst = alerts.iter().max_by_key(|alert| alert.severity);
    Some(match (alerts.len(), worst) {
        (_, None) => "no alerts".to_owned(),
        (count, Some(worst)) => {
            let plural = if count == 1 { "" } else { "s" };
            let message: String = worst.message.chars().take(MESSAGE).collect();
            let severity = worst.severity.as_str();
            format!("{count} alert{plural}: {severity}: {message}")
        }
    })
}

/// Keys and what they do.
const HELP: [&str; 10] = [
    "q            quit",
    "?            this help; any key closes it",
    "s            sort by the next figure: IOPS, bandwidth, latency, name",
    "S            reverse the order",
    "/            filter by name; Enter keeps the filter, Escape clears it",
    "a            show idle volumes and policies too, or only busy ones",
    "Up, Down     scroll by a line",
    "PgUp, PgDn   scroll by a page",
    "Home, End    to the first or last volume",
    "Ctrl-C       quit",
];

/// The state of the view and its keys.
fn status(view: &View, extent: Extent) -> String {
    if view.editing {
        return format!("filter: {}_  (Enter: keep, Escape: clear)", view.filter);
    }
    let first = view.first.min(extent.total.saturating_sub(extent.room));
    let last = (first + extent.room).min(extent.total);
    let order = if view.reversed { ", reversed" } else { "" };
    let which = if view.all { "all" } else { "busy" };
    let filter = match view.filter.as_str() {
        "" => String::new(),
        filter => format!(" with \"{filter}\""),
    };
    format!(
        "q quit  ? help  {which} volumes{filter} {}-{last} of {}  sort: {}{order}",
        (first + 1).min(last),
        extent.total,
        view.sort.name()
    )
}

/// The lines of the screen, each with its line end, and the extent of its list of volumes. With
/// `keys` the last line tells which there are.
pub fn screen(
    watched: &LiveView,
    view: &View,
    size: Size,
    paint: Paint,
    keys: bool,
) -> (String, Extent) {
    let Size { columns, lines } = size;
    let joined =
        |shown: &[String]| -> String { shown.iter().map(|line| format!("{line}\n")).collect() };
    if view.help {
        let help: Vec<String> = HELP.iter().map(|line| cut(line, columns)).collect();
        return (joined(&help[..help.len().min(lines)]), Extent::default());
    }
    let fit = Fit::new(columns);
    let mut above = vec![fit.line("pool", LOAD_HEAD, fit.pool)];
    for now in watched.pools() {
        above.push(fit.load(&now.pool.name, &now.load, fit.pool));
        above.push(tiers(now, columns, paint));
    }
    let policies = watched.policies().iter();
    let policies = policies.filter(|now| view.all || now.iops > 0.0 || now.held > 0.0);
    let policies: Vec<String> = policies.take(POLICIES).map(policy_line).collect();
    if !policies.is_empty() {
        above.extend([String::new(), cut(POLICY_HEAD, columns)]);
        above.extend(policies.iter().map(|line| cut(line, columns)));
    }
    above.push(String::new());
    above.push(fit.line("volume", LOAD_HEAD, fit.volume));
    let mut below = Vec::new();
    for job in watched.running().take(JOBS) {
        let (kind, subject) = (&job.kind, &job.subject);
        let line = format!("{:>5.1} %  {kind} {subject}  {}", job.percent, pace(job));
        below.push(cut(&line, columns));
    }
    if !below.is_empty() {
        below.insert(0, String::new());
    }
    below.extend(alerts(watched).map(|line| cut(&line, columns)));
    let volumes = view.listed(watched.busiest());
    let used = above.len() + below.len() + usize::from(keys);
    let extent = Extent {
        room: lines.saturating_sub(used),
        total: volumes.len(),
    };
    if keys {
        below.push(cut(&status(view, extent), columns));
    }
    let first = view.first.min(extent.total.saturating_sub(extent.room));
    let shown = volumes.iter().skip(first).take(extent.room);
    above.extend(shown.map(|(name, load)| fit.load(name, load, fit.volume)));
    // Where there is too little room, what is below matters more.
    let kept = lines.saturating_sub(below.len());
    above.truncate(kept);
    above.extend(below);
    above.truncate(lines);
    (joined(&above), extent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::v1::{
        Alert, Counters, EventCode, Job, JobState, LivePool, LiveState, LiveVolume, Severity,
        Subject, SubjectKind,
    };

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
        let (text, extent) = screen(&watched(3), &View::default(), size, Paint::Letters, true);
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
        // tank/v0 is idle.
        assert_eq!(lines[8], " 25.0 %  scrub tank  1 MiB/s, 9 s left");
        assert_eq!(extent.total, 2);
        let keys = "q quit  ? help  busy volumes 1-2 of 2  sort: IOPS";
        assert_eq!(lines[9..], [keys]);
    }

    #[test]
    fn screen_fits_the_terminal() {
        let mut watched = watched(100);
        watched.take_alerts(vec![alert(Severity::Warning, &"long ".repeat(50))]);
        let help = View {
            help: true,
            ..View::default()
        };
        for (columns, lines) in [(40, 10), (10, 3), (80, 24), (200, 50), (1, 1)] {
            for view in [&View::default(), &help] {
                let size = Size { columns, lines };
                let (text, _) = screen(&watched, view, size, Paint::Letters, true);
                assert!(text.lines().count() <= lines, "{columns} {lines}\n{text}");
                let fits = text.lines().all(|line| line.chars().count() <= columns);
                assert!(fits, "{columns} {lines}\n{text}");
            }
        }
    }

    fn alert(severity: Severity, message: &str) -> Alert {
        Alert {
            number: 1,
            since_s: 0,
            severity,
            code: EventCode::PoolFilling,
            subject: Subject {
                kind: SubjectKind::Pool,
                name: "tank".to_owned(),
                pool: None,
            },
            message: message.to_owned(),
            advice: String::new(),
            runbook: String::new(),
            grade: 0,
        }
    }

    #[test]
    fn worst_alert_is_told_and_volumes_scroll_by_name() {
        let mut watched = watched(100);
        let size = Size {
            columns: 80,
            lines: 24,
        };
        let view = View {
            first: 90,
            filter: "V1".to_owned(),
            ..View::default()
        };
        let at = |watched: &LiveView| screen(watched, &view, size, Paint::Letters, true);
        assert!(!at(&watched).0.contains("alert"), "not known yet");
        watched.take_alerts(Vec::new());
        assert!(at(&watched).0.contains("\nno alerts\n"));
        watched.take_alerts(vec![
            alert(Severity::Warning, "slow"),
            alert(Severity::Critical, "full"),
        ]);
        let (text, extent) = at(&watched);
        assert!(text.contains("\n2 alerts: critical: full\n"), "{text}");
        // v1 and v10 to v19; all fit, so nothing is scrolled away.
        assert_eq!(extent.total, 11);
        assert!(
            text.contains("tank/v19 ") && text.contains("tank/v1 "),
            "{text}"
        );
        assert!(
            text.contains("busy volumes with \"V1\" 1-11 of 11"),
            "{text}"
        );
    }
}
