//! Tokens that stand for data of a unit (ROD tokens, SPC-4 5.17.6): made by POPULATE TOKEN, taken by
//! WRITE USING TOKEN, in whatever session of the same initiator.
//!
//! A token is of the type "point in time copy, change vulnerable": it ends when what it stands for is
//! written, when the nexus that made it ends, after its time, or when its nexus has made too many. It
//! carries 256 random bits. Writes through other front ends do not invalidate tokens.

use crate::nexus::{Member, Nexus};
use crate::sense::Sense;
use crate::unit::{Unit, lock};
use block::BlockDevice;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Length of a token, and of what follows its first eight bytes.
pub(crate) const TOKEN_LEN: usize = 512;
const REST_LEN: u16 = 504;
/// Types (SPC-4 table 110; SBC-3 for zeroes).
pub(super) const CHANGE_VULNERABLE: u32 = 0x0080_0001;
pub(super) const ZEROES: u32 = 0xffff_0001;
/// Lifetime of an unused token, in seconds: default and maximum.
pub(super) const TIMEOUT_S: u32 = 30;
pub(super) const TIMEOUT_MAX_S: u32 = 300;
/// Tokens of one nexus, and of all.
const PER_NEXUS: usize = 16;
const TOKENS_MAX: usize = 4096;

/// A token, and what it stands for.
pub(crate) struct Token {
    pub bytes: [u8; TOKEN_LEN],
    pub unit: Arc<Unit>,
    pub device: Arc<dyn BlockDevice>,
    /// Its creator.
    member: Weak<Member>,
    pub ranges: Vec<Range<u64>>,
    /// Nothing of it was written since.
    valid: AtomicBool,
    timeout: Duration,
    expires: Mutex<Instant>,
}

impl Token {
    /// Whether it still stands for what it was made for.
    pub(crate) fn is_valid(&self) -> bool {
        self.valid.load(Ordering::Acquire)
    }

    fn overlaps(&self, range: &Range<u64>) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|own| own.start < range.end && range.start < own.end)
    }

    fn is_over(&self, now: Instant) -> bool {
        !self.is_valid() || self.member.strong_count() == 0 || *lock(&self.expires) <= now
    }

    /// Its creator, while it is valid for this initiator. Each use restarts its timeout.
    pub(crate) fn maker(&self, initiator: &str, now: Instant) -> Option<Arc<Member>> {
        let name = |port: &str| port.split(',').next().unwrap_or_default().to_owned();
        let member = self.member.upgrade().filter(|_| !self.is_over(now))?;
        if name(&member.ports.initiator) != name(initiator) {
            return None;
        }
        *lock(&self.expires) = now + self.timeout;
        Some(member)
    }
}

/// All tokens of this process, by their numbers.
static TOKENS: Mutex<BTreeMap<u64, Arc<Token>>> = Mutex::new(BTreeMap::new());

/// The tokens of one unit, for who writes to it.
#[derive(Default)]
pub(crate) struct UnitTokens {
    tokens: Mutex<Vec<Weak<Token>>>,
    /// There are some: without, a write looks no further.
    any: AtomicBool,
}

impl UnitTokens {
    /// Ends the tokens that stand for a part of what is about to be written.
    pub(crate) fn written(&self, range: &Range<u64>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut tokens = lock(&self.tokens);
        tokens.retain(|token| {
            let Some(token) = token.upgrade() else {
                return false;
            };
            let ends = token.overlaps(range);
            if ends {
                token.valid.store(false, Ordering::Release);
            }
            !ends
        });
        self.any.store(!tokens.is_empty(), Ordering::Release);
    }
}

fn encode(number: u64, unit: &Unit, bytes: u64) -> std::io::Result<[u8; TOKEN_LEN]> {
    let mut token = [0; TOKEN_LEN];
    let mut put = |at: usize, value: &[u8]| token[at..at + value.len()].copy_from_slice(value);
    put(0, &CHANGE_VULNERABLE.to_be_bytes());
    put(6, &REST_LEN.to_be_bytes());
    put(8, &number.to_be_bytes());
    // The unit that made it, as an identification descriptor.
    put(16, &[0xe4, 0, 0, 0, 0x01, 0x03, 0, 16]);
    put(24, &unit.identity.naa());
    put(48, &u128::from(bytes).to_be_bytes());
    for at in [128, 144] {
        put(at, &reactor::control::entropy()?.to_be_bytes());
    }
    Ok(token)
}

/// Creates a token for ranges of a unit, in bytes, whose locks the caller holds.
pub(super) fn make(
    nexus: &Nexus,
    ranges: Vec<Range<u64>>,
    timeout_s: u32,
) -> Result<Arc<Token>, Sense> {
    let now = Instant::now();
    let failed = |_| Sense::TARGET_FAILURE;
    let number = reactor::control::entropy().map_err(failed)? as u64;
    let len = ranges.iter().map(|range| range.end - range.start).sum();
    let timeout = Duration::from_secs(u64::from(timeout_s));
    let token = Arc::new(Token {
        bytes: encode(number, &nexus.unit, len).map_err(failed)?,
        unit: nexus.unit.clone(),
        device: nexus.device.clone(),
        member: Arc::downgrade(&nexus.member),
        ranges,
        valid: AtomicBool::new(true),
        timeout,
        expires: Mutex::new(now + timeout),
    });
    let mut tokens = lock(&TOKENS);
    tokens.retain(|_, known| !known.is_over(now));
    let of_nexus = |known: &Arc<Token>| known.member.ptr_eq(&token.member);
    let expires = |known: &Arc<Token>| *lock(&known.expires);
    if tokens.values().filter(|known| of_nexus(known)).count() >= PER_NEXUS {
        let own = tokens.iter().filter(|(_, known)| of_nexus(known));
        let oldest = own.min_by_key(|(_, known)| expires(known));
        if let Some(number) = oldest.map(|(number, _)| *number) {
            tokens.remove(&number);
        }
    }
    if tokens.len() >= TOKENS_MAX {
        return Err(Sense::NO_RESOURCES);
    }
    tokens.insert(number, token.clone());
    drop(tokens);
    let known = &nexus.unit.tokens;
    let mut of_unit = lock(&known.tokens);
    of_unit.retain(|token| token.strong_count() > 0);
    of_unit.push(Arc::downgrade(&token));
    known.any.store(true, Ordering::Release);
    Ok(token)
}

/// The token that these bytes are.
pub(super) fn find(bytes: &[u8]) -> Option<Arc<Token>> {
    let number = u64::from_be_bytes(bytes.get(8..16)?.try_into().ok()?);
    let token = lock(&TOKENS).get(&number).cloned()?;
    let differ = token.bytes.iter().zip(bytes);
    let differ = differ.fold(0, |differ, (left, right)| differ | (left ^ right));
    (bytes.len() == TOKEN_LEN && differ == 0).then_some(token)
}

/// Ends a token that is needed no more.
pub(super) fn forget(token: &Token) {
    token.valid.store(false, Ordering::Release);
    let now = Instant::now();
    lock(&TOKENS).retain(|_, known| !known.is_over(now));
}

/// Whether these bytes are the token of zeroes, which is the same everywhere.
pub(super) fn is_zeroes(bytes: &[u8]) -> bool {
    bytes.len() == TOKEN_LEN
        && bytes[..4] == ZEROES.to_be_bytes()
        && bytes[6..8] == REST_LEN.to_be_bytes()
        && bytes[8..].iter().all(|byte| *byte == 0)
}
