//! Placement settings of a volume, for `convect volume set` and `show`.

use super::volume::limit;
use crate::Failure;
use crate::arguments::Switch;
use crate::placement_arguments::{Placement as Words, Reaction as Word};
use api::v1::{Pin, PinChange, PinTo, Placement, Reaction, Tier, VolumeChange};
use units::format_bytes;

/// Parses a pin like `fast`, `slow:0:10G` or `none:1G:512M`: tier and optional range.
fn pin(text: &str) -> Result<PinChange, Failure> {
    let wrong = |why: &str| {
        Failure::Usage(format!(
            "'{text}' is not a pin: {why}; write fast, slow or none, followed by offset and \
             length for a part of the volume, as in fast:0:10G"
        ))
    };
    let mut words = text.split(':');
    let to = match words.next() {
        Some("fast") => PinTo::Fast,
        Some("slow") => PinTo::Slow,
        Some("none") => PinTo::None,
        _ => return Err(wrong("it does not begin with a tier")),
    };
    let range: Vec<&str> = words.collect();
    let bytes = |text: &str| units::parse_bytes(text).map_err(|error| wrong(&error.to_string()));
    let (offset, length) = match range[..] {
        [] => (0, None),
        [offset, length] => (bytes(offset)?, Some(bytes(length)?)),
        _ => return Err(wrong("a range needs an offset and a length")),
    };
    match length {
        Some(0) => Err(wrong("its length is 0")),
        length => Ok(PinChange { offset, length, to }),
    }
}

/// Parses initiator names like `backup,iqn.2026-01.com.example:veeam`, or `none`.
fn bypass(text: &str) -> Result<Vec<String>, Failure> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    let wrong = |why: &str| {
        Err(Failure::Usage(format!(
            "'{text}' is not a list of initiators: {why}; write comma-separated names like \
             backup,iqn.2026-01.com.example:veeam, or none"
        )))
    };
    match names[..] {
        ["none"] => Ok(Vec::new()),
        _ if names.contains(&"none") => wrong("none excludes other names"),
        _ if names.contains(&"") => wrong("a name is empty"),
        _ => Ok(names.into_iter().map(str::to_owned).collect()),
    }
}

/// A reaction as it was chosen on the command line.
pub fn reaction(word: Word) -> Reaction {
    match word {
        Word::Eager => Reaction::Eager,
        Word::Normal => Reaction::Normal,
        Word::Thrifty => Reaction::Thrifty,
    }
}

/// A reaction as it is shown; nothing for the usual one.
pub fn reaction_name(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Eager => "eager",
        Reaction::Normal => "",
        Reaction::Thrifty => "thrifty",
    }
}

/// Adds the requested placement settings to a change.
pub fn ask(words: &Words, change: VolumeChange) -> Result<VolumeChange, Failure> {
    let size = |words: &Option<String>| words.as_deref().map(limit).transpose();
    let pins: Result<Vec<_>, _> = words.pin.iter().map(|text| pin(text)).collect();
    Ok(VolumeChange {
        promotion: words.promotion.map(|switch| switch == Switch::On),
        pins: pins?,
        fast_floor: size(&words.fast_floor)?,
        fast_ceiling: size(&words.fast_ceiling)?,
        reaction: words.reaction.map(reaction),
        write_budget: size(&words.write_budget)?,
        bypass: words.bypass.as_deref().map(bypass).transpose()?,
        ..change
    })
}

fn pinned(pin: &Pin) -> String {
    let tier = match pin.tier {
        Tier::Fast => "fast",
        Tier::Slow => "slow",
    };
    match (pin.offset, pin.length) {
        (0, None) => format!("{tier}: whole volume"),
        (offset, None) => format!("{tier}: from {}", format_bytes(offset)),
        (offset, Some(length)) => format!(
            "{tier}: {} at {}",
            format_bytes(length),
            format_bytes(offset)
        ),
    }
}

/// The settings that differ from the defaults, as shown.
pub fn show(placement: Option<&Placement>) -> Vec<(&'static str, String)> {
    let Some(placement) = placement else {
        return Vec::new();
    };
    let bytes = |bytes: Option<u64>| bytes.map(format_bytes).unwrap_or_default();
    let pins: Vec<String> = placement.pins.iter().map(pinned).collect();
    let budget = placement.write_budget.map(|budget| {
        format!(
            "{} per day ({} written so far, {} available now)",
            format_bytes(budget.daily),
            format_bytes(budget.used),
            format_bytes(budget.left)
        )
    });
    let bypass = placement.bypass.as_ref().map(|bypass| {
        format!(
            "{} ({} reads and {} writes so far, of {} blocks)",
            bypass.initiators.join(", "),
            bypass.reads,
            bypass.writes,
            bypass.blocks
        )
    });
    let promotion = if placement.promotion { "" } else { "off" };
    vec![
        ("promotion", promotion.to_owned()),
        ("pinned", pins.join(", ")),
        ("fast floor", bytes(placement.fast_floor)),
        ("fast ceiling", bytes(placement.fast_ceiling)),
        ("reaction", reaction_name(placement.reaction).to_owned()),
        ("write budget", budget.unwrap_or_default()),
        ("bypassed", bypass.unwrap_or_default()),
    ]
}
