//! What is written to drives and what promotion may write, as people read it.

use crate::show::table;
use api::v1::{PromotionBudget, Vdrive, Wear};
use units::format_bytes;

/// Bytes a day as drive writes a day; `-` where they are not known.
pub fn drive_writes(daily: Option<u64>, size: u64) -> String {
    match daily {
        Some(daily) if size > 0 => format!("{:.3}", daily as f64 / size as f64),
        _ => "-".to_owned(),
    }
}

/// What was written to each drive, in lines.
pub fn drives(vdrives: &[Vdrive]) -> String {
    let head = [
        "DRIVE",
        ">WRITTEN",
        ">HOSTS",
        ">PROMOTION",
        ">UPKEEP",
        ">METADATA",
        ">DRIVE WRITES A DAY",
        ">SINCE START",
    ];
    let drives = vdrives.iter().flat_map(|vdrive| &vdrive.drives);
    let rows = drives.map(|drive| {
        let wear = &drive.wear;
        vec![
            drive.spec.clone(),
            format_bytes(wear.total),
            format_bytes(wear.hosts),
            format_bytes(wear.promotion),
            format_bytes(wear.upkeep),
            format_bytes(wear.metadata),
            drive_writes(wear.daily, drive.size),
            drive_writes(wear.daily_since_start, drive.size),
        ]
    });
    table(&head, rows)
}

/// What was written to a drive of some size, in a line.
pub fn line(wear: &Wear, size: u64) -> String {
    format!(
        "{} ({} by hosts, {} by promotion, {} by upkeep, {} metadata); drive writes a day: {}, since the daemon \
         was started {}",
        format_bytes(wear.total),
        format_bytes(wear.hosts),
        format_bytes(wear.promotion),
        format_bytes(wear.upkeep),
        format_bytes(wear.metadata),
        drive_writes(wear.daily, size),
        drive_writes(wear.daily_since_start, size)
    )
}

/// What promotion may write, in a line.
pub fn budget(budget: &PromotionBudget) -> String {
    let paused = match budget.left {
        0 => "; promotion pauses",
        _ => "",
    };
    format!(
        "{} a day ({} written in the last 24 h, {} may be at once{paused})",
        format_bytes(budget.daily),
        format_bytes(budget.today),
        format_bytes(budget.left)
    )
}
