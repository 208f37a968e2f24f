//! What `smartctl --json` says as a drive's health. Pure; nothing of it is believed before it is looked at.
//!
//! The members are those of smartmontools 7.0 and later (`smartctl(8)`, option `--json`).

use api::v1::{DriveHealth, HealthState};
use serde_json::Value;

/// Longest word of a drive's, in characters.
const WORD_MAX: usize = 64;
/// Attributes that are looked at, at most.
const ATTRIBUTES_MAX: usize = 256;
/// More than this of its endurance used is nothing that a drive means (NVMe ends at 255 %).
const USED_MAX: u64 = 255;

/// Numbers of ATA attributes.
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const UNCORRECTABLE: u64 = 198;
/// What is left of endurance, as a normalised value from 100 down, by several makers.
const LEFT: [u64; 5] = [169, 177, 202, 231, 233];

/// Bits of NVMe's critical warning (NVM Express Base Specification 2.0, figure 207) that say that it fails; the second one
/// is the temperature.
const NVME_WARNINGS: [(u64, &str); 5] = [
    (1, "its spare blocks are used up"),
    (4, "its reliability is degraded"),
    (8, "it can only be read any more"),
    (16, "its backup of volatile memory has failed"),
    (32, "its persistent memory can only be read any more"),
];

fn number(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// A drive's word: short, and without what could move a terminal.
fn word(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let clean = text.chars().filter(|c| !c.is_control());
    clean.take(WORD_MAX).collect::<String>().trim().to_owned()
}

fn asleep(answer: &Value) -> bool {
    let messages = answer["smartctl"]["messages"].as_array();
    let mut messages = messages.into_iter().flatten();
    messages.any(|message| {
        let text = message["string"].as_str().unwrap_or_default();
        text.contains("STANDBY mode") || text.contains("SLEEP mode")
    })
}

/// The first message of an error.
fn complaint(answer: &Value) -> Option<String> {
    let mut messages = answer["smartctl"]["messages"].as_array()?.iter();
    let first = messages.find(|message| message["severity"] == "error")?;
    Some(word(&first["string"])).filter(|text| !text.is_empty())
}

struct Attribute {
    id: u64,
    value: Option<u64>,
    raw: Option<u64>,
    failed: bool,
}

fn attributes(answer: &Value) -> Vec<Attribute> {
    let table = answer["ata_smart_attributes"]["table"].as_array();
    let rows = table.into_iter().flatten().take(ATTRIBUTES_MAX);
    let attribute = |row: &Value| {
        Some(Attribute {
            id: number(&row["id"])?,
            value: number(&row["value"]),
            raw: number(&row["raw"]["value"]),
            failed: row["when_failed"] == "now",
        })
    };
    rows.filter_map(attribute).collect()
}

/// What a drive said of itself at `at_s`, seconds since 1970; `before`: what it said then, for one that sleeps.
pub fn read(answer: &[u8], at_s: u64, before: Option<&DriveHealth>) -> DriveHealth {
    let nothing = |state, why: String| DriveHealth {
        state,
        why,
        at_s,
        ..DriveHealth::default()
    };
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        let why = "smartctl says something that is no JSON: version 7.0 of smartmontools is needed";
        return nothing(HealthState::Unknown, why.to_owned());
    };
    if asleep(&answer) {
        let why = "it sleeps, and is not woken up".to_owned();
        let before = before.cloned();
        return DriveHealth {
            asleep: true,
            ..before.unwrap_or_else(|| nothing(HealthState::Unknown, why))
        };
    }
    let attributes = attributes(&answer);
    let raw = |id: u64| attributes.iter().find(|known| known.id == id)?.raw;
    let nvme = &answer["nvme_smart_health_information_log"];
    let left = attributes
        .iter()
        .filter(|known| LEFT.contains(&known.id))
        .find_map(|known| known.value.filter(|left| *left <= 100));
    let used = number(&answer["endurance_used"]["current_percent"])
        .or_else(|| number(&nvme["percentage_used"]))
        .or_else(|| number(&answer["scsi_percentage_used_endurance_indicator"]))
        .or_else(|| left.map(|left| 100 - left));
    let spare = number(&answer["spare_available"]["current_percent"])
        .or_else(|| number(&nvme["available_spare"]));
    let mut health = DriveHealth {
        state: HealthState::Good,
        at_s,
        model: word(match &answer["model_name"] {
            Value::Null => &answer["scsi_model_name"],
            model => model,
        }),
        serial: word(&answer["serial_number"]),
        temperature_c: number(&answer["temperature"]["current"]).filter(|celsius| *celsius < 200),
        power_on_hours: number(&answer["power_on_time"]["hours"]),
        used_percent: used.filter(|used| *used <= USED_MAX),
        spare_percent: spare.filter(|spare| *spare <= 100),
        reallocated: raw(REALLOCATED).or_else(|| number(&answer["scsi_grown_defect_list"])),
        pending: raw(PENDING),
        uncorrectable: raw(UNCORRECTABLE),
        media_errors: number(&nvme["media_errors"]),
        ..DriveHealth::default()
    };
    let mut faults = Vec::new();
    if answer["smart_status"]["passed"] == false {
        faults.push("its own check has failed".to_owned());
    }
    if attributes.iter().any(|known| known.failed) {
        faults.push("an attribute is below its limit".to_owned());
    }
    let warning = number(&nvme["critical_warning"]).unwrap_or(0);
    let bits = NVME_WARNINGS.iter().filter(|(bit, _)| warning & bit > 0);
    faults.extend(bits.map(|(_, text)| (*text).to_owned()));
    for (count, what) in [
        (health.pending, "sectors cannot be read now"),
        (health.uncorrectable, "sectors could not be mended"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            faults.push(format!("{count} {what}"));
        }
    }
    let told =
        !answer["smart_status"]["passed"].is_null() || !attributes.is_empty() || nvme.is_object();
    if !faults.is_empty() {
        (health.state, health.why) = (HealthState::Failing, faults.join("; "));
    } else if !told {
        let why = complaint(&answer).unwrap_or_else(|| "it tells nothing of its health".to_owned());
        (health.state, health.why) = (HealthState::Unknown, why);
    }
    health
}

/// Why a drive is about to fail, by what it says itself.
pub fn failing(health: &DriveHealth) -> Option<&str> {
    (health.state == HealthState::Failing).then_some(health.why.as_str())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
