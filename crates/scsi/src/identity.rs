//! Names of a unit and its ports: stable across restart, move and failover, since all of it
//! follows from the volume's serial number and the target's name (SPC-4 7.8.6).

use std::fmt::Write;

/// No company number of the IEEE is ours: this one has the bit that marks it as local.
const COMPANY: [u8; 3] = [0x02, 0x43, 0x56];

/// Names of a logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The volume's serial number.
    pub serial: String,
    /// The ten bytes that the identifiers carry.
    id: [u8; 10],
}

impl Identity {
    /// The names of the volume with this serial number.
    pub fn new(serial: &str) -> Self {
        let hex = (serial.len() == 20).then(|| u128::from_str_radix(serial, 16).ok());
        let number = hex.flatten().unwrap_or_else(|| spread(serial));
        let mut id = [0; 10];
        id.copy_from_slice(&number.to_be_bytes()[6..]);
        Self {
            serial: serial.to_owned(),
            id,
        }
    }

    /// NAA IEEE Registered Extended: format 6, company, and ten bytes of ours.
    pub(crate) fn naa(&self) -> [u8; 16] {
        let mut naa = [0; 16];
        naa[0] = 0x60 | COMPANY[0] >> 4;
        naa[1] = COMPANY[0] << 4 | COMPANY[1] >> 4;
        naa[2] = COMPANY[1] << 4 | COMPANY[2] >> 4;
        naa[3] = COMPANY[2] << 4;
        naa[6..].copy_from_slice(&self.id);
        naa
    }

    /// EUI-64-based with an identifier extension.
    pub(crate) fn eui(&self) -> [u8; 16] {
        let mut eui = [0; 16];
        eui[..8].copy_from_slice(&self.id[2..]);
        eui[8..11].copy_from_slice(&COMPANY);
        eui[14..].copy_from_slice(&self.id[..2]);
        eui
    }

    /// The NAA as hosts show it: `naa.6024356...`.
    pub fn name(&self) -> String {
        let mut name = "naa.".to_owned();
        for byte in self.naa() {
            let _ = write!(name, "{byte:02x}");
        }
        name
    }
}

/// FNV-1a over 128 bits, for serial numbers that are not the engine's.
fn spread(text: &str) -> u128 {
    let step = |hash: u128, byte: u8| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    };
    text.bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_serial_is_within_the_identifiers_as_it_is() {
        let identity = Identity::new("0123456789ab0000000c");
        assert_eq!(identity.name(), "naa.6024356000000123456789ab0000000c");
        assert_eq!(identity.eui()[..8], [0x45, 0x67, 0x89, 0xab, 0, 0, 0, 0x0c]);
        assert_eq!(identity.eui()[8..], [2, 0x43, 0x56, 0, 0, 0, 0x01, 0x23]);
    }

    #[test]
    fn other_serials_give_other_identifiers() {
        assert_ne!(
            Identity::new("memory").naa(),
            Identity::new("memory2").naa()
        );
        assert_eq!(Identity::new("memory").naa()[0] >> 4, 6);
    }
}
