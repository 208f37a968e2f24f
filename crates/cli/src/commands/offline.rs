//! `convect dump` and `convect restore`: read the drives of an offline pool, without a daemon.

use super::check::{bar, drives, follow, not_looked};
use crate::Failure;
use crate::arguments::{Dump, Restore};
use crate::show::print;
use inspect::{Range, Report, Restored, Verdict, What};
use units::format_bytes;

/// Maximum number of ranges that are printed.
const RANGES: usize = 50;

/// `convect dump`.
///
/// # Errors
/// Why the pool could not be read, or that the record does not exist.
pub fn dump(options: &Dump) -> Result<(), Failure> {
    let (what, from) = match options {
        Dump::Label { from } => (What::Label, from),
        Dump::Checkpoint { shard, from } => (What::Checkpoint(*shard), from),
        Dump::Journal { shard, from } => (What::Journal(*shard), from),
        Dump::Page { block, from } => (What::Page(*block), from),
        Dump::Map {
            volume,
            chunk,
            from,
        } => (What::Map(volume.clone(), *chunk), from),
        Dump::Space { shard, from } => (What::Space(*shard), from),
    };
    let (give, failed) = std::sync::mpsc::channel();
    let line = move |line: &str| {
        let printed = print(&format!("{line}\n"));
        printed.map_err(|failure| give.send(failure)).is_ok()
    };
    inspect::dump_drives(&drives(&from.drives)?, what, line).map_err(not_looked)?;
    failed.try_iter().next().map_or(Ok(()), Err)
}

fn ranges(text: &mut String, what: &str, ranges: &[Range], more: u64) {
    if ranges.is_empty() {
        return;
    }
    text.push_str(&format!("{what}\n"));
    for range in ranges.iter().take(RANGES) {
        let len = format_bytes(range.len);
        text.push_str(&format!("  {len} from byte {}\n", range.offset));
    }
    let more = more + ranges.len().saturating_sub(RANGES) as u64;
    if more > 0 {
        text.push_str(&format!("  and {more} more ranges; --json lists them\n"));
    }
}

fn summary(restored: &Restored, report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text.push_str(&format!("{}\n", finding.text));
    }
    let volume = &restored.volume;
    ranges(
        &mut text,
        "unreadable, left as holes",
        &volume.lost,
        volume.lost_more,
    );
    let older = &restored.perhaps_older;
    ranges(&mut text, "possibly outdated", older, 0);
    for shard in &restored.journals_cut {
        text.push_str(&format!(
            "the last journal page of shard {shard} is incomplete: either power failed while it \
             was written, or it is corrupt and the latest writes are missing\n"
        ));
    }
    if !restored.put_back.is_empty() {
        text.push_str(&format!(
            "restored to an earlier state: {}; any data may be outdated\n",
            restored.put_back.join("; ")
        ));
    }
    let (copied, lost) = (
        format_bytes(restored.copied),
        format_bytes(volume.lost_bytes),
    );
    text.push_str(&format!(
        "Copied {copied} of volume {}; {lost} unreadable.\n",
        volume.name
    ));
    text
}

/// `convect restore`.
///
/// # Errors
/// Exit code 2 when data was unreadable or may be outdated; or why nothing was copied.
pub fn restore(json: bool, options: &Restore) -> Result<(), Failure> {
    let bar = bar("copying");
    let drives = drives(&options.from.drives)?;
    let restored = inspect::restore(&drives, &options.volume, &options.to, follow(&bar));
    bar.finish_and_clear();
    let (restored, report) = restored.map_err(not_looked)?;
    if json {
        let failed = |error| Failure::Failed(format!("cannot write the report: {error}"));
        let text = serde_json::to_string_pretty(&restored).map_err(failed)?;
        print(&format!("{text}\n"))?;
    } else {
        print(&summary(&restored, &report))?;
    }
    let older = !restored.perhaps_older.is_empty() || !restored.journals_cut.is_empty();
    let doubtful = older || !restored.put_back.is_empty() || report.verdict == Verdict::Lost;
    if doubtful || restored.volume.lost_bytes > 0 {
        return Err(Failure::Status(2));
    }
    Ok(())
}
