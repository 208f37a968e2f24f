//! Placement settings of a volume (docs/placement.md), as stored in labels.

use crate::TierConfig;
use crate::config_check::{need, whole_limit};
use serde::{Deserialize, Serialize};
use units::EXTENT;

/// Most pins of a volume.
pub const PINS_MAX: usize = 16;
/// Most initiators that a volume bypasses.
pub const BYPASS_MAX: usize = 8;
/// Longest name of an initiator, in bytes: that of iSCSI and NVMe.
pub const INITIATOR_MAX: usize = 223;
/// Where a pin ends that goes to the volume's end, wherever that is.
const OPEN: u64 = u64::MAX;

/// A range of a volume that is kept on one tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PinConfig {
    /// First byte, a multiple of 64 KiB.
    pub offset: u64,
    /// Bytes, a multiple of 64 KiB; 0: up to the volume's end, wherever that is.
    #[serde(default, skip_serializing_if = "is_default")]
    pub length: u64,
    /// The tier.
    pub tier: TierConfig,
}

/// Reaction: how soon data counts as hot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactionConfig {
    /// Sooner: more is promoted.
    Eager,
    /// The default.
    #[default]
    Normal,
    /// Later: less is promoted.
    Thrifty,
}

/// The settings of a volume; without any it is placed by what hosts use alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct KnobsConfig {
    /// Reads promote nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub promotion_off: bool,
    /// Ranges that are kept on a tier: in order, apart from each other, at most 16.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pins: Vec<PinConfig>,
    /// Bytes on the fast tier up to which others give way first, whole blocks; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fast_floor: u64,
    /// Bytes on the fast tier beyond which it promotes nothing and gives way first, whole blocks; 0: none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fast_ceiling: u64,
    /// Reaction of promotion.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reaction: ReactionConfig,
    /// Bytes a day that promotion may write; 0: as many as are worth it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_budget: u64,
    /// Names of bypassed initiators: at most 8, each once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bypass: Vec<String>,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Checks the name of an initiator: a host as a front end knows it. Names are compared byte by byte.
///
/// # Errors
/// The fault, and the correct form.
pub fn check_initiator(name: &str) -> Result<(), String> {
    let what = match name.len() {
        0 => "it is empty".to_owned(),
        len if len > INITIATOR_MAX => format!("it has {len} bytes"),
        _ if name.contains(char::is_control) => "it has a control character".to_owned(),
        _ => return Ok(()),
    };
    let short: String = name.chars().take(32).collect();
    Err(format!(
        "{short:?} is not an initiator's name, since {what}: use 1 to {INITIATOR_MAX} bytes without control \
         characters, like iqn.2026-01.com.example:backup"
    ))
}

impl PinConfig {
    /// The byte after its last, which may be beyond every volume.
    pub fn end(&self) -> u64 {
        match self.length {
            0 => OPEN,
            length => self.offset.saturating_add(length),
        }
    }

    fn between(start: u64, end: u64, tier: TierConfig) -> Self {
        Self {
            offset: start,
            length: if end == OPEN { 0 } else { end - start },
            tier,
        }
    }
}

impl KnobsConfig {
    /// Keeps a range, widened to whole 64 KiB, on a tier from now on, or on none, whatever was said of
    /// it before. `length` 0: up to the volume's end.
    ///
    /// # Errors
    /// The fault, as half a sentence.
    pub fn pin(
        &mut self,
        offset: u64,
        length: u64,
        tier: Option<TierConfig>,
    ) -> Result<(), String> {
        let unit = EXTENT as u64;
        let start = offset / unit * unit;
        let end = match length {
            0 => Some(OPEN),
            length => offset
                .checked_add(length)
                .and_then(|end| end.checked_next_multiple_of(unit)),
        };
        let Some(end) = end else {
            return Err(format!(
                "a pin of {length} bytes from byte {offset}, beyond the maximum size of a volume"
            ));
        };
        let mut pins: Vec<PinConfig> = Vec::new();
        for old in &self.pins {
            let before = (old.offset, old.end().min(start));
            let after = (old.offset.max(end), old.end());
            let left = [before, after].into_iter().filter(|(from, to)| from < to);
            pins.extend(left.map(|(from, to)| PinConfig::between(from, to, old.tier)));
        }
        pins.extend(tier.map(|tier| PinConfig::between(start, end, tier)));
        pins.sort_unstable_by_key(|pin| pin.offset);
        pins.dedup_by(|next, last| {
            let joins = last.tier == next.tier && last.end() == next.offset;
            if joins {
                *last = PinConfig::between(last.offset, next.end(), last.tier);
            }
            joins
        });
        need(pins.len() <= PINS_MAX, || {
            format!("{} pins, and a volume has at most {PINS_MAX}", pins.len())
        })?;
        self.pins = pins;
        Ok(())
    }

    /// Replaces the bypassed initiators. Duplicates are removed.
    ///
    /// # Errors
    /// The fault, and what to do.
    pub fn bypass(&mut self, names: &[String]) -> Result<(), String> {
        let mut bypass: Vec<String> = Vec::new();
        for name in names {
            check_initiator(name)?;
            if !bypass.contains(name) {
                bypass.push(name.clone());
            }
        }
        need(bypass.len() <= BYPASS_MAX, || {
            format!(
                "{} initiators cannot be bypassed: a volume bypasses at most {BYPASS_MAX}; remove \
                 some",
                bypass.len()
            )
        })?;
        self.bypass = bypass;
        Ok(())
    }

    /// Bytes of a volume of `size` that are pinned to a tier.
    pub fn pinned(&self, tier: TierConfig, size: u64) -> u64 {
        let pins = self.pins.iter().filter(|pin| pin.tier == tier);
        pins.map(|pin| pin.end().min(size).saturating_sub(pin.offset))
            .sum()
    }

    /// Guaranteed bytes of a volume on the fast tier.
    pub fn claimed(&self, size: u64) -> u64 {
        self.pinned(TierConfig::Fast, size).max(self.fast_floor)
    }

    /// Checks what the engine relies on.
    ///
    /// # Errors
    /// The fault, as half a sentence.
    pub(crate) fn check(&self) -> Result<(), String> {
        let whole = |bytes: u64| bytes.is_multiple_of(EXTENT as u64);
        let apart = |pair: &[PinConfig]| pair[0].end() <= pair[1].offset;
        need(
            self.pins.len() <= PINS_MAX
                && self.pins.windows(2).all(apart)
                && self.pins.iter().all(|pin| {
                    whole(pin.offset)
                        && whole(pin.length)
                        && pin.offset.checked_add(pin.length).is_some()
                }),
            || {
                format!(
                    "pins that are not at most {PINS_MAX} ordered ranges of whole 64 KiB: {:?}",
                    self.pins
                )
            },
        )?;
        let mut known = self.clone();
        let bypass = known.bypass(&self.bypass);
        need(bypass.is_ok() && known.bypass == self.bypass, || {
            format!(
                "initiators to bypass that are not at most {BYPASS_MAX} names of 1 to {INITIATOR_MAX} \
                 bytes, each once: {:?}",
                self.bypass
            )
        })?;
        let limits = [
            ("floor", self.fast_floor),
            ("ceiling", self.fast_ceiling),
            ("write budget", self.write_budget),
        ];
        for (what, bytes) in limits {
            need(whole_limit(what, bytes) == Ok(bytes), || {
                format!("a {what} of {bytes} bytes")
            })?;
        }
        need(
            self.fast_ceiling == 0 || self.fast_floor <= self.fast_ceiling,
            || {
                format!(
                    "a floor of {} bytes on the fast tier above its ceiling of {}",
                    self.fast_floor, self.fast_ceiling
                )
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TierConfig::{Fast, Slow};

    const KIB: u64 = 1 << 10;

    /// Pins one after the other (KiB, KiB, tier), and what the volume has then.
    fn after(pins: &[(u64, u64, Option<TierConfig>)]) -> Vec<(u64, u64, TierConfig)> {
        let mut knobs = KnobsConfig::default();
        for (offset, length, tier) in pins {
            knobs.pin(offset * KIB, length * KIB, *tier).unwrap();
            assert_eq!(knobs.check(), Ok(()));
        }
        let pins = knobs.pins.iter();
        pins.map(|pin| (pin.offset / KIB, pin.length / KIB, pin.tier))
            .collect()
    }

    #[test]
    fn a_pin_is_widened_to_extents_and_joined_with_what_it_touches() {
        assert_eq!(after(&[(70, 1, Some(Fast))]), [(64, 64, Fast)]);
        assert_eq!(after(&[(0, 65, Some(Fast))]), [(0, 128, Fast)]);
        let touching = [
            (128, 64, Some(Fast)),
            (0, 64, Some(Fast)),
            (64, 64, Some(Fast)),
        ];
        assert_eq!(after(&touching), [(0, 192, Fast)]);
    }

    #[test]
    fn the_last_word_on_a_range_counts() {
        let all = (0, 0, Some(Slow));
        assert_eq!(
            after(&[all, (128, 64, Some(Fast))]),
            [(0, 128, Slow), (128, 64, Fast), (192, 0, Slow)]
        );
        assert_eq!(
            after(&[all, (128, 64, None)]),
            [(0, 128, Slow), (192, 0, Slow)]
        );
        assert_eq!(after(&[(128, 64, Some(Fast)), all]), [(0, 0, Slow)]);
        assert_eq!(after(&[all, (0, 0, None)]), []);
        assert_eq!(
            after(&[(64, 128, Some(Fast)), (0, 128, None)]),
            [(128, 64, Fast)]
        );
    }

    #[test]
    fn there_are_at_most_sixteen_and_none_beyond_what_can_be_addressed() {
        let mut knobs = KnobsConfig::default();
        for number in 0..16 {
            knobs.pin(number * 128 * KIB, 64 * KIB, Some(Fast)).unwrap();
        }
        let before = knobs.clone();
        let wrong = knobs.pin(16 * 128 * KIB, 64 * KIB, Some(Fast)).unwrap_err();
        assert!(wrong.contains("at most 16"), "{wrong}");
        let wrong = knobs.pin(u64::MAX - 5, 3, Some(Fast)).unwrap_err();
        assert!(
            wrong.contains("beyond the maximum size of a volume"),
            "{wrong}"
        );
        assert_eq!(knobs, before);
    }

    #[test]
    fn what_is_pinned_ends_with_the_volume() {
        let mut knobs = KnobsConfig::default();
        knobs.pin(0, 0, Some(Fast)).unwrap();
        knobs.pin(128 * KIB, 64 * KIB, Some(Slow)).unwrap();
        assert_eq!(knobs.pinned(Fast, 1024 * KIB), 960 * KIB);
        assert_eq!(knobs.pinned(Slow, 150 * KIB), 22 * KIB);
        knobs.fast_floor = 2048 * KIB;
        assert_eq!(knobs.claimed(1024 * KIB), 2048 * KIB);
    }

    #[test]
    fn initiators_are_kept_in_order_and_each_once() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let mut knobs = KnobsConfig::default();
        let text = serde_json::to_string(&knobs).unwrap();
        assert_eq!(text, "{}");
        knobs.bypass(&names(&["b", "a", "b"])).unwrap();
        let text = serde_json::to_string(&knobs).unwrap();
        assert_eq!(text, r#"{"bypass":["b","a"]}"#);
        assert_eq!(serde_json::from_str::<KnobsConfig>(&text).unwrap(), knobs);
        // As an older version wrote them.
        let older: KnobsConfig = serde_json::from_str(r#"{"fast_floor":4096}"#).unwrap();
        assert!(older.bypass.is_empty());
        let long = "x".repeat(INITIATOR_MAX + 1);
        for (wrong, why) in [
            ("", "it is empty"),
            ("a\tb", "control"),
            (&long, "224 bytes"),
        ] {
            let said = knobs.bypass(&names(&["c", wrong])).unwrap_err();
            assert!(
                said.contains(why) && said.contains("use 1 to 223"),
                "{said}"
            );
        }
        let many: Vec<String> = (0..9).map(|at| at.to_string()).collect();
        let said = knobs.bypass(&many).unwrap_err();
        assert!(said.contains("at most 8; remove some"), "{said}");
        assert_eq!(knobs.bypass, names(&["b", "a"]));
        knobs.bypass(&many[1..]).unwrap();
        assert_eq!(knobs.check(), Ok(()));
        for wrong in [many, names(&["a", "a"]), names(&[""])] {
            let knobs = KnobsConfig {
                bypass: wrong,
                ..KnobsConfig::default()
            };
            assert!(knobs.check().is_err(), "{knobs:?}");
        }
    }

    #[test]
    fn a_label_that_contradicts_itself_is_refused() {
        let good = KnobsConfig {
            fast_floor: 4096,
            fast_ceiling: 8192,
            ..KnobsConfig::default()
        };
        assert_eq!(good.check(), Ok(()));
        let pin = |offset, length| PinConfig {
            offset,
            length,
            tier: Fast,
        };
        let with = |pins: &[PinConfig]| KnobsConfig {
            pins: pins.to_vec(),
            ..good.clone()
        };
        let unit = EXTENT as u64;
        for wrong in [
            KnobsConfig {
                fast_floor: 12_288,
                ..good.clone()
            },
            KnobsConfig {
                write_budget: 1,
                ..good.clone()
            },
            with(&[pin(1, unit)]),
            with(&[pin(0, 5)]),
            with(&[pin(0, 0), pin(unit, unit)]),
            with(&[pin(2 * unit, unit), pin(0, unit)]),
            with(&[pin(unit, u64::MAX - unit + 1)]),
            with(&[pin(u64::MAX - unit + 1, unit)]),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
