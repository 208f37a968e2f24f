//! Fill levels of pools and forecasts of when they will be full, as text.

use api::v1::{Fill, FillPart, Pool, Trend};
use units::{format_bytes, roughly};

/// When a part of a pool will be full.
fn forecast(fill: &Fill) -> String {
    match (fill.trend, fill.seconds_to_full) {
        (Trend::Filling, Some(_)) if fill.used >= fill.capacity => "full".to_owned(),
        (Trend::Filling, Some(left)) => {
            let seen = roughly(fill.trend_s.unwrap_or_default());
            format!(
                "full in about {} at the rate of the last {seen}",
                roughly(left)
            )
        }
        (Trend::Falling, _) => "shrinking".to_owned(),
        (Trend::Steady, _) => "not growing".to_owned(),
        _ => "no trend yet".to_owned(),
    }
}

fn part(pool: &Pool, part: FillPart) -> Option<&Fill> {
    pool.fills.iter().find(|fill| fill.part == part)
}

/// A share in percent.
pub fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Provisioned space as a multiple of the pool's capacity.
pub fn overcommit(pool: &Pool) -> String {
    let ratio = pool.promised as f64 / pool.capacity.max(1) as f64;
    format!("{ratio:.2}×")
}

/// Parts of a pool and when each will be full.
pub fn lines(pool: &Pool) -> Vec<(&'static str, String)> {
    let full = |fill: &Fill| {
        format!(
            "{} of {} ({}), {}",
            format_bytes(fill.used),
            format_bytes(fill.capacity),
            share(fill.used, fill.capacity),
            forecast(fill)
        )
    };
    let of = |which| part(pool, which);
    let levels: Vec<String> = pool.warn_at.iter().map(u8::to_string).collect();
    vec![
        (
            "trend",
            of(FillPart::Space).map(forecast).unwrap_or_default(),
        ),
        (
            "provisioned",
            format!(
                "{} ({} overcommit)",
                format_bytes(pool.promised),
                overcommit(pool)
            ),
        ),
        ("dirty", of(FillPart::Fast).map(full).unwrap_or_default()),
        (
            "slow tier",
            of(FillPart::Slow).map(full).unwrap_or_default(),
        ),
        (
            "metadata",
            of(FillPart::Metadata).map(full).unwrap_or_default(),
        ),
        (
            "warnings",
            match levels.is_empty() {
                true => "off".to_owned(),
                false => format!("at {} %", levels.join(", ")),
            },
        ),
    ]
}

/// Seconds until a pool's space will be full.
pub fn seconds_to_full(pool: &Pool) -> Option<u64> {
    part(pool, FillPart::Space).and_then(|fill| fill.seconds_to_full)
}

/// When a pool's space will be full, abbreviated for a table.
pub fn full_in(pool: &Pool) -> String {
    seconds_to_full(pool).map(roughly).unwrap_or_default()
}
