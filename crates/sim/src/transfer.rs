//! Snapshots that are sent and received in a run, within one pool and under load: in parts, with power
//! cuts and broken lines at any time in between, as `daemon` does it.

use crate::client::{Answers, USUAL};
use crate::content::SECTOR;
use crate::diff::LIMITS;
use crate::oracle::{Copying, Volume, Wrong};
use crate::run::{POOL, Run, Step};
use block::{BlockDevice, IoBuf, Op, OpFlags, OpKind};
use engine::{ChangedRange, ErrorCode, ReceiveSpec, SnapshotStatus};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use stream::{Begin, Decoder, Encoder, Record, Token};
use units::{BLOCK, PoolId, SnapshotId};

/// Bytes that are read and written together, at most.
const PIECE: u64 = 64 * BLOCK as u64;
/// Volumes up to which one more is made by receiving it.
const VOLUMES: usize = 5;
/// Retries of one after a lack of space, before it is abandoned.
const TRIES: u64 = 4;

/// What is being sent, and where it goes.
pub struct Transfer {
    /// The snapshot, and the one that it is compared with: the oracle's numbers.
    to: u32,
    from: Option<u32>,
    /// What the volume that receives has of that one, by number.
    base: Option<u32>,
    begin: Begin,
    /// The volume that receives, its name and number.
    volume: (String, u32),
    /// The stream, unless it is interrupted.
    line: Option<Line>,
    tries: u64,
}

/// A stream that is not interrupted.
struct Line {
    source: Arc<dyn BlockDevice>,
    target: Arc<dyn BlockDevice>,
    encoder: Option<Encoder>,
    decoder: Decoder,
    ranges: VecDeque<ChangedRange>,
    next: Option<u64>,
    read: u64,
}

/// How a part ended.
#[derive(PartialEq, Eq)]
enum Part {
    More,
    Whole,
    /// A write had no space.
    Full,
    /// The power went.
    Cut,
}

impl Transfer {
    /// Whether a snapshot is needed for it.
    pub fn needs(&self, snapshot: u32) -> bool {
        self.to == snapshot || self.from == Some(snapshot)
    }

    /// The life has ended, and the stream with it.
    pub fn interrupt(&mut self) {
        self.line = None;
    }
}

fn identity(known: &SnapshotStatus) -> Result<SnapshotId, Wrong> {
    let id = known.identity.parse();
    id.map_err(|_| Wrong(format!("{} is no identity", known.identity)))
}

fn sectors(offset: u64, len: u64) -> Range<u64> {
    offset / SECTOR as u64..(offset + len) / SECTOR as u64
}

impl Run {
    /// A snapshot begins to be sent, or goes on a little.
    pub fn transfer(&mut self) -> Step {
        if self.watch.alone || self.is_excused() {
            return Ok(());
        }
        let transfer = match self.transfer.take() {
            Some(transfer) => Some(transfer),
            None => self.begin_transfer()?,
        };
        let Some(mut transfer) = transfer else {
            return Ok(());
        };
        if transfer.line.is_none() {
            self.connect(&mut transfer)?;
        }
        for _ in 0..self.random.within(1..=24) {
            self.load_for(1..=60, USUAL)?;
            match self.part(&mut transfer)? {
                Part::More if self.random.one_in(8) => self.mark(&mut transfer)?,
                Part::More => {}
                Part::Cut => {
                    self.transfer = Some(transfer);
                    return self.end_life();
                }
                Part::Whole => return self.end_transfer(transfer),
                Part::Full => {
                    transfer.line = None;
                    transfer.tries += 1;
                    if transfer.tries > TRIES {
                        return self.give_up(&transfer);
                    }
                    break;
                }
            }
        }
        // The line breaks: what came is kept.
        if transfer.line.is_some() && self.random.one_in(4) {
            self.mark(&mut transfer)?;
            transfer.line = None;
        }
        self.transfer = Some(transfer);
        Ok(())
    }

    /// A snapshot, the one that it is based on that some volume received, and what that volume has of it.
    fn pairs(&self) -> Vec<(u32, u32, u32)> {
        let oracle = self.client.oracle.borrow();
        let mut pairs = Vec::new();
        for (from, base) in &self.received {
            let Some((target, _)) = oracle
                .volumes
                .get(base)
                .and_then(|known| known.snapshot.clone())
            else {
                continue;
            };
            if !oracle.bases(target).contains(base) {
                continue;
            }
            for to in &self.snapshots {
                let known = oracle.volumes[to].snapshot.as_ref();
                let named = |(_, name): &(u32, String)| oracle.snapshot_of(target, name).is_some();
                let has = self
                    .received
                    .iter()
                    .any(|(of, there)| of == to && oracle.bases(target).contains(there));
                if !has && !known.is_none_or(named) && oracle.bases(*to).contains(from) {
                    pairs.push((*to, *from, *base));
                }
            }
        }
        pairs
    }

    fn begin_transfer(&mut self) -> Result<Option<Transfer>, Wrong> {
        if self.snapshots.is_empty() {
            return Ok(None);
        }
        let pairs = self.pairs();
        let (to, from, base) = match pairs.is_empty() || self.random.one_in(4) {
            false => {
                let (to, from, base) = *self.random.pick(&pairs);
                (to, Some(from), Some(base))
            }
            true if self.volumes.len() < VOLUMES => {
                (*self.random.pick(&self.snapshots), None, None)
            }
            true => return Ok(None),
        };
        let Some(begin) = self.describe(to, from)? else {
            return Ok(None);
        };
        // From here on it is known what it holds.
        self.read_snapshot(to)?;
        let spec = spec_of(&begin, 0);
        let volume = match base {
            None => self.make_target(to, &spec)?,
            Some(base) => self.take_target(base, &spec)?,
        };
        let Some(volume) = volume else {
            return Ok(None);
        };
        self.client.oracle.borrow_mut().copying = Some(Copying {
            volume: volume.1,
            of: to,
            name: begin.snapshot.clone(),
            done: (0, 0),
        });
        self.reopen(volume.1)?;
        Ok(Some(Transfer {
            to,
            from,
            base,
            begin,
            volume,
            line: None,
            tries: 0,
        }))
    }

    /// What a stream begins with.
    fn describe(&mut self, to: u32, from: Option<u32>) -> Result<Option<Begin>, Wrong> {
        let listed = self.engine().snapshot_list(POOL, None);
        let volumes = self.engine().volume_list(POOL);
        let refused = |failed| Wrong(format!("the pool does not tell of itself: {failed}"));
        let (listed, volumes) = (listed.map_err(refused)?, volumes.map_err(refused)?);
        let find = |number: u32| {
            let name = self.name_of(number)?;
            let mut all = listed.iter();
            all.find(|known| format!("{}@{}", known.volume, known.name) == name)
        };
        let Some(known) = find(to) else {
            return Err(Wrong(format!("snapshot {to} is not listed")));
        };
        let from = from.and_then(find).map(identity).transpose()?;
        let lba_size = volumes.iter().find(|volume| volume.name == known.volume);
        Ok(Some(Begin {
            pool: PoolId(0),
            to: identity(known)?,
            from,
            size: known.size,
            start: 0,
            lba_size: lba_size.map_or(512, |volume| volume.lba_size),
            volume: known.volume.clone(),
            snapshot: known.name.clone(),
        }))
    }

    /// A volume is made that receives all of a snapshot.
    fn make_target(&mut self, to: u32, spec: &ReceiveSpec) -> Result<Option<(String, u32)>, Wrong> {
        self.named += 1;
        let name = format!("r{}", self.named);
        let begun = self.engine().receive_begin(POOL, &name, spec, false);
        if self.granted("it is not received", begun)? != Some(0) {
            return Err(Wrong(format!(
                "{name} has something before it has anything"
            )));
        }
        let listed = self.engine().volume_list(POOL).unwrap_or_default();
        let Some(number) = listed.iter().find(|known| known.name == name) else {
            return Err(Wrong(format!("{name} is not listed")));
        };
        let mut oracle = self.client.oracle.borrow_mut();
        let made = Volume::of(oracle.fill(to), spec.size);
        oracle.volumes.insert(number.id, made);
        self.volumes.push((name.clone(), number.id));
        Ok(Some((name, number.id)))
    }

    /// A volume that is based on its snapshot `base` is to become a later one; what was written to it
    /// since is lost, or forbids that.
    fn take_target(
        &mut self,
        base: u32,
        spec: &ReceiveSpec,
    ) -> Result<Option<(String, u32)>, Wrong> {
        self.read_snapshot(base)?;
        let of = self.client.oracle.borrow().volumes[&base].snapshot.clone();
        let found = of.and_then(|of| self.volumes.iter().find(|known| known.1 == of.0));
        let Some((name, number)) = found.cloned() else {
            return Ok(None);
        };
        if self.plan.rich && self.random.one_in(3) {
            // No snapshot beneath it is what the stream starts from.
            let other = ReceiveSpec {
                from: spec.from.map(|from| SnapshotId {
                    created_s: from.created_s + 1,
                    ..from
                }),
                ..spec.clone()
            };
            let forced = self.random.one_in(2);
            let begun = self.engine().receive_begin(POOL, &name, &other, forced);
            if begun.is_ok() {
                return Err(Wrong(format!("{name} receives what it does not stand on")));
            }
        }
        self.client.remove(number);
        let size = self.client.oracle.borrow().volumes[&number].size;
        // A volume that is not forced may be refused, and has to have its size then.
        let force = spec.size < size || self.random.one_in(2);
        if force {
            let mut oracle = self.client.oracle.borrow_mut();
            oracle.roll_back_begins(number, base);
            oracle.cut(number, spec.size);
        }
        let begun = self.engine().receive_begin(POOL, &name, spec, force);
        if !force
            && begun
                .as_ref()
                .is_err_and(|failed| failed.code == ErrorCode::Refused)
        {
            self.reopen(number)?;
            let oracle = self.client.oracle.borrow();
            let taken = oracle.volumes[&base].taken;
            let mut changed = oracle.volumes[&number].changed.values();
            return match changed.any(|at| *at > taken) || size != oracle.volumes[&base].size {
                true => Ok(None),
                false => Err(Wrong(format!("nobody wrote to {name}, and it is refused"))),
            };
        }
        begun.map_err(|failed| Wrong(format!("{name} is not received: {failed}")))?;
        if !force && self.client.oracle.borrow().differs(base, number) {
            return Err(Wrong(format!(
                "{name} receives a difference, though it was written to since"
            )));
        }
        let mut oracle = self.client.oracle.borrow_mut();
        if force {
            oracle.roll_back_ends(number, base);
            oracle.cut(number, spec.size);
        }
        if let Some(known) = oracle.volumes.get_mut(&number) {
            known.size = spec.size;
        }
        Ok(Some((name, number)))
    }

    /// A volume is left alone from now on, or under load again.
    fn reopen(&mut self, number: u32) -> Step {
        self.client.remove(number);
        let index = self.volumes.iter().position(|known| known.1 == number);
        index.map_or(Ok(()), |index| self.open_volume(index))
    }

    /// The stream begins, or continues where the pool says that the volume is.
    fn connect(&mut self, transfer: &mut Transfer) -> Step {
        let name = &transfer.volume.0;
        let listed = self.engine().volume_list(POOL).unwrap_or_default();
        let known = listed.iter().find(|known| known.name == *name);
        let Some(status) = known.and_then(|known| known.receiving.clone()) else {
            return Err(Wrong(format!("nothing is known of what {name} receives")));
        };
        let done = self
            .client
            .oracle
            .borrow()
            .copying
            .as_ref()
            .map_or((0, 0), |it| it.done);
        if !(done.0..=done.1).contains(&status.done) {
            let was = status.done;
            return Err(Wrong(format!(
                "{name} has {was} bytes and was said to have {done:?}"
            )));
        }
        let parse = |text: &str| text.parse::<SnapshotId>().ok();
        let token = Token {
            to: parse(&status.to).unwrap_or(transfer.begin.to),
            from: status.from.as_deref().and_then(parse),
            done: status.done,
        };
        let token: Result<Token, _> = token.to_string().parse();
        let token = token.map_err(|failed| Wrong(format!("no token: {failed}")))?;
        if (token.to, token.from) != (transfer.begin.to, transfer.begin.from) {
            return Err(Wrong(format!("{name} receives {status:?}")));
        }
        // Now and then all of it is sent again.
        let start = if self.random.one_in(4) { 0 } else { token.done };
        transfer.begin.start = start;
        let again =
            self.engine()
                .receive_begin(POOL, name, &spec_of(&transfer.begin, start), false);
        let again = again.map_err(|failed| Wrong(format!("{name} does not go on: {failed}")))?;
        if again != token.done {
            return Err(Wrong(format!(
                "{name} goes on at {again}, not {}",
                token.done
            )));
        }
        let Some(source) = self.name_of(transfer.to) else {
            return Err(Wrong("what is sent is gone".into()));
        };
        let open = |name: &str| {
            let device = self.engine().volume_open(POOL, name, None);
            device.map_err(|failed| Wrong(format!("{name} does not open: {failed}")))
        };
        let (source, target) = (open(&source)?, open(name)?);
        let mut bytes = Vec::new();
        let encoder = Encoder::begin(&transfer.begin, &mut bytes);
        let mut decoder = Decoder::default();
        decoder.push(&bytes);
        transfer.line = Some(Line {
            source,
            target,
            encoder: Some(encoder),
            decoder,
            ranges: VecDeque::new(),
            next: Some(start),
            read: 0,
        });
        Ok(())
    }

    /// Some ranges are read, encoded, decoded and written.
    fn part(&mut self, transfer: &mut Transfer) -> Result<Part, Wrong> {
        let bytes = self.encode_some(transfer)?;
        let Some(line) = &mut transfer.line else {
            return Ok(Part::More);
        };
        let answers = Arc::<Answers>::default();
        let mut asked: BTreeMap<u64, (Range<u64>, u64)> = BTreeMap::new();
        let mut whole = false;
        // It comes in two pieces.
        let at = self.random.below(bytes.len() as u64 + 1) as usize;
        for bytes in [&bytes[..at], &bytes[at..]] {
            line.decoder.push(bytes);
            while let Some(record) = line
                .decoder
                .next_record()
                .map_err(|failed| Wrong(format!("a stream is not right: {failed}")))?
            {
                let mut oracle = self.client.oracle.borrow_mut();
                let number = transfer.volume.1;
                let (kind, range, buf, id) = match record {
                    Record::Begin(begin) if begin == transfer.begin => continue,
                    Record::Data { offset, bytes } => {
                        let range = sectors(offset, bytes.len() as u64);
                        let id = oracle.begin_copy(number, range.start, &bytes);
                        let buf = IoBuf::from_bytes(bytes.into_boxed_slice());
                        (OpKind::Write, range, buf, id)
                    }
                    Record::Zeroes { offset, len } => {
                        let range = sectors(offset, len);
                        let id = oracle.begin(number, range.clone(), 0, false);
                        (OpKind::WriteZeroes, range, IoBuf::empty(), id)
                    }
                    Record::End(_) => {
                        whole = true;
                        continue;
                    }
                    other => return Err(Wrong(format!("a stream has {other:?}"))),
                };
                submit(&*line.target, (kind, id), &range, buf, &answers)?;
                asked.insert(id, (range, id));
            }
        }
        if self.random.one_in(24) {
            let steps = self.random.below(100);
            self.steps(steps)?;
            return Ok(Part::Cut);
        }
        let mut full = false;
        let count = asked.len();
        for answer in self.wait_for(&answers, count)? {
            let worked = answer.result.is_ok();
            full |= !worked;
            if let Some((range, id)) = asked.remove(&answer.tag) {
                let mut oracle = self.client.oracle.borrow_mut();
                oracle.end(transfer.volume.1, range, id, worked, false);
            }
        }
        Ok(match (full, whole) {
            (true, _) => Part::Full,
            (_, true) => Part::Whole,
            _ => Part::More,
        })
    }

    /// The next records of the stream.
    fn encode_some(&mut self, transfer: &mut Transfer) -> Result<Vec<u8>, Wrong> {
        let mut bytes = Vec::new();
        let Some(line) = &mut transfer.line else {
            return Ok(bytes);
        };
        let from = transfer.from.and_then(|from| self.name_of(from));
        while line.ranges.is_empty()
            && let Some(next) = line.next
        {
            let limit = *self.random.pick(&LIMITS);
            let (of, name) = (&transfer.begin.volume, &transfer.begin.snapshot);
            let engine = self.engine();
            let part = engine.snapshot_diff(POOL, of, from.as_deref(), Some(name), next, limit);
            let part =
                part.map_err(|failed| Wrong(format!("{of}@{name} is not sent: {failed}")))?;
            line.ranges.extend(part.ranges);
            line.next = part.next;
        }
        let Some(mut encoder) = line.encoder.take() else {
            return Ok(bytes);
        };
        if line.ranges.is_empty() {
            encoder.end(line.read, &mut bytes);
            return Ok(bytes);
        }
        for _ in 0..self.random.within(1..=4) {
            let Some(range) = line.ranges.front_mut() else {
                break;
            };
            let len = if range.data {
                range.len.min(PIECE)
            } else {
                range.len
            };
            let offset = range.offset;
            let data = range.data;
            (range.offset, range.len) = (offset + len, range.len - len);
            if range.len == 0 {
                line.ranges.pop_front();
            }
            if !data {
                encoder.zeroes(offset, len, &mut bytes);
                continue;
            }
            let answers = Arc::<Answers>::default();
            let buf = IoBuf::zeroed(len as usize);
            let range = sectors(offset, len);
            submit(&*line.source, (OpKind::Read, 0), &range, buf, &answers)?;
            for answer in self.wait_for(&answers, 1)? {
                if let Err(failed) = &answer.result {
                    return Err(Wrong(format!("what is sent cannot be read: {failed}")));
                }
                let read = answer.buf.as_bytes().unwrap_or(&[]);
                let mut oracle = self.client.oracle.borrow_mut();
                oracle.settle_live(transfer.to, offset, read, &BTreeMap::new())?;
                encoder.data(offset, read, &mut bytes);
                line.read += read.len() as u64;
            }
        }
        line.encoder = Some(encoder);
        Ok(bytes)
    }

    /// Flushes what was written and keeps how far it is.
    fn mark(&mut self, transfer: &mut Transfer) -> Step {
        let Some(line) = &transfer.line else {
            return Ok(());
        };
        let (name, number) = &transfer.volume;
        let answers = Arc::<Answers>::default();
        let moment = self.client.oracle.borrow().flush_begins();
        submit(
            &*line.target,
            (OpKind::Flush, 0),
            &(0..0),
            IoBuf::empty(),
            &answers,
        )?;
        for answer in self.wait_for(&answers, 1)? {
            if let Err(failed) = &answer.result {
                return Err(Wrong(format!("{name} is not flushed: {failed}")));
            }
            self.client.oracle.borrow_mut().flush_ends(*number, moment);
        }
        let position = line.decoder.position();
        self.say_done(|done| done.1 = done.1.max(position));
        let marked = self.engine().receive_mark(POOL, name, position);
        marked.map_err(|failed| Wrong(format!("how far {name} is is not kept: {failed}")))?;
        self.say_done(|done| done.0 = done.0.max(position));
        Ok(())
    }

    /// How far the pool may say that the volume is changes.
    fn say_done(&self, change: impl FnOnce(&mut (u64, u64))) {
        if let Some(copying) = &mut self.client.oracle.borrow_mut().copying {
            change(&mut copying.done);
        }
    }

    /// Everything was written: the snapshot is taken, and holds what the other one does.
    fn end_transfer(&mut self, mut transfer: Transfer) -> Step {
        self.mark(&mut transfer)?;
        let (name, number) = transfer.volume.clone();
        let ended = self.engine().receive_end(POOL, &name);
        if ended
            .as_ref()
            .is_err_and(|failed| failed.code == ErrorCode::NoSpace)
        {
            transfer.line = None;
            self.transfer = Some(transfer);
            return Ok(());
        }
        let ended = ended.map_err(|failed| Wrong(format!("{name} is not ended: {failed}")))?;
        let is = |known: &SnapshotStatus| known.identity == transfer.begin.to.to_string();
        if ended.len() != 1 || !ended.iter().all(is) {
            return Err(Wrong(format!("{name} has received {ended:?}")));
        }
        self.named += 1;
        let received = crate::snapshots::FIRST + self.named as u32;
        {
            let mut oracle = self.client.oracle.borrow_mut();
            oracle.copying = None;
            let mut snapshot = oracle.volumes[&transfer.to].clone();
            snapshot.snapshot = Some((number, transfer.begin.snapshot.clone()));
            snapshot.taken = oracle.moment();
            if let Some(volume) = oracle.volumes.get_mut(&number) {
                snapshot.bases = volume.bases.clone();
                snapshot.changed = volume.changed.clone();
                volume.bases.push(received);
            }
            oracle.volumes.insert(received, snapshot);
        }
        self.snapshots.push(received);
        self.received.push((transfer.to, received));
        self.outcome.received += 1;
        self.read_snapshot(received)?;
        self.reopen(number)
    }

    /// It is not continued.
    fn give_up(&mut self, transfer: &Transfer) -> Step {
        self.client.oracle.borrow_mut().copying = None;
        let (name, number) = &transfer.volume;
        self.drain()?;
        if let Some(base) = transfer.base.filter(|base| self.snapshots.contains(base)) {
            return self.roll_back_to(base);
        }
        if self.has_snapshots(*number) {
            return self.reopen(*number);
        }
        self.volumes.retain(|known| known.1 != *number);
        self.client.remove(*number);
        self.client.oracle.borrow_mut().volumes.remove(number);
        let deleted = self.engine().volume_delete(POOL, name);
        deleted.map_err(|failed| Wrong(format!("{name} cannot be deleted: {failed}")))?;
        Ok(())
    }
}

fn spec_of(begin: &Begin, start: u64) -> ReceiveSpec {
    ReceiveSpec {
        snapshot: begin.snapshot.clone(),
        to: begin.to,
        from: begin.from,
        size: begin.size,
        lba_size: begin.lba_size,
        start,
    }
}

pub(crate) fn submit(
    device: &dyn BlockDevice,
    (kind, tag): (OpKind, u64),
    sectors: &Range<u64>,
    buf: IoBuf,
    answers: &Arc<Answers>,
) -> Step {
    let op = Op {
        tag,
        kind,
        flags: OpFlags::default(),
        offset: sectors.start * SECTOR as u64,
        len: (sectors.end - sectors.start) * SECTOR as u64,
        buf,
        done: answers.clone(),
    };
    let refused = |_| Wrong("a volume refuses operations when few are in flight".into());
    device.submit(op).map_err(refused)
}
