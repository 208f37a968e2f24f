//! Where a byte is on a disk: revolutions from the outer edge, by zones of one rate each.
//!
//! A disk of any size is given the whole stroke of its profile: a file of a few GiB stands for a
//! full disk, so that its seeks cost what a full disk's do.

/// Zones from the outer edge inwards.
const ZONES: usize = 16;

pub(super) struct Geometry {
    /// Bytes in a zone.
    zone_bytes: u64,
    /// Bytes a revolution, by zone.
    track_bytes: [f64; ZONES],
    /// Revolutions before each zone, and the number of all at the end.
    before: [f64; ZONES + 1],
}

impl Geometry {
    /// Lays `size` bytes over zones whose sustained rate falls evenly from `outer` to `inner`
    /// (bytes per second) at `revolution_ns` a revolution.
    pub(super) fn new(size: u64, outer: u64, inner: u64, revolution_ns: u64) -> Self {
        let zone_bytes = size.div_ceil(ZONES as u64).max(1);
        let mut geometry = Self {
            zone_bytes,
            track_bytes: [0.0; ZONES],
            before: [0.0; ZONES + 1],
        };
        for zone in 0..ZONES {
            let share = zone as f64 / (ZONES - 1) as f64;
            let rate = outer as f64 + (inner as f64 - outer as f64) * share;
            geometry.track_bytes[zone] = rate * revolution_ns as f64 / 1e9;
            geometry.before[zone + 1] =
                geometry.before[zone] + zone_bytes as f64 / geometry.track_bytes[zone];
        }
        geometry
    }

    /// Revolutions needed to read from the first byte to `offset`. The whole part is the
    /// track, the rest the angle.
    pub(super) fn revolutions(&self, offset: u64) -> f64 {
        let zone = ((offset / self.zone_bytes) as usize).min(ZONES - 1);
        let within = offset - zone as u64 * self.zone_bytes;
        self.before[zone] + within as f64 / self.track_bytes[zone]
    }

    /// The byte that lies `revolutions` from the first.
    pub(super) fn offset(&self, revolutions: f64) -> u64 {
        let zone = self.before[1..ZONES]
            .iter()
            .take_while(|before| **before <= revolutions)
            .count();
        let within = (revolutions - self.before[zone]).max(0.0) * self.track_bytes[zone];
        zone as u64 * self.zone_bytes + within as u64
    }

    /// Distance between two places as a share of the whole stroke.
    pub(super) fn stroke(&self, from: f64, to: f64) -> f64 {
        (to - from).abs() / self.before[ZONES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 40;

    #[test]
    fn revolutions_and_offsets_are_inverse() {
        let geometry = Geometry::new(SIZE, 200_000_000, 100_000_000, 8_333_333);
        for offset in [0, 1 << 20, SIZE / 16, SIZE / 3, SIZE - 4096] {
            let back = geometry.offset(geometry.revolutions(offset));
            assert!(back.abs_diff(offset) <= 1, "{offset} came back as {back}");
        }
    }

    #[test]
    fn the_outer_tracks_are_longer() {
        let geometry = Geometry::new(SIZE, 200_000_000, 100_000_000, 8_333_333);
        let mib = 1 << 20;
        let outer = geometry.revolutions(mib) - geometry.revolutions(0);
        let inner = geometry.revolutions(SIZE) - geometry.revolutions(SIZE - mib);
        assert!((inner / outer - 2.0).abs() < 0.01, "{inner} / {outer}");
    }
}
