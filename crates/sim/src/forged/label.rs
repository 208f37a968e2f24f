//! Other values in a pool's description, under labels with right checksums.

use super::disk::Disk;
use super::forge::number;
use crate::random::Random;
use format::{LABEL_SIZE, Label, crc32c, label_offsets, label_slots_for};
use serde_json::Value;
use units::BLOCK;

/// Bytes of a label before the description, and the bit that says that it is packed.
const HEADER: usize = 128;
const PACKED: u64 = 2;

/// The labels of a drive that can be read, with their bytes.
fn all(disk: &Disk) -> impl Iterator<Item = (Label, Vec<u8>)> + '_ {
    label_offsets(disk.size()).into_iter().filter_map(|at| {
        let mut bytes = vec![0; LABEL_SIZE as usize];
        disk.read(at / BLOCK as u64, &mut bytes);
        let label = Label::decode(&bytes).ok()?;
        Some((label, bytes))
    })
}

/// The newest label of a drive.
pub fn newest(disk: &Disk) -> Option<Label> {
    all(disk)
        .map(|(label, _)| label)
        .max_by_key(|label| label.generation)
}

/// Gives all drives, or one of them, a newer label that says something else.
pub fn forge(disks: &[Disk], random: &mut Random) {
    let Some((label, _)) = all(&disks[0]).max_by_key(|(label, _)| label.generation) else {
        return;
    };
    let Ok(mut description) = serde_json::to_value(&label.config) else {
        return;
    };
    for _ in 0..random.within(1..=2) {
        change(&mut description, random);
    }
    let payload = serde_json::to_vec(&description).unwrap_or_default();
    let generation = match random.below(8) {
        0 => number(random),
        _ => label.generation.saturating_add(1),
    };
    let exported = number(random) as u32;
    let (only, some) = (random.below(disks.len() as u64) as usize, random.one_in(6));
    for (index, disk) in disks.iter().enumerate() {
        if some && index != only {
            continue;
        }
        let Some((_, mut bytes)) = all(disk).max_by_key(|(label, _)| label.generation) else {
            continue;
        };
        let incompatible = u64::from_le_bytes(bytes[32..40].try_into().expect("a number"));
        bytes.truncate(HEADER);
        bytes[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes[32..40].copy_from_slice(&(incompatible & !PACKED).to_le_bytes());
        bytes[40..48].copy_from_slice(&generation.to_le_bytes());
        bytes[80..84].copy_from_slice(&exported.to_le_bytes());
        bytes.extend_from_slice(&payload);
        let crc = crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        bytes.resize(
            bytes.len().next_multiple_of(BLOCK).min(LABEL_SIZE as usize),
            0,
        );
        let offsets = label_offsets(disk.size());
        for slot in label_slots_for(generation) {
            disk.write(offsets[slot] / BLOCK as u64, &bytes);
        }
    }
}

/// Gives some value within a description another content.
fn change(value: &mut Value, random: &mut Random) {
    let mut paths = Vec::new();
    collect(value, &mut String::new(), &mut paths);
    let path = random.pick(&paths).clone();
    let Some(found) = value.pointer_mut(&path) else {
        return;
    };
    match found {
        Value::Number(_) => *found = number(random).into(),
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => {
            let long = "f".repeat(70_000);
            let some = [
                "",
                "all",
                "ffffffffffffffff",
                "..",
                "tank",
                "2147483648",
                &long,
            ];
            *text = (*random.pick(&some)).to_owned();
        }
        Value::Array(items) if !items.is_empty() => {
            let at = random.below(items.len() as u64) as usize;
            match random.below(3) {
                0 => items.push(items[at].clone()),
                1 => drop(items.remove(at)),
                _ => items.clear(),
            }
        }
        other => *other = number(random).into(),
    }
}

fn collect(value: &Value, path: &mut String, paths: &mut Vec<String>) {
    paths.push(path.clone());
    let length = path.len();
    let mut each = |name: &str, value: &Value| {
        path.push('/');
        path.push_str(name);
        collect(value, path, paths);
        path.truncate(length);
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each(&index.to_string(), item);
            }
        }
        Value::Object(fields) => fields.iter().for_each(|(name, item)| each(name, item)),
        _ => {}
    }
}
