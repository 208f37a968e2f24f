//! MODE SENSE and MODE SELECT, in both lengths (SPC-4 6.11 to 6.14, 7.5; SBC-3 6.4).

use crate::attention::Attention;
use crate::execute::{Answer, Call};
use crate::fields::{put, u8_at, u16_at};
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::unit::{Switches, sets};
use std::sync::atomic::Ordering;

const RECOVERY: u8 = 0x01;
const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const EXCEPTIONS: u8 = 0x1c;
const ALL: u8 = 0x3f;
/// In the order in which all of them are returned.
const PAGES: [u8; 4] = [RECOVERY, CACHING, CONTROL, EXCEPTIONS];

/// Sub-page of logical block provisioning, of the page of exceptions (SBC-3 6.5.9), and all sub-pages.
const PROVISIONING: u8 = 0x02;
const ALL_SUB: u8 = 0xff;

const D_SENSE: u8 = 0x04;
const SWP: u8 = 0x08;

/// A page as it is, or the bits of it that can be changed.
fn page(nexus: &Nexus, code: u8, changeable: bool) -> Vec<u8> {
    let len = match code {
        CACHING => 18,
        _ => 10,
    };
    let mut page = vec![0; 2 + len];
    page[0] = code;
    page[1] = len as u8;
    match (code, changeable) {
        (CONTROL, true) => {
            page[2] = D_SENSE;
            page[4] = SWP;
        }
        (CONTROL, false) => {
            let switches = &nexus.unit.switches;
            // A task set for each nexus; commands in any order.
            page[2] = 0x20;
            page[3] = 0x10;
            if Switches::get(&switches.descriptor_sense) {
                page[2] |= D_SENSE;
            }
            if Switches::get(&switches.write_protect) {
                page[4] |= SWP;
            }
            put(&mut page, 8, &[0xff, 0xff]);
        }
        // The write cache is on, always.
        (CACHING, false) => page[2] = 0x04,
        // Automatic reallocation, of writes and of reads.
        (RECOVERY, false) => page[2] = 0xc0,
        _ => {}
    }
    page
}

/// The soft threshold at which hosts are warned that the pool fills; it is the pool's, and none can change it.
fn provisioning(nexus: &Nexus, changeable: bool) -> Vec<u8> {
    let warn_at = nexus.unit.space().and_then(|space| space.warn_at);
    let mut page = vec![0; 16];
    page[0] = 0x40 | EXCEPTIONS;
    page[1] = PROVISIONING;
    if let Some(warn_at) = warn_at {
        // Enabled, soft, armed while the count of what is used (2) grows.
        let mut descriptor = [0x81, 0x02, 0, 0, 0, 0, 0, 0];
        put(&mut descriptor, 4, &sets(warn_at).to_be_bytes());
        page.extend(if changeable { [0; 8] } else { descriptor });
    }
    let len = page.len() as u16 - 4;
    put(&mut page, 2, &len.to_be_bytes());
    page
}

fn block_descriptor(nexus: &Nexus, long: bool) -> Vec<u8> {
    let size = nexus.block_size();
    let count = nexus.unit.size() / size;
    if long {
        let mut descriptor = count.to_be_bytes().to_vec();
        descriptor.extend([0; 4]);
        descriptor.extend((size as u32).to_be_bytes());
        return descriptor;
    }
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let mut descriptor = count.to_be_bytes().to_vec();
    descriptor.extend((size as u32).to_be_bytes());
    descriptor[4] = 0;
    descriptor
}

pub(crate) fn sense(call: &Call<'_>) -> Answer {
    let cdb = call.cdb;
    let is_long = cdb[0] == 0x5a;
    let (wanted, sub_page) = (cdb[2] & 0x3f, cdb[3]);
    let allocation = match is_long {
        true => usize::from(u16_at(cdb, 7)),
        false => usize::from(cdb[4]),
    };
    let changeable = match cdb[2] >> 6 {
        0 | 2 => false,
        1 => true,
        _ => return Err(Sense::SAVING_NOT_SUPPORTED.into()),
    };
    let all = wanted == ALL;
    let has_sub = all || wanted == EXCEPTIONS;
    let is_known = match sub_page {
        0 => all || PAGES.contains(&wanted),
        PROVISIONING => wanted == EXCEPTIONS,
        ALL_SUB => has_sub,
        _ => false,
    };
    if !is_known {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let nexus = call.nexus;
    let descriptor = match cdb[1] & 0x08 {
        0 => block_descriptor(nexus, is_long && cdb[1] & 0x10 != 0),
        _ => Vec::new(),
    };
    let protected = nexus.check_writable().is_err();
    // DPOFUA, and WP.
    let parameter = 0x10 | if protected { 0x80 } else { 0 };
    let mut data = match is_long {
        true => {
            let long_blocks = u8::from(descriptor.len() == 16);
            vec![
                0,
                0,
                0,
                parameter,
                long_blocks,
                0,
                0,
                descriptor.len() as u8,
            ]
        }
        false => vec![0, 0, parameter, descriptor.len() as u8],
    };
    data.extend(descriptor);
    for code in PAGES {
        if (all || code == wanted) && sub_page != PROVISIONING {
            data.extend(page(nexus, code, changeable));
        }
    }
    if sub_page != 0 {
        data.extend(provisioning(nexus, changeable));
    }
    match is_long {
        true => {
            let len = data.len() as u16 - 2;
            put(&mut data, 0, &len.to_be_bytes());
        }
        false => data[0] = data.len() as u8 - 1,
    }
    Ok(call.give_cut(data, allocation))
}

/// The pages of a parameter list.
fn pages_of<'a>(call: &'a Call<'_>) -> Result<&'a [u8], Sense> {
    let is_long = call.cdb[0] == 0x55;
    let (len, head) = match is_long {
        true => (usize::from(u16_at(call.cdb, 7)), 8),
        false => (usize::from(call.cdb[4]), 4),
    };
    let list = call.data.as_bytes().unwrap_or(&[]);
    let list = &list[..len.min(list.len())];
    if list.is_empty() {
        return Ok(list);
    }
    if list.len() < head {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let descriptors = match is_long {
        true => usize::from(u16_at(list, 6)),
        false => usize::from(list[3]),
    };
    let pages = list
        .get(head + descriptors..)
        .ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    if descriptors >= 8 {
        check_descriptor(call.nexus, &list[head..head + descriptors])?;
    }
    Ok(pages)
}

/// The block descriptor cannot be changed: only the present one, or zeroes, is accepted.
fn check_descriptor(nexus: &Nexus, descriptor: &[u8]) -> Result<(), Sense> {
    let at = if descriptor.len() == 16 { 12 } else { 4 };
    let size = u64::from(crate::fields::u32_at(descriptor, at) & 0x00ff_ffff);
    if size != 0 && size != nexus.block_size() {
        return Err(Sense::INVALID_FIELD_IN_LIST);
    }
    Ok(())
}

pub(crate) fn select(call: &Call<'_>) -> Answer {
    // Pages in the form of the standard only (PF); nothing is saved (SP).
    if call.cdb[1] & 0x11 != 0x10 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let mut rest = pages_of(call)?;
    let nexus = call.nexus;
    let mut control = None;
    while !rest.is_empty() {
        let (code, len) = (rest[0] & 0x3f, 2 + usize::from(u8_at(rest, 1)));
        let sub_page = rest[0] & 0x40 != 0;
        if rest.len() < len {
            return Err(Sense::PARAMETER_LIST_LENGTH.into());
        }
        let now = match PAGES.contains(&code) && !sub_page {
            true => page(nexus, code, false),
            false => return Err(Sense::INVALID_FIELD_IN_LIST.into()),
        };
        let may_change = page(nexus, code, true);
        let wanted = &rest[..len];
        let is_allowed = |index: usize, byte: u8| (byte ^ now[index]) & !may_change[index] == 0;
        // The first byte has PS, which means nothing here.
        let pairs = wanted.iter().enumerate().skip(2);
        if len != now.len() || !pairs.clone().all(|(index, byte)| is_allowed(index, *byte)) {
            return Err(Sense::INVALID_FIELD_IN_LIST.into());
        }
        if code == CONTROL {
            control = Some((wanted[2] & D_SENSE != 0, wanted[4] & SWP != 0));
        }
        rest = &rest[len..];
    }
    if let Some((descriptor, protect)) = control {
        change_control(nexus, descriptor, protect);
    }
    Ok(call.took(call.data.len() as u64))
}

fn change_control(nexus: &Nexus, descriptor: bool, protect: bool) {
    let switches = &nexus.unit.switches;
    let before = switches.descriptor_sense.swap(descriptor, Ordering::AcqRel);
    let was_protected = switches.write_protect.swap(protect, Ordering::AcqRel);
    if (before, was_protected) != (descriptor, protect) {
        let own = nexus.member.number;
        let unit = &nexus.unit;
        unit.tell(Attention::ModeChanged, |member| member.number != own);
    }
}
