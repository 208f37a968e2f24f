//! Output of smartctl for three kinds of drives, and malformed output.

use super::*;
use serde_json::json;

fn nvme() -> Value {
    json!({
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"name": "/dev/nvme0n1", "type": "nvme", "protocol": "NVMe"},
        "model_name": "EXAMPLE SSD 980 1TB",
        "serial_number": "S64ANS0R100001",
        "firmware_version": "2B4QFXO7",
        "smart_status": {"passed": true, "nvme": {"value": 0}},
        "nvme_smart_health_information_log": {
            "critical_warning": 0, "temperature": 41, "available_spare": 100, "available_spare_threshold": 10,
            "percentage_used": 12, "data_units_read": 5_000_000, "data_units_written": 9_000_000,
            "power_on_hours": 8123, "unsafe_shutdowns": 9, "media_errors": 0, "num_err_log_entries": 3
        },
        "temperature": {"current": 41},
        "power_on_time": {"hours": 8123}
    })
}

fn ata(attributes: Value) -> Value {
    json!({
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "exit_status": 0},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": "EXAMPLE 870 EVO",
        "serial_number": "S5SXNG0N000001",
        "rotation_rate": 0,
        "smart_status": {"passed": true},
        "ata_smart_attributes": {"revision": 1, "table": attributes},
        "temperature": {"current": 30},
        "power_on_time": {"hours": 100}
    })
}

fn attribute(id: u64, name: &str, value: u64, raw: u64, when_failed: &str) -> Value {
    json!({"id": id, "name": name, "value": value, "worst": value, "thresh": 10, "when_failed": when_failed,
        "flags": {"value": 51, "prefailure": true}, "raw": {"value": raw, "string": raw.to_string()}})
}

fn told(answer: &Value) -> DriveHealth {
    read(answer.to_string().as_bytes(), 7, None)
}

#[test]
fn nvme_wear_and_warnings_are_parsed() {
    let health = told(&nvme());
    assert_eq!((health.state, health.why.as_str()), (HealthState::Good, ""));
    assert_eq!(health.model, "EXAMPLE SSD 980 1TB");
    assert_eq!(
        (health.temperature_c, health.power_on_hours),
        (Some(41), Some(8123))
    );
    assert_eq!(
        (health.used_percent, health.spare_percent),
        (Some(12), Some(100))
    );
    assert_eq!((health.media_errors, health.pending), (Some(0), None));
    let mut bad = nvme();
    bad["nvme_smart_health_information_log"]["critical_warning"] = json!(0x0d);
    bad["smart_status"]["passed"] = json!(false);
    let health = told(&bad);
    let why = "SMART self-assessment failed; spare blocks are exhausted; reliability is degraded; the medium is read-only";
    assert_eq!(failing(&health), Some(why));
    // A high temperature is no reason for replacement.
    bad["nvme_smart_health_information_log"]["critical_warning"] = json!(2);
    bad["smart_status"]["passed"] = json!(true);
    assert_eq!(failing(&told(&bad)), None);
}

#[test]
fn sata_ssd_remaining_endurance_is_parsed() {
    let ssd = ata(json!([
        attribute(5, "Reallocated_Sector_Ct", 100, 2, ""),
        attribute(177, "Wear_Leveling_Count", 93, 110, "")
    ]));
    let health = told(&ssd);
    assert_eq!(
        (health.state, health.used_percent, health.reallocated),
        (HealthState::Good, Some(7), Some(2))
    );
    let mut newer = ssd;
    newer["endurance_used"] = json!({"current_percent": 9});
    assert_eq!(told(&newer).used_percent, Some(9));
}

#[test]
fn pending_sectors_indicate_failure() {
    let disk = |pending, uncorrectable, failed| {
        told(&ata(json!([
            attribute(5, "Reallocated_Sector_Ct", 100, 0, failed),
            attribute(197, "Current_Pending_Sector", 100, pending, ""),
            attribute(198, "Offline_Uncorrectable", 100, uncorrectable, "")
        ])))
    };
    assert_eq!(failing(&disk(0, 0, "")), None);
    let why = "8 pending sectors; 1 uncorrectable sectors";
    assert_eq!(failing(&disk(8, 1, "")), Some(why));
    assert_eq!(
        failing(&disk(0, 0, "now")),
        Some("a SMART attribute is below its threshold")
    );
    assert_eq!(failing(&disk(0, 0, "past")), None);
}

#[test]
fn sleeping_disk_keeps_its_last_health() {
    let asleep = json!({"smartctl": {"exit_status": 2,
        "messages": [{"string": "Device is in STANDBY mode, exit(2)", "severity": "information"}]}});
    let first = told(&asleep);
    assert_eq!((first.state, first.asleep), (HealthState::Unknown, true));
    let before = told(&nvme());
    let slept = read(asleep.to_string().as_bytes(), 900, Some(&before));
    assert!(slept.asleep && !before.asleep);
    assert_eq!(
        (slept.state, slept.at_s, slept.used_percent),
        (HealthState::Good, 7, Some(12))
    );
}

#[test]
fn malformed_output_gives_unknown_health() {
    for rubbish in [
        &b""[..],
        b"smartctl 6.6",
        b"{",
        b"\xff\xfe",
        b"[1,2",
        b"\"x\"",
        b"null",
        b"[]",
        b"{}",
    ] {
        let health = read(rubbish, 1, None);
        assert_eq!(health.state, HealthState::Unknown, "{rubbish:?}");
        assert!(!health.why.is_empty());
    }
    let deep = "[".repeat(100_000);
    assert_eq!(read(deep.as_bytes(), 1, None).state, HealthState::Unknown);
    let refused = json!({"smartctl": {"exit_status": 2,
        "messages": [{"string": "Smartctl open device: /dev/sda failed: Permission denied", "severity": "error"}]}});
    let health = told(&refused);
    assert_eq!(health.state, HealthState::Unknown);
    assert!(health.why.contains("Permission denied"), "{}", health.why);
    let mut odd = nvme();
    odd["model_name"] = json!(format!("\u{1b}[31m{}\n", "x".repeat(500)));
    odd["temperature"]["current"] = json!(-5);
    odd["nvme_smart_health_information_log"]["percentage_used"] = json!(1e300);
    odd["nvme_smart_health_information_log"]["available_spare"] = json!(5000);
    odd["power_on_time"] = json!("long");
    let health = told(&odd);
    assert!(
        health.model.len() <= WORD_MAX && !health.model.contains('\u{1b}'),
        "{}",
        health.model
    );
    assert_eq!(
        (
            health.temperature_c,
            health.used_percent,
            health.spare_percent,
            health.power_on_hours
        ),
        (None, None, None, None)
    );
}
