//! A report as a person reads it: one screen.

use crate::report::{DriveReport, Report, ShardReport, Verdict, VolumeReport};
use std::fmt::{self, Write};
use units::{BLOCK, format_bytes};

/// Ranges of a volume that are written out.
const RANGES: usize = 8;

fn drive(out: &mut String, drive: &DriveReport) -> fmt::Result {
    let size = format_bytes(drive.size);
    let state = drive.state;
    write!(out, "  {:<9} {size:>9}  {}", state, drive.spec)?;
    if !drive.parts.is_empty() {
        write!(out, ": {}", drive.parts.join(", "))?;
    }
    if !drive.labels.is_empty() {
        write!(out, "; labels {}", drive.labels.join(" "))?;
    }
    writeln!(out)
}

fn shard(out: &mut String, shard: &ShardReport) -> fmt::Result {
    let checkpoint = shard.checkpoint.unwrap_or(0);
    write!(
        out,
        "  {:<3} checkpoint {checkpoint}, opening {}, {} pages",
        shard.shard, shard.epoch, shard.pages
    )?;
    if shard.lost_pages > 0 {
        write!(out, " and {} lost", shard.lost_pages)?;
    }
    if shard.journal_records > 0 {
        let (records, pages) = (shard.journal_records, shard.journal_pages);
        write!(
            out,
            ", {records} records in {pages} journal pages to replay"
        )?;
    }
    if shard.unfinished_blocks > 0 {
        let count = shard.unfinished_blocks;
        write!(out, ", {count} unflushed blocks of them lost")?;
    }
    writeln!(out)
}

fn volume(out: &mut String, volume: &VolumeReport) -> fmt::Result {
    let stored = format_bytes(volume.blocks * BLOCK as u64);
    let (size, name) = (format_bytes(volume.size), &volume.name);
    write!(out, "  {name:<16} {size:>9}, {stored} stored, ")?;
    if volume.lost_bytes == 0 {
        return writeln!(out, "intact");
    }
    writeln!(out, "{} lost:", format_bytes(volume.lost_bytes))?;
    for range in volume.lost.iter().take(RANGES) {
        let len = format_bytes(range.len);
        writeln!(out, "    {len} from byte {}", range.offset)?;
    }
    let more = volume.lost.len().saturating_sub(RANGES) as u64 + volume.lost_more;
    if more > 0 {
        writeln!(out, "    and {more} more ranges; --json lists them")?;
    }
    Ok(())
}

/// Repaired or repairable copies.
pub fn mends(report: &Report, repaired: bool) -> String {
    let mut out = String::new();
    if !report.mends.is_empty() {
        out.push_str(if repaired {
            "repaired\n"
        } else {
            "can be repaired\n"
        });
    }
    for (kind, count) in &report.mends {
        let plural = if *count == 1 { "" } else { "s" };
        // Writing to a string does not fail.
        let _ = writeln!(out, "  {count} {}{plural} on {}", kind.what, kind.drive);
    }
    out
}

/// The whole report. `repaired`: copies were repaired, not only found.
pub fn report(report: &Report, repaired: bool) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_report(&mut out, report, repaired);
    out
}

fn write_report(out: &mut String, report: &Report, repaired: bool) -> fmt::Result {
    let exported = match report.exported {
        true => "exported",
        false => "not exported: its last use ended without closing it",
    };
    writeln!(out, "pool {} ({}), {exported}", report.pool, report.id)?;
    writeln!(out, "drives")?;
    report
        .drives
        .iter()
        .try_for_each(|known| drive(out, known))?;
    writeln!(out, "shards")?;
    report
        .shards
        .iter()
        .try_for_each(|known| shard(out, known))?;
    writeln!(out, "volumes")?;
    report
        .volumes
        .iter()
        .try_for_each(|known| volume(out, known))?;
    if report.volumes.is_empty() {
        writeln!(out, "  none")?;
    }
    if !report.findings.is_empty() {
        writeln!(out, "found")?;
    }
    for finding in &report.findings {
        let sign = match finding.verdict {
            Verdict::Whole => "note",
            Verdict::Repairable => "wrong",
            Verdict::Lost => "LOST",
        };
        writeln!(out, "  {sign:<5} {}", finding.text)?;
    }
    if report.findings_more > 0 {
        writeln!(out, "  and {} more", report.findings_more)?;
    }
    out.push_str(&mends(report, repaired));
    if report.data_read {
        writeln!(out, "{} blocks of data were checked", report.data_blocks)?;
    }
    Ok(())
}

/// The result of a check, in a sentence.
pub fn verdict(report: &Report) -> String {
    let unread = if report.data_read {
        ""
    } else {
        " (blocks of data were not checked: use --data)"
    };
    let mends = report.mend_count();
    match report.verdict {
        Verdict::Whole if !report.unproven.is_empty() => {
            let shards: Vec<String> = report.unproven.iter().map(u16::to_string).collect();
            let (plural, verb) = match shards.len() {
                1 => ("", "ends"),
                _ => ("s", "end"),
            };
            format!(
                "The pool is intact{unread}, as far as its journals show: that of shard{plural} {} {verb} without a mark, as \
                 when writes were in flight, and the loss of its last page would leave no trace.",
                shards.join(", ")
            )
        }
        Verdict::Whole => format!("The pool is intact{unread}."),
        Verdict::Repairable if mends > 0 => {
            let copies = if mends == 1 { "copy" } else { "copies" };
            format!("Nothing is lost{unread}; `convect repair` can repair {mends} bad {copies}.")
        }
        Verdict::Repairable => format!("Nothing is lost{unread}; see the findings above."),
        Verdict::Lost => {
            let also = if mends > 0 {
                " `convect repair` repairs the rest;"
            } else {
                ""
            };
            format!("Data is lost{unread}.{also} `convect restore` copies out what can be read.")
        }
    }
}
