//! Health of disks, reported by a fake smartctl.

use crate::common::manager_with;
use crate::common::{World, pool_request};
use api::v1::{DriveHealth, DriveLocate, EventCode, HealthState, ProblemCode};
use daemon::{Format, Manager};
use daemon::{ManagerConfig, SmartConfig};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A device that exists on every host, in place of a disk.
const SPEC: &str = "file:/dev/null";
const FAILING: &str = r#"{"model_name":"EXAMPLE DISK","serial_number":"Z1","smart_status":{"passed":false},
"ata_smart_attributes":{"table":[{"id":197,"value":100,"raw":{"value":8},"when_failed":""}]},
"temperature":{"current":33},"power_on_time":{"hours":10}}"#;
const WORN: &str = r#"{"model_name":"EXAMPLE SSD","smart_status":{"passed":true},
"nvme_smart_health_information_log":{"critical_warning":0,"percentage_used":97,"available_spare":80}}"#;

struct Site {
    manager: Manager,
    folder: tempfile::TempDir,
}

impl Site {
    /// The program has unlimited time to respond.
    fn start() -> Self {
        Self::start_with(Duration::from_secs(300))
    }

    fn start_with(limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path().join("sys");
        std::fs::create_dir_all(sys.join("block/null/device")).unwrap();
        std::fs::create_dir_all(sys.join("enclosure/0:0/3/device/block/null")).unwrap();
        let program = folder.path().join("smartctl");
        let config = ManagerConfig {
            smart: SmartConfig::new(&program, limit, &sys),
            ..ManagerConfig::default()
        };
        let world = Arc::new(World::default());
        let manager = manager_with(&world, &folder.path().join("state"), config);
        manager
            .pools
            .create(pool_request("tank", &[SPEC], false))
            .unwrap();
        Self { manager, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The health reported by a script.
    fn says(&self, script: &str) -> DriveHealth {
        let text = self.path().join("script");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Written by another process: a descriptor open for writing could be inherited by the child
        // of a concurrent test, and executing the file would fail.
        let installed = Command::new("install")
            .args(["-m", "755"])
            .args([&text, &self.path().join("smartctl")])
            .status();
        assert!(installed.unwrap().success());
        self.manager.health.ask_disks(1_000_000);
        self.health()
    }

    fn prints(&self, answer: &str) -> DriveHealth {
        let file = self.path().join("answer.json");
        std::fs::write(&file, answer).unwrap();
        self.says(&format!("cat {}; exit 4", file.display()))
    }

    fn health(&self) -> DriveHealth {
        let pool = self.manager.pools.show("tank").unwrap();
        pool.vdrives[0].drives[0].health.clone().unwrap()
    }

    fn alerts_at(&self, up_s: u64) -> Vec<(EventCode, String)> {
        self.manager
            .observer
            .observe(Duration::from_secs(up_s), 1_000_000 + up_s);
        let alerts = self.manager.notifications.alert_list().items.into_iter();
        alerts.map(|alert| (alert.code, alert.message)).collect()
    }
}

#[test]
fn failing_disk_is_reported_everywhere() {
    let site = Site::start();
    assert_eq!(site.health().why, "not polled yet");
    let health = site.prints(FAILING);
    assert_eq!(health.state, HealthState::Failing);
    let mut reports = site.manager.drives.list().unwrap().items.into_iter();
    let report = reports.find(|report| report.spec == SPEC).unwrap();
    assert_eq!(report.health.as_ref(), Some(&health));
    let alerts = site.alerts_at(1);
    let why = "SMART self-assessment failed; 8 pending sectors";
    let message = format!("drive {SPEC} of pool tank reports failure: {why}");
    assert_eq!(alerts, [(EventCode::DriveFailing, message)]);
    let text = site.manager.metrics.gather(Format::Prometheus).unwrap();
    for line in [
        "convect_drive_failing{",
        "convect_drive_temperature_celsius{",
        "convect_drive_power_on_seconds{",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn worn_drive_is_alerted_after_a_delay() {
    let site = Site::start();
    assert_eq!(site.prints(WORN).used_percent, Some(97));
    assert_eq!(site.alerts_at(1), []);
    let message = format!("drive {SPEC} of pool tank has used 97 % of its endurance");
    assert_eq!(site.alerts_at(700), [(EventCode::FlashWearing, message)]);
}

#[test]
fn hanging_smartctl_leaves_health_unknown() {
    let site = Site::start_with(Duration::from_secs(2));
    let health = site.says("sleep 1000");
    assert_eq!(health.state, HealthState::Unknown);
    assert!(health.why.contains("longer than 2 s"), "{}", health.why);
}

#[test]
fn invalid_or_missing_smartctl_leaves_health_unknown() {
    let site = Site::start();
    site.manager.health.ask_disks(1);
    assert!(
        site.health().why.contains("install smartmontools"),
        "{:?}",
        site.health()
    );
    for (script, why) in [
        ("echo smartctl 6.6", "not JSON"),
        ("head -c 3000000 /dev/zero", "too large"),
        ("exit 1", "not JSON"),
    ] {
        let health = site.says(script);
        assert_eq!(health.state, HealthState::Unknown, "{script}");
        assert!(health.why.contains(why), "{script}: {}", health.why);
        assert_eq!(site.alerts_at(1), []);
    }
}

#[test]
fn locate_led_is_switched_if_present() {
    let site = Site::start();
    let locate = |drive: &str, on| {
        let drive = drive.to_owned();
        site.manager.health.drive_locate(&DriveLocate { drive, on })
    };
    let light = site.path().join("sys/enclosure/0:0/3/locate");
    for (on, told) in [(true, "1"), (false, "0")] {
        locate(SPEC, on).unwrap();
        assert_eq!(std::fs::read_to_string(&light).unwrap(), told);
    }
    let refused = locate("ram:a?size=1G", true).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Invalid);
    std::fs::remove_dir_all(site.path().join("sys/enclosure")).unwrap();
    let refused = locate(SPEC, true).unwrap_err();
    assert_eq!(refused.code, ProblemCode::Refused);
    assert!(refused.message.contains("no enclosure"), "{refused}");
}
