//! Parses the output of `smartctl --json`, as untrusted input. Pure functions.
//!
//! Members are those of smartmontools 7.0 and later (`smartctl(8)`, option `--json`).

use api::v1::{DriveHealth, HealthState};
use serde_json::Value;

/// Maximum length of a text, in characters.
const WORD_MAX: usize = 64;
/// Maximum number of attributes examined.
const ATTRIBUTES_MAX: usize = 256;
/// Values of used endurance beyond this are invalid (the maximum of NVMe is 255 %).
const USED_MAX: u64 = 255;

/// Ids of ATA attributes.
const REALLOCATED: u64 = 5;
const PENDING: u64 = 197;
const UNCORRECTABLE: u64 = 198;
/// Attributes of remaining endurance of several vendors, normalised from 100 down.
const LEFT: [u64; 5] = [169, 177, 202, 231, 233];

/// Bits of NVMe's critical warning (NVM Express Base Specification 2.0, figure 207) that indicate
/// failure; the second bit is the temperature.
const NVME_WARNINGS: [(u64, &str); 5] = [
    (1, "spare blocks are exhausted"),
    (4, "reliability is degraded"),
    (8, "the medium is read-only"),
    (16, "the backup of volatile memory has failed"),
    (32, "persistent memory is read-only"),
];

fn number(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// A drive's text: shortened, and without terminal control characters.
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

/// The first error message.
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

/// Health of a drive at `at_s`, seconds since 1970; `before`: its last known health, for a sleeping
/// drive.
pub fn read(answer: &[u8], at_s: u64, before: Option<&DriveHealth>) -> DriveHealth {
    let nothing = |state, why: String| DriveHealth {
        state,
        why,
        at_s,
        ..DriveHealth::default()
    };
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
        let why = "the output of smartctl is not JSON: smartmontools 7.0 or later is required";
        return nothing(HealthState::Unknown, why.to_owned());
    };
    if asleep(&answer) {
        let why = "the drive is asleep and was not woken".to_owned();
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
        faults.push("SMART self-assessment failed".to_owned());
    }
    if attributes.iter().any(|known| known.failed) {
        faults.push("a SMART attribute is below its threshold".to_owned());
    }
    let warning = number(&nvme["critical_warning"]).unwrap_or(0);
    let bits = NVME_WARNINGS.iter().filter(|(bit, _)| warning & bit > 0);
    faults.extend(bits.map(|(_, text)| (*text).to_owned()));
    for (count, what) in [
        (health.pending, "pending sectors"),
        (health.uncorrectable, "uncorrectable sectors"),
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
        let why =
            complaint(&answer).unwrap_or_else(|| "the drive reports no health data".to_owned());
        (health.state, health.why) = (HealthState::Unknown, why);
    }
    health
}

/// Why a drive reports an imminent failure.
pub fn failing(health: &DriveHealth) -> Option<&str> {
    (health.state == HealthState::Failing).then_some(health.why.as_str())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
