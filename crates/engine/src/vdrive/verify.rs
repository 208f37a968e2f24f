//! Reading every copy of a range, for the scrub and for recovery: a mirror's members are all examined.

use super::device::{Check, VdriveIo};
use super::{Member, Purpose};
use block::{DmaBuf, DriveError};
use format::Fragment;
use futures_util::future::join_all;
use smallvec::smallvec;
use std::future::poll_fn;
use std::task::Poll;
use units::BLOCK;

/// Blocks checked before other tasks have their turn.
const STRIDE: usize = 16;

/// Attempts of reading a block where its presence has to be known.
pub(super) const TRIES: usize = 3;

/// Whether a block is where it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It is, on some member.
    Right,
    /// Something else is, on every member that can be read.
    Wrong,
    /// No member can be read: unknown.
    Unreadable,
}

/// A copy of a block that is not what it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadCopy {
    /// The block, counted from the first of the range.
    pub index: usize,
    /// The part of the vdrive that has it.
    pub part: usize,
    /// Its fault.
    pub error: DriveError,
    /// It was written again from another member.
    pub mended: bool,
}

/// Findings in a range.
#[derive(Default, Debug)]
pub struct Verified {
    /// Bytes read from drives.
    pub bytes: u64,
    /// Copies that are not right.
    pub bad: Vec<BadCopy>,
}

async fn give_way() {
    let mut first = true;
    poll_fn(|context| {
        if std::mem::take(&mut first) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// One member's copy of a fragment and what is wrong with its blocks.
struct Copied {
    part: usize,
    /// None when it had to be read block by block.
    whole: Option<DmaBuf>,
    bad: Vec<(usize, DriveError)>,
}

impl VdriveIo {
    /// Which of `count` blocks from `block` on are present, by index: those with an intact copy. Members of
    /// a mirror that differ are made the same.
    pub async fn right_blocks(&self, block: u64, count: usize, check: Check<'_>) -> Vec<Presence> {
        let right = self.right_at_once(block, count, check).await;
        let mut all = Vec::with_capacity(count);
        for (index, right) in right.into_iter().enumerate() {
            let alone = |_: usize, bytes: &[u8]| check(index, bytes);
            all.push(match right {
                true => Presence::Right,
                false => self.presence(block + index as u64, &alone).await,
            });
        }
        all
    }

    /// Whether a block is there, on any member; the others then get it. A block that cannot be read is tried again.
    pub async fn presence(&self, block: u64, check: Check<'_>) -> Presence {
        for _ in 0..TRIES {
            match self.read_every_member(block, check).await {
                Ok(_) => return Presence::Right,
                Err(DriveError::Checksum | DriveError::Bounds) => return Presence::Wrong,
                // Its deadline was long enough.
                Err(DriveError::Timeout) => break,
                Err(_) => {}
            }
        }
        Presence::Unreadable
    }

    /// Which blocks are right on every member, as one read of each tells. What cannot be read so is not.
    async fn right_at_once(&self, block: u64, count: usize, check: Check<'_>) -> Vec<bool> {
        let mut right = vec![true; count];
        let mut look = |buf: &DmaBuf| {
            for (index, (right, bytes)) in right.iter_mut().zip(buf.chunks_exact(BLOCK)).enumerate()
            {
                *right = *right && check(index, bytes);
            }
        };
        let none = vec![false; count];
        if self.check_bounds(block, count).is_err() {
            return none;
        }
        if !self.layout.is_mirror() {
            match self.read(block, count, &|_, _| true).await {
                Ok(buf) => look(&buf),
                Err(_) => return none,
            }
            return right;
        }
        let members = self.members_where(Member::is_in);
        for member in &members {
            let read = self.parts[*member].read(block, self.dma.get(count * BLOCK));
            match read.await {
                Ok(buf) => look(&buf),
                Err(_) => return none,
            }
        }
        if members.is_empty() { none } else { right }
    }

    /// Copies of each block that are read.
    pub fn copies(&self) -> usize {
        if !self.layout.is_mirror() {
            return 1;
        }
        self.members_where(Member::is_in).len()
    }

    /// Reads every copy of `count` blocks from `block` on and checks each; a mirror's bad copy is
    /// written again from a good one. Only a bad block that is still valid according to `counts` is reported
    /// and repaired: it may not be needed any longer.
    ///
    /// # Errors
    /// When a drive that is no mirror's member does not respond or is gone.
    pub async fn verify(
        &self,
        block: u64,
        count: usize,
        check: Check<'_>,
        counts: &dyn Fn(usize) -> bool,
    ) -> Result<Verified, DriveError> {
        self.check_bounds(block, count)?;
        let counting = (0..count).filter(|index| counts(*index));
        let _look = self
            .flights
            .look(counting.map(|index| block + index as u64));
        let mut found = Verified::default();
        let mut base = 0;
        for fragment in self.layout.fragments(block, count) {
            self.verify_fragment(fragment, base, (check, counts), &mut found)
                .await?;
            base += fragment.count;
        }
        Ok(found)
    }

    async fn verify_fragment(
        &self,
        fragment: Fragment,
        base: usize,
        (check, counts): (Check<'_>, &dyn Fn(usize) -> bool),
        found: &mut Verified,
    ) -> Result<(), DriveError> {
        let mirror = self.layout.is_mirror();
        let members = if mirror {
            self.members_where(Member::is_in)
        } else {
            smallvec![fragment.part]
        };
        let reads = members
            .iter()
            .map(|member| self.check_copy(*member, fragment, base, check));
        let mut copies = Vec::new();
        let mut failed = DriveError::Gone;
        for (member, copy) in members.iter().zip(join_all(reads).await) {
            found.bytes += (fragment.count * BLOCK) as u64;
            match copy {
                Ok(copy) => copies.push(copy),
                Err(error) => {
                    failed = error;
                    if mirror {
                        self.set_aside_silent(*member, error);
                    }
                }
            }
        }
        if copies.is_empty() {
            return Err(failed);
        }
        for index in 0..copies.len() {
            for (at, error) in copies[index].bad.clone() {
                if !counts(base + at) {
                    continue;
                }
                let part = copies[index].part;
                let mended = match self.good_copy(&copies, fragment, at, base, check).await {
                    Some(good) => self.mend(part, fragment.block + at as u64, good).await,
                    None => false,
                };
                found.bad.push(BadCopy {
                    index: base + at,
                    part,
                    error,
                    mended,
                });
            }
        }
        Ok(())
    }

    /// Parts, whether or not they are in.
    pub fn parts_count(&self) -> usize {
        self.parts.len()
    }

    /// The blocks of a range that are wrong on one member of a mirror; none when the member is out.
    ///
    /// # Errors
    /// When the member does not respond or is gone.
    pub async fn bad_on(
        &self,
        member: usize,
        block: u64,
        count: usize,
        check: Check<'_>,
    ) -> Result<Option<Vec<usize>>, DriveError> {
        if !self.parts[member].member.is_in() {
            return Ok(None);
        }
        let range = Fragment {
            part: member,
            block,
            count,
        };
        let copied = self.check_copy(member, range, 0, check).await?;
        Ok(Some(copied.bad.iter().map(|(at, _)| *at).collect()))
    }

    async fn check_copy(
        &self,
        member: usize,
        fragment: Fragment,
        base: usize,
        check: Check<'_>,
    ) -> Result<Copied, DriveError> {
        let part = &self.parts[member];
        let mut bad = Vec::new();
        let buf = self.dma.get(fragment.count * BLOCK);
        match part.read(fragment.block, buf).await {
            Ok(buf) => {
                for (at, bytes) in buf.chunks_exact(BLOCK).enumerate() {
                    if at % STRIDE == STRIDE - 1 {
                        give_way().await;
                    }
                    if !check(base + at, bytes) {
                        bad.push((at, DriveError::Checksum));
                    }
                }
                Ok(Copied {
                    part: member,
                    whole: Some(buf),
                    bad,
                })
            }
            Err(error @ (DriveError::Timeout | DriveError::Gone)) => Err(error),
            Err(_) => {
                // Some of it cannot be read: block by block tells which.
                for at in 0..fragment.count {
                    match part
                        .read(fragment.block + at as u64, self.dma.get(BLOCK))
                        .await
                    {
                        Ok(bytes) if check(base + at, &bytes) => {}
                        Ok(_) => bad.push((at, DriveError::Checksum)),
                        Err(error @ (DriveError::Timeout | DriveError::Gone)) => {
                            return Err(error);
                        }
                        Err(error) => bad.push((at, error)),
                    }
                }
                Ok(Copied {
                    part: member,
                    whole: None,
                    bad,
                })
            }
        }
    }

    async fn good_copy(
        &self,
        copies: &[Copied],
        fragment: Fragment,
        at: usize,
        base: usize,
        check: Check<'_>,
    ) -> Option<DmaBuf> {
        for copy in copies {
            if copy.bad.iter().any(|(bad, _)| *bad == at) {
                continue;
            }
            let good = match &copy.whole {
                Some(whole) => Ok(whole.slice(at * BLOCK, BLOCK)),
                None => {
                    let block = fragment.block + at as u64;
                    self.parts[copy.part].read(block, self.dma.get(BLOCK)).await
                }
            };
            if let Ok(good) = good.map(|good| check(base + at, &good).then_some(good)) {
                return good;
            }
        }
        None
    }

    /// Writes a member's block again, and reads it back: a medium may not take it.
    async fn mend(&self, member: usize, block: u64, good: DmaBuf) -> bool {
        let part = &self.parts[member];
        if !part.member.is_in() {
            return false;
        }
        self.check_mended(block, &good);
        if let Err(error) = part.write(block, good.clone(), Purpose::Upkeep).await {
            let _ = self.take_out(member, error);
            return false;
        }
        part.mended();
        let back = part.read(block, self.dma.get(BLOCK)).await;
        back.is_ok_and(|back| back[..] == good[..])
    }
}
