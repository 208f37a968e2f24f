//! Labels identify a drive as part of a pool. Each drive has four of 1 MiB: two at each end.

use crate::bytes::{get_u32, get_u64, get_u128, put};
use crate::checkpoint::COUNT_MAX;
use crate::features::PACKED;
use crate::{Features, Newer, PoolConfig};
use checksum::crc32c;
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::borrow::Cow;
use thiserror::Error;
use units::{DriveId, PoolId};

/// Bytes of one label.
pub const LABEL_SIZE: u64 = 1 << 20;
/// First byte of a drive that belongs to vdrives.
pub const DATA_START: u64 = 2 * LABEL_SIZE;
const MAGIC: &[u8; 7] = b"CONVECT";
const VERSION: u8 = 1;
const HEADER: usize = 128;
const BLOCK: usize = 4096;
/// Bytes above which a description is packed: below, what is saved is not worth a label that can be
/// read with the eye.
const PACK_ABOVE: usize = 64 << 10;
/// Bytes of the longest description, unpacked. It bounds what a label can make its reader keep.
pub const MAX_DESCRIPTION: usize = 4 << 20;
/// Compression level of 10. Ordered names and numbers compress well at a low level.
const PACK_LEVEL: u8 = 1;

/// End of the part of a drive of `size` bytes that belongs to vdrives: whole MiB.
pub fn data_end(size: u64) -> u64 {
    (size / LABEL_SIZE * LABEL_SIZE).saturating_sub(2 * LABEL_SIZE)
}

/// First bytes of the four labels of a drive of `size` bytes.
pub fn label_offsets(size: u64) -> [u64; 4] {
    let end = data_end(size);
    [0, LABEL_SIZE, end, end + LABEL_SIZE]
}

/// First bytes of the labels of a drive that had `known` bytes when it joined and has `present` now: the second pair is where it
/// was then, and `None` if it is beyond the present end. The present end of a truncated drive holds data.
pub fn label_places(known: u64, present: u64) -> [Option<u64>; 4] {
    let fits = |offset: &u64| {
        let end = offset.checked_add(LABEL_SIZE);
        end.is_some_and(|end| end <= present)
    };
    label_offsets(known).map(|offset| Some(offset).filter(fits))
}

/// The two of the four labels that a generation is written to: the other two keep the one before.
pub fn label_slots_for(generation: u64) -> [usize; 2] {
    if generation.is_multiple_of(2) {
        [0, 2]
    } else {
        [1, 3]
    }
}

/// Why a label cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LabelError {
    /// Not a label, or damaged.
    #[error("no label")]
    None,
    /// A whole label of a version that this one cannot follow. It counts by its generation, as
    /// every other: an older label beside it says what is not so any longer.
    #[error("{why}")]
    Newer {
        /// Its generation.
        generation: u64,
        /// The unsupported feature.
        why: Newer,
    },
    /// The pool's description does not fit.
    #[error("the pool's description has {0} bytes, {1} compressed, and a label holds {MAX_DESCRIPTION} and {packed}: remove snapshots, volumes or exports", packed = LABEL_SIZE - HEADER as u64)]
    TooLong(usize, usize),
}

/// A label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Pool.
    pub pool: PoolId,
    /// The drive that has it.
    pub drive: DriveId,
    /// The highest wins.
    pub generation: u64,
    /// The pool was left in order by an export: any host may take it.
    pub exported: bool,
    /// The whole pool.
    pub config: PoolConfig,
}

/// The bytes of a label that are not the drive's own, for another drive: descriptions are long, and
/// the same for each.
pub fn readdress(label: &[u8], drive: DriveId) -> Vec<u8> {
    let mut bytes = label.to_vec();
    put(&mut bytes, 64, &drive.0.to_le_bytes());
    seal(&mut bytes);
    bytes
}

/// Puts in the checksum.
fn seal(bytes: &mut [u8]) {
    let end = HEADER + get_u32(bytes, 12) as usize;
    let crc = crc32c(&bytes[12..end]);
    put(bytes, 8, &crc.to_le_bytes());
}

/// A description as a label holds it: packed when it is long.
fn pack(description: Vec<u8>) -> Result<(Vec<u8>, bool), LabelError> {
    let long = description.len();
    if long <= PACK_ABOVE {
        return Ok((description, false));
    }
    let packed = compress_to_vec_zlib(&description, PACK_LEVEL);
    let fits = (HEADER + packed.len()) as u64 <= LABEL_SIZE && long <= MAX_DESCRIPTION;
    match fits {
        true => Ok((packed, true)),
        false => Err(LabelError::TooLong(long, packed.len())),
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, String> {
    decompress_to_vec_zlib_with_limit(packed, MAX_DESCRIPTION)
        .map_err(|failed| format!("it cannot be decompressed: {:?}", failed.status))
}

impl Label {
    /// Size in bytes that the drive that has it had when it joined, if its description names that drive.
    pub fn own_size(&self) -> Option<u64> {
        let own = self.drive.to_string();
        let known = self.config.drives.iter().find(|known| known.id == own);
        known.map(|known| known.size)
    }

    /// Its bytes, padded to whole blocks.
    ///
    /// # Errors
    /// [`LabelError::TooLong`].
    pub fn encode(&self) -> Result<Vec<u8>, LabelError> {
        let description = serde_json::to_vec(&self.config).map_err(|_| LabelError::None)?;
        let (payload, is_packed) = pack(description)?;
        let mut features = self.config.features;
        if is_packed {
            features.incompatible |= PACKED;
        }
        let length = (HEADER + payload.len()).next_multiple_of(BLOCK);
        let mut bytes = vec![0; length];
        put(&mut bytes, 0, MAGIC);
        bytes[7] = VERSION;
        put(&mut bytes, 12, &(payload.len() as u32).to_le_bytes());
        put(&mut bytes, 16, &features.compatible.to_le_bytes());
        put(&mut bytes, 24, &features.read_only.to_le_bytes());
        put(&mut bytes, 32, &features.incompatible.to_le_bytes());
        put(&mut bytes, 40, &self.generation.to_le_bytes());
        put(&mut bytes, 48, &self.pool.0.to_le_bytes());
        put(&mut bytes, 64, &self.drive.0.to_le_bytes());
        put(&mut bytes, 80, &u32::from(self.exported).to_le_bytes());
        put(&mut bytes, HEADER, &payload);
        seal(&mut bytes);
        Ok(bytes)
    }

    /// Reads a label, to use the pool, from its bytes (the whole 1 MiB, or as much of it as it
    /// fills).
    ///
    /// # Errors
    /// [`LabelError::None`] or [`LabelError::Newer`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LabelError> {
        Self::decode_if(bytes, Features::check_writable)
    }

    /// Reads a label as [`Label::decode`] does, for a program that writes nothing to the pool.
    ///
    /// # Errors
    /// [`LabelError::None`] or [`LabelError::Newer`].
    pub fn decode_to_read(bytes: &[u8]) -> Result<Self, LabelError> {
        Self::decode_if(bytes, Features::check_readable)
    }

    fn decode_if(
        bytes: &[u8],
        allowed: impl Fn(Features) -> Result<(), Newer>,
    ) -> Result<Self, LabelError> {
        if bytes.len() < HEADER || &bytes[..7] != MAGIC {
            return Err(LabelError::None);
        }
        let end = HEADER + get_u32(bytes, 12) as usize;
        let covered = bytes.get(12..end).ok_or(LabelError::None)?;
        if end as u64 > LABEL_SIZE || get_u32(bytes, 8) != crc32c(covered) {
            return Err(LabelError::None);
        }
        let generation = get_u64(bytes, 40);
        if generation >= COUNT_MAX {
            return Err(LabelError::None);
        }
        let newer = |why| LabelError::Newer { generation, why };
        if bytes[7] != VERSION {
            return Err(newer(Newer::Version(bytes[7])));
        }
        let mut features = Features {
            compatible: get_u64(bytes, 16),
            read_only: get_u64(bytes, 24),
            incompatible: get_u64(bytes, 32),
        };
        allowed(features).map_err(newer)?;
        let mut description = Cow::Borrowed(&bytes[HEADER..end]);
        if features.incompatible & PACKED != 0 {
            let unpacked = unpack(&description);
            description = unpacked
                .map_err(|why| newer(Newer::Description(why)))?
                .into();
            features.incompatible &= !PACKED;
        }
        let mut config: PoolConfig = serde_json::from_slice(&description)
            .map_err(|failed| newer(Newer::Description(failed.to_string())))?;
        config
            .check()
            .map_err(|reason| newer(Newer::Description(reason)))?;
        config.features = features;
        Ok(Self {
            pool: PoolId(get_u128(bytes, 48)),
            drive: DriveId(get_u128(bytes, 64)),
            generation,
            exported: get_u32(bytes, 80) != 0,
            config,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{DriveConfig, MetaConfig, PartConfig, Policy, VolumeConfig, WearConfig};

    pub fn label() -> Label {
        let drive = "00000000000000000000000000000002";
        Label {
            pool: PoolId(1),
            drive: DriveId(2),
            generation: 3,
            exported: true,
            config: PoolConfig {
                name: "tank".into(),
                policy: Policy::SlowFirst,
                shards: 2,
                group_blocks: 4096,
                meta: MetaConfig {
                    parts: vec![PartConfig {
                        drive: drive.into(),
                        offset: DATA_START,
                        blocks: 1 << 16,
                        out: false,
                        out_since: 0,
                        out_why: String::new(),
                        stale: String::new(),
                    }],
                    journal_blocks: 4096,
                },
                drives: vec![DriveConfig {
                    id: drive.into(),
                    spec: "ram:a".into(),
                    size: 1 << 30,
                    offline: false,
                    labelled: 0,
                    wear: Default::default(),
                }],
                vdrives: vec![],
                volumes: vec![],
                layers: vec![],
                snapshots: vec![],
                schedules: vec![],
                receiving: vec![],
                reservations: vec![],
                exports: vec![],
                next_volume: 1,
                scrub: crate::ScrubConfig::default(),
                warn_at: crate::WARN_AT.to_vec(),
                promotion_budget: 0,
                qos: Default::default(),
                audit_anchor: None,
                opening: String::new(),
                paused: Vec::new(),
                checkpoints: Vec::new(),
                old: Vec::new(),
                opening_lost: 0,
                unknown: Default::default(),
                features: Features::default(),
            },
        }
    }

    pub fn volume(id: u32) -> VolumeConfig {
        VolumeConfig {
            id,
            name: format!("v{id}"),
            size: 1 << 20,
            lba_size: 512,
            thick: false,
            deleting: false,
            live: 0,
            next: 0,
            quota: 0,
            reservation: 0,
            knobs: Default::default(),
            targets: crate::TargetsConfig::default(),
            policy: 0,
            group: 0,
        }
    }

    /// A label's bytes with something changed and the checksum made right.
    fn changed(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        change(&mut bytes);
        seal(&mut bytes);
        bytes
    }

    fn newer(bytes: &[u8]) -> Newer {
        match Label::decode(bytes) {
            Err(LabelError::Newer { generation: 3, why }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_label_survives_and_damage_is_seen() {
        let bytes = label().encode().unwrap();
        assert_eq!(Label::decode(&bytes), Ok(label()));
        for at in [0, 8, 13, 50, 70, 130] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(Label::decode(&damaged), Err(LabelError::None), "byte {at}");
        }
    }

    #[test]
    fn labels_do_not_overlap_the_data() {
        let size = (100 << 20) + 12345;
        assert_eq!(label_offsets(size), [0, 1 << 20, 98 << 20, 99 << 20]);
        assert_eq!((DATA_START, data_end(size)), (2 << 20, 98 << 20));
        assert_ne!(label_slots_for(4), label_slots_for(5));
    }

    #[test]
    fn labels_stay_where_they_were_when_a_drive_changes_its_size() {
        let (known, end) = (100 << 20, 98 << 20);
        let all = label_offsets(known).map(Some);
        assert_eq!(label_places(known, known), all);
        assert_eq!(label_places(known, known + (64 << 20)), all);
        let cut = [Some(0), Some(1 << 20), Some(end), None];
        assert_eq!(label_places(known, known - 1), cut);
        let front = [Some(0), Some(1 << 20), None, None];
        assert_eq!(label_places(known, 40 << 20), front);
        assert_eq!(label_places(known, 0), [None; 4]);
        assert_eq!(label_places(u64::MAX, known), front);
    }

    #[test]
    fn ten_thousand_snapshots_fit_and_what_does_not_is_refused() {
        let mut label = label();
        let named = |number: u32| crate::SnapshotConfig {
            name: format!("every-quarter-2026-11-22T{number:08}"),
            volume: 1 + number % 10,
            layer: 100 + number,
            size: 1 << 40,
            created_s: 1_700_000_000 + u64::from(number) * 977,
            held: false,
            schedule: "every-quarter".into(),
            origin: String::new(),
        };
        label.config.snapshots = (0..10_000).map(named).collect();
        label.config.layers = (0..10_000)
            .map(|number| crate::LayerConfig {
                id: 100 + number,
                parent: if number < 10 { 0 } else { 90 + number },
                root: 1 + number % 10,
                epoch: number + 1,
            })
            .collect();
        let bytes = label.encode().unwrap();
        assert!(bytes.len() < LABEL_SIZE as usize / 2, "{}", bytes.len());
        let (packed, is_packed) = pack(serde_json::to_vec(&label.config).unwrap()).unwrap();
        assert!(is_packed);
        assert_eq!(
            unpack(&packed).unwrap(),
            serde_json::to_vec(&label.config).unwrap()
        );

        // Names without a pattern do not pack.
        let mut word = 1u64;
        for number in 0..80_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let name = format!("{word:x}{number:x}");
            label.config.snapshots.push(crate::SnapshotConfig {
                name,
                ..named(number)
            });
        }
        let refused = label.encode().unwrap_err();
        assert!(matches!(refused, LabelError::TooLong(..)), "{refused}");
    }

    #[test]
    fn what_unpacks_to_too_much_or_to_nothing_is_refused() {
        let long = pack(vec![b' '; MAX_DESCRIPTION]).unwrap().0;
        assert_eq!(unpack(&long).unwrap().len(), MAX_DESCRIPTION);
        let bomb = compress_to_vec_zlib(&vec![0; MAX_DESCRIPTION + 1], 9);
        assert!(unpack(&bomb).unwrap_err().contains("HasMoreOutput"));

        let mut other = label();
        other.config.name = "a".repeat(PACK_ABOVE + 1);
        let bytes = other.encode().unwrap();
        assert_eq!(u64::from(bytes[32]) & PACKED, PACKED);
        let damaged = changed(&bytes, |bytes| bytes[HEADER] ^= 0xff);
        assert!(matches!(newer(&damaged), Newer::Description(why) if why.contains("decompressed")));
    }

    #[test]
    fn a_label_for_another_drive_is_the_same_but_for_that() {
        let label = label();
        let drive = DriveId(77);
        let other = readdress(&label.encode().unwrap(), drive);
        assert_eq!(Label::decode(&other).unwrap(), Label { drive, ..label });
    }

    #[test]
    fn what_a_newer_version_made_is_refused_by_name_or_kept() {
        let bytes = label().encode().unwrap();
        let incompatible = changed(&bytes, |bytes| bytes[32] = 4);
        assert_eq!(newer(&incompatible), Newer::Incompatible(4));
        assert!(Label::decode_to_read(&incompatible).is_err());

        let read_only = changed(&bytes, |bytes| bytes[25] = 1);
        assert_eq!(newer(&read_only), Newer::ReadOnly(256));
        let read = Label::decode_to_read(&read_only).unwrap();
        assert_eq!(read.config.features.read_only, 256);

        let compatible = changed(&bytes, |bytes| bytes[23] = 0x80);
        let label = Label::decode(&compatible).unwrap();
        assert_eq!(label.encode().unwrap(), compatible, "the bit is kept");

        let version = changed(&bytes, |bytes| bytes[7] = 2);
        assert_eq!(newer(&version), Newer::Version(2));
    }

    #[test]
    fn fields_of_a_newer_version_are_kept() {
        let mut label = label();
        let value = serde_json::json!({"deep": [1, {"x": null}]});
        label.config.unknown.insert("tomorrow".into(), value);
        let bytes = label.encode().unwrap();
        let read = Label::decode(&bytes).unwrap();
        assert_eq!(read, label);
        assert_eq!(read.encode().unwrap(), bytes);
    }

    #[test]
    fn wear_and_the_budget_are_kept_and_take_no_room_where_there_is_none() {
        let mut label = label();
        let before = label.encode().unwrap();
        let text = String::from_utf8_lossy(&before).into_owned();
        assert!(!text.contains("wear") && !text.contains("promotion_budget"));
        label.config.promotion_budget = 1 << 30;
        label.config.drives[0].wear = WearConfig {
            since_s: 1_700_000_000,
            hosts: 1,
            promotion: 2,
            upkeep: u64::MAX,
            metadata: 0,
        };
        assert_eq!(Label::decode(&label.encode().unwrap()).as_ref(), Ok(&label));
        let old = Label::decode(&before).unwrap().config;
        assert_eq!(old.drives[0].wear, WearConfig::default());
        assert_eq!(old.promotion_budget, 0);
    }

    #[test]
    fn a_description_that_no_pool_can_have_is_refused() {
        type Change = fn(&mut PoolConfig);
        let cases: &[(&str, Change)] = &[
            ("shards", |config| config.shards = 0),
            ("groups", |config| config.group_blocks = 1000),
            ("journals", |config| config.meta.journal_blocks = 0),
            ("metadata region", |config| config.meta.parts.clear()),
            ("does not hold", |config| config.meta.parts[0].blocks = 8192),
            ("not on its drive", |config| {
                config.meta.parts[0].blocks = u64::MAX / 4096
            }),
            ("not on its drive", |config| config.meta.parts[0].offset = 0),
            ("not on its drive", |config| config.drives.clear()),
            ("overlapping", |config| {
                config.meta.parts.push(config.meta.parts[0].clone())
            }),
            ("not a valid name", |config| config.name = "../x".into()),
            ("warnings at", |config| config.warn_at = vec![90, 80]),
            ("warnings at", |config| config.warn_at = vec![101]),
            ("a promotion budget of 4097 bytes", |config| {
                config.promotion_budget = 4097
            }),
            ("0 as the next volume's number", |config| {
                config.next_volume = 0;
            }),
            ("volumes with number 0", |config| {
                config.next_volume = 2;
                config.volumes.push(volume(0));
            }),
            ("group 1 with the number of a volume", |config| {
                config.next_volume = 2;
                config.volumes.push(volume(1));
                config.qos.groups.push(crate::QosGroupConfig {
                    id: 1,
                    name: "desktops".into(),
                    policy: 1,
                });
            }),
            ("a quota of 4097 bytes", |config| {
                config.next_volume = 2;
                config.volumes.push(volume(1));
                config.volumes[0].quota = 4097;
            }),
            ("not a valid name", |config| {
                config.receiving.push(crate::ReceivingConfig {
                    volume: 1,
                    snapshot: "a/b".into(),
                    to: String::new(),
                    from: String::new(),
                    done: 0,
                })
            }),
            ("reservations of volume 1", |config| {
                config.reservations.push(crate::ReservationsConfig {
                    volume: 1,
                    state: "x".repeat(crate::RESERVATIONS_MAX + 1),
                })
            }),
            ("every 0 s", |config| {
                config.schedules.push(crate::ScheduleConfig {
                    name: "hourly".into(),
                    volumes: vec![],
                    every_s: 0,
                    keep: 1,
                    since_s: 0,
                    last_s: 0,
                    missed: 0,
                    missed_since_s: 0,
                })
            }),
        ];
        for (reason, change) in cases {
            let mut label = label();
            change(&mut label.config);
            match newer(&label.encode().unwrap()) {
                Newer::Description(text) => assert!(text.contains(reason), "{text}: {reason}"),
                other => panic!("{other:?}"),
            }
        }
        let no_json = changed(&label().encode().unwrap(), |bytes| bytes[HEADER] = b'[');
        assert!(matches!(newer(&no_json), Newer::Description(_)));
    }
}
