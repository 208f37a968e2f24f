//! The table at the end, for people and for programs.

use super::outcome::{
    Judged, Kind, MET_PERCENT, Phase, Storms, TRANSACTIONS_PERCENT, UNMET_PERCENT,
};
use super::scene::{DATABASE, FLOOR_MS, MAIL};
use crate::screen::{self, thousands};
use crate::tenants::{Attained, Window};
use serde_json::{Value, json};

/// The head of the table of tenants.
pub const HEAD: [&str; 7] = ["", "tenant", "IOPS", "MiB/s", "p50 ms", "p99 ms", "max ms"];
/// The head of the table of published figures.
pub const PUBLISHED_HEAD: [&str; 3] = ["", "published", "here"];

/// The head of the table of a real database.
pub const POSTGRES_HEAD: [&str; 4] = ["PostgreSQL, pgbench", "tps", "mean ms", "% of alone"];

/// Results of a real database in each part of the run, if there was one.
pub fn postgres(storms: &Storms) -> Vec<Vec<String>> {
    let rows = storms.transactions.iter().map(|(kind, seen)| {
        let percent = storms.transactions_percent(*kind).unwrap_or(f64::NAN);
        vec![
            kind.name().to_owned(),
            thousands(seen.per_second),
            format!("{:.2}", seen.latency_ms),
            format!("{percent:.1}"),
        ]
    });
    rows.collect()
}

fn ms(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e6)
}

fn longest_ns(windows: &[Window]) -> u64 {
    let longest = windows.iter().map(|window| window.max_ns);
    longest.max().unwrap_or_default()
}

fn row(name: &str, tenant: &Attained) -> Vec<String> {
    vec![
        name.to_owned(),
        tenant.name.clone(),
        thousands(tenant.iops()),
        thousands(tenant.bytes_per_s() / f64::from(1 << 20)),
        ms(tenant.percentile_ns(50.0)),
        ms(tenant.percentile_ns(99.0)),
        ms(longest_ns(&tenant.windows)),
    ]
}

/// Service attained by each tenant in each part of the run.
pub fn rows(storms: &Storms) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for phase in &storms.phases {
        for (number, tenant) in phase.outcome.tenants.iter().enumerate() {
            let name = if number == 0 { phase.kind.name() } else { "" };
            rows.push(row(name, tenant));
        }
    }
    rows
}

/// Published results of such a storm, beside those with policies.
pub fn published(storms: &Storms) -> Vec<Vec<String>> {
    let Some(phase) = storms.phase(Kind::With) else {
        return Vec::new();
    };
    let line = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let booted = match phase.boot_seconds() {
        Some(seconds) => format!("all {} after {seconds:.1} s", storms.desktops),
        None => format!(
            "{} of {} after {:.1} s",
            phase.booted(storms.desktops),
            storms.desktops,
            phase.outcome.of(DATABASE).seconds()
        ),
    };
    let kept = 100.0 * phase.outcome.of(DATABASE).iops() / storms.alone_iops().max(1.0);
    let mail = phase.outcome.of(MAIL).percentile_ns(99.0);
    vec![
        line([
            "bursts of the desktops, IOPS",
            "over 20,000",
            &thousands(phase.burst_iops() as f64),
        ]),
        line(["desktops booted", "600 in five minutes", &booted]),
        line([
            "database",
            "6,500 orders a minute, unaffected",
            &format!("{kept:.0} % of its IOPS alone"),
        ]),
        line([
            "mail",
            "RPC under 50 ms",
            &format!("99 of 100 requests within {} ms", ms(mail)),
        ]),
    ]
}

fn verdict(name: &str, met: bool, seen: &str) -> String {
    let word = if met { "met:   " } else { "MISSED:" };
    format!("  {word} {name}: {seen}\n")
}

fn with_policies(storms: &Storms, phase: &Phase) -> String {
    let judged = storms.judged(phase);
    let text = format!(
        "floor of {} IOPS in {:.1} % and p99 within {FLOOR_MS} ms in {:.1} % of {} windows with work queued (bar: \
         {MET_PERCENT} %)",
        thousands(storms.floor_iops()),
        judged.floor_percent,
        judged.latency_percent,
        judged.windows
    );
    let mut all = verdict("policy 1 with policies", judged.is_met(), &text);
    if let Some((windows, met)) = phase.counted {
        let percent = 100.0 * met as f64 / windows.max(1) as f64;
        all += &format!(
            "          by the daemon's own count its policy was met in {percent:.1} % of {windows} windows\n"
        );
    }
    all
}

fn without_policies(storms: &Storms, phase: &Phase) -> String {
    let Judged {
        windows,
        floor_percent,
        latency_percent,
    } = storms.judged(phase);
    let below = 100.0 - floor_percent;
    let text = format!(
        "below that floor in {below:.1} %, p99 above {FLOOR_MS} ms in {:.1} % of {windows} windows (bar: at least \
         {UNMET_PERCENT} % below)",
        100.0 - latency_percent
    );
    verdict("without policies", below >= UNMET_PERCENT, &text)
}

/// The machine's limits: if others use its cores, the database alone is not always at its minimum either.
fn alone(storms: &Storms, phase: &Phase) -> String {
    let judged = storms.judged(phase);
    let mut text = format!(
        "  the database alone is at that floor in {:.1} % and within {FLOOR_MS} ms in {:.1} % of {} windows\n",
        judged.floor_percent, judged.latency_percent, judged.windows
    );
    if !judged.is_met() {
        text +=
            "  so the machine does not allow that bar now: try again when nothing else uses it\n";
    }
    text
}

/// Conclusions.
pub fn verdicts(storms: &Storms) -> String {
    let mut text = String::new();
    if let Some(phase) = storms.phase(Kind::With) {
        text += &with_policies(storms, phase);
    }
    if let Some(phase) = storms.phase(Kind::Without) {
        text += &without_policies(storms, phase);
    }
    if let Some(phase) = storms.phase(Kind::Alone) {
        text += &alone(storms, phase);
    }
    if let (Some(with), Some(without)) = (storms.phase(Kind::With), storms.phase(Kind::Without)) {
        let ([iops, bytes], [iops_without, bytes_without]) = (with.total(), without.total());
        text += &format!(
            "  all tenants together: {} IOPS with policies, {:.1} % of those without; {:.1} % of the bytes a second\n",
            thousands(iops),
            100.0 * iops / iops_without.max(1.0),
            100.0 * bytes / bytes_without.max(1.0)
        );
    }
    if let Some(percent) = storms.transactions_percent(Kind::With) {
        let seen =
            format!("{percent:.1} % of its transactions alone (bar: {TRANSACTIONS_PERCENT} %)");
        text += &verdict(
            "PostgreSQL with policies",
            percent >= TRANSACTIONS_PERCENT,
            &seen,
        );
    }
    text
}

/// The machine's state in each part of the run.
fn machine(storms: &Storms) -> String {
    let lines = storms.phases.iter().map(|phase| {
        let seen = &phase.machine;
        let [ram, fast, slow] = seen.served.map(|part| 100.0 * part);
        format!(
            "  {}: {:.2} cores the daemon, {:.2} the clients, {:.2} others; served from RAM {ram:.0} %, fast {fast:.0} %, \
             slow {slow:.1} %\n",
            phase.kind.name(),
            seen.daemon_cores,
            seen.client_cores,
            seen.other_cores
        )
    });
    lines.collect()
}

/// All of it.
pub fn text(storms: &Storms) -> String {
    let mut text = screen::table(&HEAD, &rows(storms));
    let published = published(storms);
    if !published.is_empty() {
        text += "\n";
        text += &screen::table(&PUBLISHED_HEAD, &published);
    }
    let postgres = postgres(storms);
    if !postgres.is_empty() {
        text += "\n";
        text += &screen::table(&POSTGRES_HEAD, &postgres);
    }
    text + "\n" + &machine(storms) + "\n" + &verdicts(storms)
}

/// All of it, with every window.
pub fn json(storms: &Storms) -> Value {
    let phases = storms.phases.iter().map(|phase| {
        let tenants = phase.outcome.tenants.iter().map(|tenant| {
            json!({
                "tenant": tenant.name,
                "iops": tenant.iops(),
                "bytes_per_s": tenant.bytes_per_s(),
                "p50_ns": tenant.percentile_ns(50.0),
                "p99_ns": tenant.percentile_ns(99.0),
                "max_ns": longest_ns(&tenant.windows),
                "windows": tenant.windows,
            })
        });
        json!({
            "phase": phase.kind,
            "tenants": tenants.collect::<Vec<_>>(),
            "policy_1": storms.judged(phase),
            "daemon_windows": phase.counted.map(|(windows, _)| windows),
            "daemon_windows_met": phase.counted.map(|(_, met)| met),
            "machine": phase.machine,
            "booted": phase.booted(storms.desktops),
            "boot_seconds": phase.boot_seconds(),
        })
    });
    json!({
        "machine": storms.machine,
        "desktops": storms.desktops,
        "boot_bytes": storms.boot_bytes,
        "database_depth": storms.depth,
        "alone_iops": storms.alone_iops(),
        "floor_iops": storms.floor_iops(),
        "max_latency_ms": FLOOR_MS,
        "postgres": storms.transactions,
        "phases": phases.collect::<Vec<_>>(),
    })
}
