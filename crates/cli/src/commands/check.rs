//! `convect check` and `convect repair`: work on the drives of an offline pool, without a daemon.

use crate::arguments::{Check, Repair};
use crate::show::print;
use crate::{Failure, drive_spec};
use indicatif::{ProgressBar, ProgressStyle};
use inspect::{InspectError, Options, Progress, Report, Verdict};
use std::path::Path;

/// Normalises drive specifications for the offline tools.
pub(super) fn drives(texts: &[String]) -> Result<Vec<String>, Failure> {
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    texts
        .iter()
        .map(|text| drive_spec(text, Some(&here)))
        .collect()
}

pub(super) fn not_looked(error: InspectError) -> Failure {
    Failure::NotLooked(error.to_string())
}

/// A progress bar that counts blocks.
pub(super) fn bar(what: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {percent} %, {eta} left") {
        bar.set_style(style.progress_chars("█░ "));
    }
    bar.set_message(what.to_owned());
    bar
}

pub(super) fn follow(bar: &ProgressBar) -> impl Fn(Progress) + use<> {
    let bar = bar.clone();
    move |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.blocks.min(progress.total));
    }
}

fn run_check(drives: &[String], data: bool) -> Result<Report, Failure> {
    let bar = bar("checking");
    let report = inspect::check(drives, Options { data }, follow(&bar));
    bar.finish_and_clear();
    report.map_err(not_looked)
}

fn print_report(json: bool, report: &Report, repaired: bool, verdict: &str) -> Result<(), Failure> {
    if !json {
        let text = inspect::text::report(report, repaired);
        return print(&format!("{text}{verdict}\n"));
    }
    let failed = |error| Failure::Failed(format!("cannot write the report: {error}"));
    let text = serde_json::to_string_pretty(report).map_err(failed)?;
    print(&format!("{text}\n"))
}

fn status(report: &Report) -> Result<(), Failure> {
    match report.verdict {
        Verdict::Whole => Ok(()),
        verdict => Err(Failure::Status(verdict as u8)),
    }
}

/// `convect check`.
///
/// # Errors
/// The verdict as an exit code, or why the pool could not be checked.
pub fn check(json: bool, options: &Check) -> Result<(), Failure> {
    let report = run_check(&drives(&options.drives)?, options.data)?;
    print_report(json, &report, false, &inspect::text::verdict(&report))?;
    status(&report)
}

/// `convect repair`.
///
/// # Errors
/// As [`check`]; with `--yes` the verdict after the repair.
pub fn repair(json: bool, options: &Repair) -> Result<(), Failure> {
    let drives = drives(&options.drives)?;
    let plan = run_check(&drives, options.data)?;
    let nothing = plan.mend_count() == 0;
    let said = match (nothing, options.yes) {
        (true, _) => "Nothing to repair; nothing was written.",
        (false, false) => "Dry run, nothing was written: add --yes to apply the repairs.",
        (false, true) => "Repairing.",
    };
    if nothing || !options.yes {
        print_report(json, &plan, false, said)?;
        return status(&plan);
    }
    if !json {
        print_report(json, &plan, false, said)?;
    }
    let bar = bar("mending");
    let mended = inspect::repair(&drives, Options { data: options.data }, follow(&bar));
    bar.finish_and_clear();
    let mended = mended.map_err(not_looked)?;
    let left = run_check(&drives, options.data)?;
    if json {
        print_report(json, &mended, true, "")?;
    } else {
        print(&inspect::text::mends(&mended, true))?;
        print(&format!(
            "Check after the repair: {}\n",
            inspect::text::verdict(&left)
        ))?;
    }
    status(&left)
}
