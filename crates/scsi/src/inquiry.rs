//! INQUIRY (SPC-4 6.6) and the vital product data pages (SPC-4 7.8, SBC-3 6.5).

use crate::blocks::TRANSFER_MAX;
use crate::copy;
use crate::execute::{Answer, Call};
use crate::fields::{put, put_text, u16_at};
use crate::nexus::Nexus;
use crate::port_groups;
use crate::provision::{SAME_BLOCKS_MAX, UNMAP_BLOCKS_MAX, UNMAP_DESCRIPTORS_MAX};
use crate::sense::Sense;
use crate::transfer::ATOMIC;

const VENDOR: &str = "CONVECT";
const PRODUCT: &str = "VOLUME";
const REVISION: &str = "1";
/// Most blocks of one COMPARE AND WRITE.
const COMPARE_BLOCKS_MAX: u8 = 255;
/// Optimal size, in bytes.
const OPTIMAL: u64 = 1 << 20;
/// Standards that are followed: SAM-5, SPC-4, SBC-3, iSCSI (SPC-4 table 148).
const STANDARDS: [u16; 4] = [0x00a0, 0x0460, 0x04c0, 0x0960];

/// One vital product data page.
struct Page {
    code: u8,
    body: fn(&Nexus) -> Vec<u8>,
}

/// In ascending order (SPC-4 7.8.13).
const PAGES: &[Page] = &[
    Page {
        code: 0x00,
        body: |_| PAGES.iter().map(|page| page.code).collect(),
    },
    Page {
        code: 0x80,
        body: |nexus| nexus.unit.identity.serial.clone().into_bytes(),
    },
    Page {
        code: 0x83,
        body: identification,
    },
    Page {
        code: 0x86,
        body: extended,
    },
    Page {
        code: 0x8f,
        body: copy::page,
    },
    Page {
        code: 0xb0,
        body: limits,
    },
    Page {
        code: 0xb1,
        body: characteristics,
    },
    Page {
        code: 0xb2,
        body: provisioning,
    },
    Page {
        code: 0xb3,
        body: port_groups::referrals_page,
    },
];

pub(crate) fn inquiry(call: &Call<'_>) -> Answer {
    let allocation = usize::from(u16_at(call.cdb, 3));
    let code = call.cdb[2];
    if call.cdb[1] & 0x01 == 0 {
        if code != 0 {
            return Err(Sense::INVALID_FIELD_IN_CDB.into());
        }
        return Ok(call.give_cut(standard(), allocation));
    }
    let page = PAGES.iter().find(|page| page.code == code);
    let page = page.ok_or(Sense::INVALID_FIELD_IN_CDB)?;
    let body = (page.body)(call.nexus);
    let mut data = vec![0, code];
    data.extend((body.len() as u16).to_be_bytes());
    data.extend(body);
    Ok(call.give_cut(data, allocation))
}

/// The response for a missing unit (SPC-4 table 152: no unit can be here).
pub(crate) fn absent() -> Vec<u8> {
    let mut data = standard();
    data[0] = 0x7f;
    // It has no ports, no commands and copies nothing.
    data[5..8].fill(0);
    data
}

fn standard() -> Vec<u8> {
    let mut data = vec![0; 96];
    // A disk that is there; SPC-4; hierarchical addressing, response format 2.
    data[2] = 0x06;
    data[3] = 0x12;
    data[4] = 91;
    // Access of target port groups, implicit and explicit, third-party copy; several ports; command queues.
    data[5] = 0x30 | 0x08;
    data[6] = 0x10;
    data[7] = 0x02;
    put_text(&mut data[8..16], VENDOR);
    put_text(&mut data[16..32], PRODUCT);
    put_text(&mut data[32..36], REVISION);
    for (index, standard) in STANDARDS.iter().enumerate() {
        put(&mut data, 58 + 2 * index, &standard.to_be_bytes());
    }
    data
}

/// A designation descriptor (SPC-4 7.8.6.1).
fn designator(code_set: u8, association: u8, kind: u8, value: &[u8]) -> Vec<u8> {
    // Designators of a port or the device include the protocol: iSCSI.
    let about_port = association != 0;
    let mut entry = vec![
        code_set | if about_port { 0x50 } else { 0 },
        if about_port { 0x80 } else { 0 } | association << 4 | kind,
        0,
        value.len() as u8,
    ];
    entry.extend(value);
    entry
}

/// A SCSI name string: filled up with zeroes to a multiple of four, one at least.
fn name_string(name: &str) -> Vec<u8> {
    let mut name = name.as_bytes().to_vec();
    name.push(0);
    name.resize(name.len().next_multiple_of(4), 0);
    name
}

fn identification(nexus: &Nexus) -> Vec<u8> {
    let identity = &nexus.unit.identity;
    let ports = &nexus.member.ports;
    let mut vendor = vec![0; 8];
    put_text(&mut vendor, VENDOR);
    vendor.extend(identity.serial.as_bytes());
    let group = [&[0, 0][..], &ports.target_port.to_be_bytes()].concat();
    let port_name = format!("{},t,0x{:04x}", ports.target, ports.target_port);
    [
        designator(1, 0, 3, &identity.naa()),
        designator(1, 0, 2, &identity.eui()),
        designator(2, 0, 1, &vendor),
        designator(1, 1, 4, &group),
        designator(1, 1, 5, &group),
        designator(3, 1, 8, &name_string(&port_name)),
        designator(3, 2, 8, &name_string(&ports.target)),
    ]
    .concat()
}

/// Extended INQUIRY data (SPC-4 7.8.7).
fn extended(_nexus: &Nexus) -> Vec<u8> {
    let mut body = vec![0; 60];
    // HEADSUP, ORDSUP, SIMPSUP; a volatile cache; unit attentions are cleared per nexus.
    body[1] = 0x07;
    body[2] = 0x01;
    body[3] = 0x01;
    // Referrals (R_SUP).
    body[4] = 0x10;
    body
}

/// Block limits (SBC-3 6.5.3, SBC-4 for what is atomic).
fn limits(nexus: &Nexus) -> Vec<u8> {
    let size = nexus.block_size();
    let count = |bytes: u64| ((bytes / size).max(1) as u32).to_be_bytes();
    let mut body = vec![0; 60];
    body[1] = COMPARE_BLOCKS_MAX;
    put(&mut body, 2, &count(ATOMIC)[2..]);
    put(&mut body, 4, &count(TRANSFER_MAX));
    put(&mut body, 8, &count(OPTIMAL));
    put(&mut body, 12, &count(OPTIMAL));
    put(&mut body, 16, &(UNMAP_BLOCKS_MAX as u32).to_be_bytes());
    put(&mut body, 20, &(UNMAP_DESCRIPTORS_MAX as u32).to_be_bytes());
    put(&mut body, 24, &count(ATOMIC));
    // Alignment 0 is valid.
    put(&mut body, 28, &0x8000_0000u32.to_be_bytes());
    put(&mut body, 32, &SAME_BLOCKS_MAX.to_be_bytes());
    // Atomic writes: within one block of the engine.
    put(&mut body, 40, &count(ATOMIC));
    put(&mut body, 44, &count(ATOMIC));
    put(&mut body, 48, &count(ATOMIC));
    body
}

/// Block device characteristics (SBC-3 6.5.2): it does not turn.
fn characteristics(_nexus: &Nexus) -> Vec<u8> {
    let mut body = vec![0; 60];
    put(&mut body, 0, &1u16.to_be_bytes());
    // What was erased by SANITIZE can be read (WABEREQ).
    body[3] = 0x40;
    body
}

/// Logical block provisioning (SBC-3 6.5.4): thin; UNMAP and both WRITE SAMEs give space back, and
/// unmapped blocks read as zeroes.
fn provisioning(nexus: &Nexus) -> Vec<u8> {
    vec![nexus.unit.set_exponent(), 0xe0 | 0x04, 0x02, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_in_order() {
        assert!(PAGES.windows(2).all(|pair| pair[0].code < pair[1].code));
    }

    #[test]
    fn designators_of_ports_name_the_protocol() {
        assert_eq!(designator(1, 0, 3, &[9]), [0x01, 0x03, 0, 1, 9]);
        assert_eq!(designator(3, 1, 8, &[9]), [0x53, 0x98, 0, 1, 9]);
        assert_eq!(name_string("abcd").len(), 8);
    }
}
