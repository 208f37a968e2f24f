//! The modelled drive, and its row of the table.

use super::disk::Disk;
use super::profile::{Parts, Profile, profiles};
use super::queue::{Mechanism, ModelQueue};
use super::service::{Device, Service};
use super::ssd::Ssd;
use crate::spec::split_kind;
use crate::{DriveKind, OpenDrive, OpenError};
use block::{Drive, DriveInfo, DriveQueue, Rotation};
use reactor::Handle;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const KIND: DriveKind = DriveKind {
    name: "model",
    about: "Another drive slowed down to the speed of a disk or SSD: hdd-7200, hdd-10000, ssd-sata.",
    grammar: "model:PROFILE[,seed=N][,iops=N]:SPEC",
    keeps_data: true,
    open,
    // Who only looks does not want to wait as for a disk.
    open_read_only: |rest| crate::open_read_only(parse(rest)?.inner),
    canonical,
    found_on: |rest| crate::found_on(parse(rest)?.inner),
    path: |rest| crate::registry::path(parse(rest).ok()?.inner),
};

struct Parsed<'a> {
    profile: &'static Profile,
    seed: Option<u64>,
    iops: Option<u64>,
    inner: &'a str,
}

/// Most commands a second that can be requested: more than any profile takes.
const IOPS_MAX: u64 = 1_000_000;

fn parse(rest: &str) -> Result<Parsed<'_>, OpenError> {
    let refuse = |why: String| Err(OpenError::syntax(format!("'model:{rest}': {why}")));
    let Some((head, inner)) = rest.split_once(':') else {
        return refuse("add the underlying drive, as in model:hdd-7200:file:/srv/disk".into());
    };
    let mut parts = head.split(',');
    let name = parts.next().unwrap_or(head);
    let Some(profile) = profiles().iter().find(|profile| profile.name == name) else {
        let names: Vec<&str> = profiles().iter().map(|profile| profile.name).collect();
        return refuse(format!(
            "unknown profile '{name}': the profiles are {}",
            names.join(", ")
        ));
    };
    let (mut seed, mut iops) = (None, None);
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match (key, value.parse::<u64>()) {
            ("seed", Ok(number)) if seed.is_none() => seed = Some(number),
            ("iops", Ok(number)) if iops.is_none() && (1..=IOPS_MAX).contains(&number) => {
                iops = Some(number);
            }
            _ => {
                return refuse(format!(
                    "'{part}' is not an option of a profile: the options are ,seed=NUMBER and ,iops=NUMBER (1 to {IOPS_MAX}), \
                     each at most once"
                ));
            }
        }
    }
    if split_kind(inner)?.0 == KIND.name {
        return refuse("a model cannot be based on another model: specify the drive itself".into());
    }
    Ok(Parsed {
        profile,
        seed,
        iops,
        inner,
    })
}

fn canonical(rest: &str) -> Result<String, OpenError> {
    let parsed = parse(rest)?;
    let inner = crate::canonical(parsed.inner)?;
    let name = parsed.profile.name;
    let said = |key: &str, number: Option<u64>| match number {
        Some(number) => format!(",{key}={number}"),
        None => String::new(),
    };
    let (seed, iops) = (said("seed", parsed.seed), said("iops", parsed.iops));
    Ok(format!("model:{name}{seed}{iops}:{inner}"))
}

fn open(rest: &str) -> Result<Arc<dyn OpenDrive>, OpenError> {
    let parsed = parse(rest)?;
    let spec = canonical(rest)?;
    let inner = crate::open(parsed.inner)?;
    // Without a seed the text makes one (FNV-1a), so that a pool's disks do not turn in step.
    let seed = parsed.seed.unwrap_or_else(|| {
        spec.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    });
    let info = DriveInfo {
        spec,
        rotation: match parsed.profile.parts {
            Parts::Disk(_) => Rotation::Spinning,
            Parts::Ssd(_) => Rotation::Solid,
        },
        write_cache: true,
        ..inner.info()
    };
    let device: Box<dyn Device> = match &parsed.profile.parts {
        Parts::Disk(disk) => Box::new(Disk::new(disk, info.size, seed)),
        Parts::Ssd(ssd) => Box::new(Ssd::new(ssd, seed)),
    };
    Ok(Arc::new(Model {
        info,
        inner,
        mechanism: Mechanism::new(Service::new(device, parsed.iops)),
    }))
}

struct Model {
    info: DriveInfo,
    inner: Arc<dyn OpenDrive>,
    mechanism: Arc<Mechanism>,
}

impl Drive for Model {
    fn info(&self) -> DriveInfo {
        self.info.clone()
    }
}

impl OpenDrive for Model {
    fn queue(&self, handle: &Handle) -> std::io::Result<Rc<dyn DriveQueue>> {
        Ok(Rc::new(ModelQueue::new(
            handle,
            self.mechanism.clone(),
            self.inner.queue(handle)?,
            self.info.size,
            self.info.logical_sector,
        )))
    }
}
