//! Drive health (SMART): disks are polled every ten minutes with a time limit, and their reports
//! become alerts.
//!
//! Disks are polled one at a time, and sleeping ones are not woken. A smartctl process that hangs
//! is abandoned, and its disk skipped until the process has exited.

use super::Result;
use super::findings::{finding, of_drive};
use crate::Control;
use crate::events::Finding;
use crate::host_drives::block_devices;
use crate::smart::{SmartctlResult, ask, failing, locate, read, whole_disk};
use crate::sync::lock;
use api::v1::{DriveHealth, DriveLocate, EventCode, HealthState, Problem, ProblemCode};
use engine::PoolStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

/// Time limit for a disk's response.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// Maximum number of disks polled.
const DISKS_MAX: usize = 256;
/// Used endurance in percent at which replacement is recommended.
const USED_WARN: u64 = 90;

/// Source of drive health.
#[derive(Clone, Debug)]
pub struct SmartConfig {
    program: PathBuf,
    sys_class_block: PathBuf,
    sys_class_enclosure: PathBuf,
    answer_time: Duration,
}

/// Health of this host's disks, as last reported.
pub struct DriveHealthMonitor {
    control: Arc<dyn Control>,
    sys_block: PathBuf,
    config: SmartConfig,
    /// By device name. Locked briefly.
    known: Mutex<BTreeMap<String, DriveHealth>>,
    /// Hung processes by disk. Held during a poll.
    stuck: Mutex<BTreeMap<String, Child>>,
}

impl Default for SmartConfig {
    fn default() -> Self {
        Self {
            program: "smartctl".into(),
            sys_class_block: "/sys/class/block".into(),
            sys_class_enclosure: "/sys/class/enclosure".into(),
            answer_time: ANSWER_TIME,
        }
    }
}

impl SmartConfig {
    /// Uses `program` as `smartctl` with a time limit of `answer_time` per disk, and `sys` as
    /// `/sys/class`.
    pub fn new(program: &Path, answer_time: Duration, sys: &Path) -> Self {
        Self {
            program: program.to_owned(),
            sys_class_block: sys.join("block"),
            sys_class_enclosure: sys.join("enclosure"),
            answer_time,
        }
    }
}

impl DriveHealthMonitor {
    /// A monitor that has not polled yet.
    pub(super) fn new(control: &Arc<dyn Control>, sys_block: &Path, config: SmartConfig) -> Self {
        Self {
            control: Arc::clone(control),
            sys_block: sys_block.to_owned(),
            config,
            known: Mutex::default(),
            stuck: Mutex::default(),
        }
    }

    fn disk(&self, spec: &str) -> Option<String> {
        whole_disk(spec, &self.config.sys_class_block)
    }

    /// Last reported health of a drive; nothing if it is not a disk of this host.
    pub(super) fn health(&self, spec: &str) -> Option<DriveHealth> {
        let disk = self.disk(spec)?;
        let known = lock(&self.known).get(&disk).cloned();
        Some(known.unwrap_or_else(|| DriveHealth {
            why: "not polled yet".to_owned(),
            ..DriveHealth::default()
        }))
    }

    /// Polls the disks of open pools and the other disks of this host at `at_s` (seconds since
    /// 1970), without waking sleeping ones.
    pub fn ask_disks(&self, at_s: u64) {
        let pools = self.control.pool_list().unwrap_or_default();
        let drives = pools.iter().flat_map(|pool| &pool.vdrives);
        let specs = drives
            .flat_map(|vdrive| &vdrive.drives)
            .map(|drive| drive.spec.clone());
        let others = block_devices(&self.sys_block).into_iter();
        let others = others.map(|(name, _)| format!("file:/dev/{name}"));
        let disks: BTreeSet<String> = specs
            .chain(others)
            .filter_map(|spec| self.disk(&spec))
            .collect();
        let mut stuck = lock(&self.stuck);
        stuck.retain(|_, child| matches!(child.try_wait(), Ok(None)));
        lock(&self.known).retain(|disk, _| disks.contains(disk));
        for disk in disks.into_iter().take(DISKS_MAX) {
            let before = lock(&self.known).get(&disk).cloned();
            let unknown = |why: String| DriveHealth {
                state: HealthState::Unknown,
                why,
                at_s,
                ..DriveHealth::default()
            };
            let health = match stuck.contains_key(&disk) {
                true => unknown("smartctl hangs: the drive does not respond".to_owned()),
                false => {
                    let device = format!("/dev/{}", disk.replace('!', "/"));
                    match ask(&self.config.program, &device, self.config.answer_time) {
                        SmartctlResult::Answer(answer) => read(&answer, at_s, before.as_ref()),
                        SmartctlResult::Nothing(why) => unknown(why),
                        SmartctlResult::Stuck(child) => {
                            stuck.insert(disk.clone(), child);
                            unknown("the drive does not respond".to_owned())
                        }
                    }
                }
            };
            lock(&self.known).insert(disk, health);
        }
    }

    /// Finds drives of a pool that are failing or worn out.
    pub(super) fn find(&self, pool: &PoolStatus, found: &mut Vec<Finding>) {
        let name = &pool.name;
        for drive in pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
            let spec = &drive.spec;
            let Some(health) = self.health(spec) else {
                continue;
            };
            let subject = of_drive(name, drive);
            if let Some(why) = failing(&health) {
                let message = format!("drive {spec} of pool {name} reports failure: {why}");
                let advice = format!("replace it with `convect pool replace {name} {spec} NEW`");
                found.push(finding(EventCode::DriveFailing, subject, message, advice));
            } else if let Some(used) = health.used_percent.filter(|used| *used >= USED_WARN) {
                let message =
                    format!("drive {spec} of pool {name} has used {used} % of its endurance");
                let advice = format!(
                    "replace it soon with `convect pool replace {name} {spec} NEW`, or reduce \
                     writes with `convect pool set {name} --promotion-budget SIZE`"
                );
                found.push(finding(EventCode::FlashWearing, subject, message, advice));
            }
        }
    }

    /// Switches the locate LED of a drive's slot.
    ///
    /// # Errors
    /// When it is not a disk of this host, or the kernel knows no LED for it.
    pub fn drive_locate(&self, request: &DriveLocate) -> Result<()> {
        let spec = &request.drive;
        let disk = self.disk(spec).ok_or_else(|| {
            let text = format!(
                "{spec} is not a disk of this host: only disks have a locate LED, like \
                 file:/dev/sda"
            );
            Problem::invalid(text)
        })?;
        locate(&disk, request.on, &self.config.sys_class_enclosure)
            .map_err(|why| Problem::new(ProblemCode::Refused, why))
    }
}
