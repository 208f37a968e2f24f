//! Drive health (SMART): disks are asked every ten minutes with a time limit, and what they report becomes alerts.
//!
//! One disk at a time is asked, and one that sleeps is not woken up. A program that does not end is left behind and its
//! disk not asked again until it has.

use super::Result;
use super::findings::{finding, of_drive};
use crate::Control;
use crate::events::Finding;
use crate::host_drives::block_devices;
use crate::smart::{Asked, ask, failing, locate, read, whole_disk};
use crate::sync::lock;
use api::v1::{DriveHealth, DriveLocate, EventCode, HealthState, Problem, ProblemCode};
use engine::PoolStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

/// Time that a disk has to answer.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// Disks that are asked, at most.
const DISKS_MAX: usize = 256;
/// A drive that has used so much of its endurance is to be replaced soon, in per cent.
const USED_WARN: u64 = 90;

/// Where the health of disks is read.
#[derive(Clone, Debug)]
pub struct SmartConfig {
    program: PathBuf,
    sys_class_block: PathBuf,
    sys_class_enclosure: PathBuf,
    answer_time: Duration,
}

/// The health of this host's disks, as they reported it last.
pub struct DriveHealthMonitor {
    control: Arc<dyn Control>,
    sys_block: PathBuf,
    config: SmartConfig,
    /// By the disks' names. Locked for a look or an entry only.
    known: Mutex<BTreeMap<String, DriveHealth>>,
    /// Programs that did not end, by the disks that they asked. Held while disks are asked.
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
    /// Runs `program` in place of `smartctl`, for at most `answer_time` a disk, and finds devices in folders of `sys` in
    /// place of `/sys/class`.
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
    /// A monitor that has asked no disk yet.
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

    /// What a drive said of its health when it was asked last; nothing for what is no disk of this host.
    pub(super) fn health(&self, spec: &str) -> Option<DriveHealth> {
        let disk = self.disk(spec)?;
        let known = lock(&self.known).get(&disk).cloned();
        Some(known.unwrap_or_else(|| DriveHealth {
            why: "it was not asked yet".to_owned(),
            ..DriveHealth::default()
        }))
    }

    /// Asks the disks of the open pools and the other disks of this host, at `at_s`, seconds since 1970. One that sleeps
    /// is not woken up.
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
                true => unknown("what asks it does not end: the drive does not answer".to_owned()),
                false => {
                    let device = format!("/dev/{}", disk.replace('!', "/"));
                    match ask(&self.config.program, &device, self.config.answer_time) {
                        Asked::Answer(answer) => read(&answer, at_s, before.as_ref()),
                        Asked::Nothing(why) => unknown(why),
                        Asked::Stuck(child) => {
                            stuck.insert(disk.clone(), child);
                            unknown("it does not answer".to_owned())
                        }
                    }
                }
            };
            lock(&self.known).insert(disk, health);
        }
    }

    /// Drives of a pool that say that they fail, or are worn out.
    pub(super) fn find(&self, pool: &PoolStatus, found: &mut Vec<Finding>) {
        let name = &pool.name;
        for drive in pool.vdrives.iter().flat_map(|vdrive| &vdrive.drives) {
            let spec = &drive.spec;
            let Some(health) = self.health(spec) else {
                continue;
            };
            let subject = of_drive(name, drive);
            if let Some(why) = failing(&health) {
                let message = format!("drive {spec} of pool {name} says that it fails: {why}");
                let advice = format!("replace it with `convect pool replace {name} {spec} NEW`");
                found.push(finding(EventCode::DriveFailing, subject, message, advice));
            } else if let Some(used) = health.used_percent.filter(|used| *used >= USED_WARN) {
                let message =
                    format!("drive {spec} of pool {name} has used {used} % of its endurance");
                let advice = format!(
                    "replace it soon with `convect pool replace {name} {spec} NEW`, or write less with `convect pool set \
                     {name} --promotion-budget SIZE`"
                );
                found.push(finding(EventCode::FlashWearing, subject, message, advice));
            }
        }
    }

    /// Switches the light at a drive's slot.
    ///
    /// # Errors
    /// When it is no disk of this host, or has no light that the kernel knows.
    pub fn drive_locate(&self, request: &DriveLocate) -> Result<()> {
        let spec = &request.drive;
        let disk = self.disk(spec).ok_or_else(|| {
            let text = format!(
                "{spec} is no disk of this host: a light is at disks alone, like file:/dev/sda"
            );
            Problem::invalid(text)
        })?;
        locate(&disk, request.on, &self.config.sys_class_enclosure)
            .map_err(|why| Problem::new(ProblemCode::Refused, why))
    }
}
