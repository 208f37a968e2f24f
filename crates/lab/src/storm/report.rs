//! The report: one HTML file that needs no other and no network.

use super::chart::{Chart, Line, Scale};
use super::outcome::{Kind, Phase, Storms, policy_name};
use super::scene::{BACKUP, DATABASE, DESKTOPS, FLOOR_MS, MAIL};
use super::table;
use crate::html::{STYLE, escape, table as html_table};
use crate::screen::thousands;
use crate::tenants::{Attained, WINDOW_NS, Window};
use std::fmt::Write as _;
use units::format_bytes;

fn colour(tenant: &str) -> &'static str {
    match tenant {
        DATABASE => "#d62f2f",
        MAIL => "#2563c9",
        DESKTOPS => "#2e8b57",
        BACKUP => "#8a63c7",
        _ => "#888888",
    }
}

/// Name of a tenant in a phase: with its policy, if it has one.
fn name(phase: &Phase, tenant: &Attained) -> String {
    match phase.kind {
        Kind::With => policy_name(&tenant.name).to_owned(),
        Kind::Alone | Kind::Without => tenant.name.clone(),
    }
}

fn lines(phase: &Phase, value: impl Fn(&Window) -> f64) -> Vec<Line> {
    let line = |tenant: &Attained| Line {
        name: name(phase, tenant),
        colour: colour(&tenant.name),
        values: tenant.windows.iter().map(&value).collect(),
    };
    phase.outcome.tenants.iter().map(line).collect()
}

fn legend(phase: &Phase) -> String {
    let keys = phase.outcome.tenants.iter().map(|tenant| {
        format!(
            "<span class=\"key\" style=\"background:{}\"></span>{}",
            colour(&tenant.name),
            name(phase, tenant)
        )
    });
    format!("<p>{}</p>\n", keys.collect::<String>())
}

fn charts(storms: &Storms, phase: &Phase) -> String {
    let seconds = phase.outcome.of(DATABASE).seconds();
    let floor = storms.floor_iops();
    let level = (phase.kind != Kind::Alone)
        .then(|| (floor, format!("floor of policy 1: {}", thousands(floor))));
    let iops = Chart {
        title: "IOPS by tenant",
        scale: Scale::Linear,
        seconds,
        lines: &lines(phase, |window| {
            window.answered as f64 * 1e9 / WINDOW_NS as f64
        }),
        level,
    };
    let latency = Chart {
        title: "response time by tenant in ms, 99th percentile of each window",
        scale: Scale::Logarithmic,
        seconds,
        lines: &lines(phase, |window| window.p99_ns as f64 / 1e6),
        level: Some((
            FLOOR_MS as f64,
            format!("maximum of policy 1: {FLOOR_MS} ms"),
        )),
    };
    format!(
        "{}<h3>IOPS</h3>\n{}<h3>Response time, ms: the 99th percentile of each window</h3>\n{}",
        legend(phase),
        iops.svg(),
        latency.svg()
    )
}

/// The report.
pub fn html(storms: &Storms) -> String {
    let mut phases = String::new();
    for phase in &storms.phases {
        let name = phase.kind.name();
        let mut letters = name.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let title: String = first.into_iter().chain(letters).collect();
        let _ = write!(phases, "<h2>{title}</h2>\n{}", charts(storms, phase));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Convect: a boot storm</title>\n<style>{STYLE}</style>\n\
         <h1>A boot storm beside a database</h1>\n\
         <p>{desktops} desktops, clones of one image, each with an NBD session, read {boot} each to boot and then work at 10 \
         to 15 IOPS, four fifths of them writes. Beside them a database (8 KiB, 70 % reads, {depth} outstanding), a mail \
         server (32 KiB, 53 % reads, at a fixed rate) and a backup (256 KiB reads).</p>\n\
         <p><small>{machine}</small></p>\n\
         <h2>Result</h2>\n<pre>{verdicts}</pre>\n{published}{postgres}{phases}<h2>Figures</h2>\n{figures}\
         <p><small>Windows are of 100 ms; one counts for policy 1 when requests of the database were outstanding all the \
         time. In the chart of response times the worst of neighbouring windows is shown. The published figures are those of \
         a hybrid array with such policies.</small></p>\n</html>\n",
        desktops = storms.desktops,
        boot = format_bytes(storms.boot_bytes),
        depth = storms.depth,
        machine = escape(&storms.machine),
        verdicts = escape(&table::verdicts(storms)),
        published = html_table(&table::PUBLISHED_HEAD, &table::published(storms)),
        postgres = html_table(&table::POSTGRES_HEAD, &table::postgres(storms)),
        figures = html_table(&table::HEAD, &table::rows(storms)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Machine;
    use super::*;
    use crate::tenants::Outcome;

    fn phase(kind: Kind, answered: u64) -> Phase {
        let tenant = |name: &str| Attained {
            name: name.to_owned(),
            windows: vec![
                Window {
                    answered,
                    p99_ns: 2_000_000,
                    queued: true,
                    ..Window::default()
                };
                20
            ],
            ..Attained::default()
        };
        Phase {
            kind,
            outcome: Outcome {
                tenants: [DATABASE, MAIL, DESKTOPS, BACKUP].map(tenant).into(),
                interrupted: false,
            },
            counted: Some((20, 19)),
            machine: Machine::default(),
        }
    }

    fn storms(phases: Vec<Phase>) -> Storms {
        Storms {
            machine: "a <machine>".to_owned(),
            desktops: 600,
            boot_bytes: 45 << 20,
            depth: 64,
            phases,
            transactions: Vec::new(),
        }
    }

    #[test]
    fn the_report_holds_every_phase_and_needs_nothing_from_outside() {
        let all = storms(vec![
            phase(Kind::Alone, 5_000),
            phase(Kind::Without, 2_000),
            phase(Kind::With, 4_000),
        ]);
        let html = html(&all);
        for text in [
            "Storm without policies",
            "Storm with policies",
            "floor of policy 1: 35,000",
            "over 20,000",
            "a &lt;machine&gt;",
            "met:    policy 1",
            "95.0 % of 20 windows",
            "alone is at that floor in 100.0 %",
        ] {
            assert!(html.contains(text), "{text} is missing");
        }
        let links = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!links.contains("http") && !links.contains("<script"));
        assert_eq!(html.matches("<svg").count(), 6);
    }

    #[test]
    fn a_run_that_was_cut_short_is_reported_as_far_as_it_came() {
        let html = html(&storms(vec![phase(Kind::Alone, 5_000)]));
        assert!(html.contains("Alone") && !html.contains("Storm with"));
        assert!(!html.contains("does not allow that bar"), "{html}");
        assert!(super::html(&storms(Vec::new())).ends_with("</html>\n"));
    }
}
