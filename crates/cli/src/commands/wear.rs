//! Bytes written to drives and the promotion budget, as text.

use crate::table::table;
use api::v1::{PromotionBudget, Vdrive, Wear};
use units::format_bytes;

/// Bytes per day as drive writes per day (DWPD); `-` if unknown.
pub fn drive_writes(daily: Option<u64>, size: u64) -> String {
    match daily {
        Some(daily) if size > 0 => format!("{:.3}", daily as f64 / size as f64),
        _ => "-".to_owned(),
    }
}

/// Bytes written to each drive, as rows.
pub fn drives(vdrives: &[Vdrive]) -> String {
    let head = [
        "DRIVE",
        ">WRITTEN",
        ">HOSTS",
        ">PROMOTION",
        ">MAINTENANCE",
        ">METADATA",
        ">DWPD",
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

/// Bytes written to a drive of some size, in one line.
pub fn line(wear: &Wear, size: u64) -> String {
    format!(
        "{} ({} by hosts, {} by promotion, {} by maintenance, {} metadata); drive writes per day: \
         {}, since the daemon was started {}",
        format_bytes(wear.total),
        format_bytes(wear.hosts),
        format_bytes(wear.promotion),
        format_bytes(wear.upkeep),
        format_bytes(wear.metadata),
        drive_writes(wear.daily, size),
        drive_writes(wear.daily_since_start, size)
    )
}

/// The promotion budget in one line.
pub fn budget(budget: &PromotionBudget) -> String {
    let paused = match budget.left {
        0 => "; promotion paused",
        _ => "",
    };
    format!(
        "{} per day ({} written in the last 24 h, {} available now{paused})",
        format_bytes(budget.daily),
        format_bytes(budget.today),
        format_bytes(budget.left)
    )
}
