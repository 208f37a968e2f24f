//! Drives and labels: who belongs to the pool, who is missing, whose label is not the newest.

use crate::disk::{Disk, LabelState};
use crate::inspection::Inspection;
use crate::report::{DriveReport, Verdict};
use format::{Label, label_slots_for};
use units::DriveId;

/// Examines every drive, and writes the newest label where it belongs and is not.
pub async fn check(inspection: &Inspection<'_>) {
    let pool = inspection.pool;
    for index in 0..pool.disks.len() {
        check_present(inspection, index).await;
    }
    for drive in &pool.config().drives {
        let id: Option<DriveId> = drive.id.parse().ok();
        if pool.disks.iter().any(|disk| drive_of(disk) == id) {
            continue;
        }
        let report = DriveReport {
            spec: drive.spec.clone(),
            id: drive.id.clone(),
            size: drive.size,
            state: "missing",
            labels: Vec::new(),
            parts: parts_of(inspection, &drive.id),
        };
        let text = format!(
            "drive {} is missing: data that only this drive has cannot be read; specify it, too, if you have it",
            drive.spec
        );
        inspection.find(Verdict::Repairable, text);
        inspection.report.borrow_mut().drives.push(report);
    }
    for spec in &pool.unlabelled {
        let text = format!("{spec} has no label of the pool and is ignored");
        inspection.find(Verdict::Repairable, text);
    }
    tell_evidence(inspection);
    tell_out(inspection);
}

/// Evidence in the drives' labels, as sentences: drives that were restored to an earlier state, or truncated.
pub fn tell_evidence(inspection: &Inspection<'_>) {
    let evidence = &inspection.pool.evidence;
    for spec in &evidence.own_way {
        let text = format!(
            "{spec} and the pool's other drives were used separately (split brain): inspect one side alone, without {spec} or \
             with it alone"
        );
        inspection.find(Verdict::Repairable, text);
    }
    for old in &evidence.old {
        let (spec, own, expected) = (&old.spec, old.generation, old.expected);
        if old.alone {
            let text = format!(
                "{spec} was restored to an earlier state: its label is {own}, and the pool's newest label expects at least \
                 {expected}. Later writes are lost or older, and blocks that still match the pool's map do not \
                 show it. Attach the drive in its latest state; the pool opens as it is only with --accept-old"
            );
            inspection.find(Verdict::Lost, text);
        } else {
            let text = format!(
                "{spec} is older than its mirror's other drives (label {own}, at least {expected} expected): none of its data \
                 is used, and it is resynced completely when the pool is opened"
            );
            inspection.find(Verdict::Repairable, text);
        }
    }
    for short in &evidence.short {
        let (spec, missing) = (&short.spec, short.missing);
        let what = match short.cut {
            true => "data that was there is read from another drive, or lost",
            false => "only labels were there",
        };
        let text = format!(
            "{spec} is {missing} bytes shorter than when it joined: {what}, and it is not written to here. Restore its size, \
             or replace it in its mirror"
        );
        inspection.find(Verdict::Repairable, text);
    }
}

fn drive_of(disk: &Disk) -> Option<DriveId> {
    disk.newest().map(|label| label.drive)
}

async fn check_present(inspection: &Inspection<'_>, index: usize) {
    let pool = inspection.pool;
    let disk = &pool.disks[index];
    let Some(own) = disk.newest() else { return };
    let id = own.drive.to_string();
    let named = pool.config().drives.iter().find(|drive| drive.id == id);
    let follows = named.is_some_and(|known| known.labelled > 0 && own.generation >= known.labelled);
    let is_old = pool.evidence.old.iter().any(|old| old.drive == id);
    let state = match named {
        None => "left",
        Some(_) if is_old => "old",
        Some(_) if pool.is_kept(index) => "short",
        Some(_) if !follows && own.generation < pool.label.generation => "stale",
        Some(_) => "present",
    };
    let report = DriveReport {
        spec: disk.spec.clone(),
        parts: parts_of(inspection, &id),
        id,
        size: disk.size,
        state,
        labels: disk.labels.iter().map(text_of).collect(),
    };
    inspection.report.borrow_mut().drives.push(report);
    if named.is_none() {
        let text = format!(
            "{} has a label of this pool, but is no longer one of its drives: it is ignored",
            disk.spec
        );
        inspection.find(Verdict::Whole, text);
        return;
    }
    if pool.is_kept(index) {
        return;
    }
    let wanted = match follows {
        true => own.clone(),
        false => Label {
            drive: own.drive,
            ..inspection.pool.written.clone()
        },
    };
    mend_labels(inspection, index, &wanted).await;
}

/// The newest generation that a drive is to have has to be in both of the places that it goes to.
async fn mend_labels(inspection: &Inspection<'_>, index: usize, wanted: &Label) {
    let pool = inspection.pool;
    let disk = &pool.disks[index];
    for slot in label_slots_for(wanted.generation) {
        if disk.labels[slot].label() == Some(wanted) {
            continue;
        }
        let Some(offset) = disk.places[slot] else {
            continue;
        };
        let Ok(bytes) = wanted.encode() else { return };
        inspection
            .report
            .borrow_mut()
            .mend("label", disk.spec.clone());
        inspection.write("label", index, offset, &bytes).await;
    }
    // Labels of the generation before are only needed while the next one is written.
    let other = (0..4).filter(|slot| !label_slots_for(wanted.generation).contains(slot));
    let damaged = other.filter(|slot| {
        matches!(
            disk.labels[*slot],
            LabelState::Damaged | LabelState::Unreadable(_)
        )
    });
    if damaged.count() > 0 {
        let text = format!(
            "{}: a label of the previous generation is damaged; it is not needed, and the next change rewrites it",
            disk.spec
        );
        inspection.find(Verdict::Whole, text);
    }
}

fn text_of(state: &LabelState) -> String {
    match state {
        LabelState::Valid(label) => label.generation.to_string(),
        LabelState::Empty => "empty".into(),
        LabelState::Gone => "gone".into(),
        LabelState::Damaged => "damaged".into(),
        LabelState::Unreadable(_) => "unreadable".into(),
        LabelState::Unknown(_) => "unknown".into(),
    }
}

/// The roles of a drive.
fn parts_of(inspection: &Inspection<'_>, drive: &str) -> Vec<String> {
    let config = inspection.pool.config();
    let mut parts = Vec::new();
    let mut note = |name: String, out: bool| {
        parts.push(if out { format!("{name} (out)") } else { name });
    };
    for part in config.meta.parts.iter().filter(|part| part.drive == drive) {
        note("metadata".into(), part.out);
    }
    for vdrive in &config.vdrives {
        let class = inspection.pool.vdrives.get(&units::VdriveId(vdrive.id));
        let class = class.map_or("?", |vdrive| vdrive.class.name());
        for part in vdrive.parts.iter().filter(|part| part.drive == drive) {
            note(format!("vdrive {} {class}", vdrive.id), part.out);
        }
    }
    parts
}

/// Members that were set aside: redundancy that is not there.
fn tell_out(inspection: &Inspection<'_>) {
    for vdrive in inspection.pool.vdrives.values() {
        for (index, part) in vdrive.parts.iter().enumerate() {
            if part.out {
                let text = format!(
                    "{} is out of vdrive {} ({}): it lacks later writes",
                    inspection.pool.part_name(vdrive.id, index),
                    vdrive.id,
                    vdrive.class.name()
                );
                inspection.find(Verdict::Repairable, text);
            }
        }
    }
}
