//! Executing a command: common checks, and dispatch to modules.

use crate::blocks::{Blocks, TRANSFER_MAX};
use crate::io::{Step, run};
use crate::luns::Luns;
use crate::nexus::{Nexus, Running};
use crate::ranges::Held;
use crate::sense::{Sense, Status};
use crate::stop::Stop;
use crate::table::{Access, Row, Run, cdb_len, find};
use crate::unit::Switches;
use crate::{absent, copy, inquiry, log, mode, port_groups, report, rights};
use block::{IoBuf, IoError, StatusExtent};
use std::ops::Range;

/// How a command ended.
pub struct Response {
    /// Its status.
    pub status: Status,
    /// Sense data, with CHECK CONDITION.
    pub sense: Option<Vec<u8>>,
    /// Its result.
    pub data: IoBuf,
    /// How many bytes it transfers one way or the other, whatever the initiator expects.
    pub length: u64,
}

/// Result of a successful command.
pub(crate) struct Reply {
    pub data: IoBuf,
    pub length: u64,
}

/// Why a command has failed.
pub(crate) enum Failure {
    Conflict,
    Check(Sense),
}

impl From<Sense> for Failure {
    fn from(sense: Sense) -> Self {
        Self::Check(sense)
    }
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Self {
        Self::Check(error.into())
    }
}

pub(crate) type Answer = Result<Reply, Failure>;

/// A command that is being carried out.
pub(crate) struct Call<'a> {
    pub nexus: &'a Nexus,
    pub luns: &'a Luns,
    pub cdb: &'a [u8; 16],
    /// Data-out, all of it.
    pub data: IoBuf,
    /// Counts as running until this is dropped.
    pub running: Option<Running>,
    /// Its result is no longer needed.
    pub stop: Stop,
}

impl Call<'_> {
    pub(crate) async fn run(
        &self,
        step: Step,
        buf: IoBuf,
    ) -> Result<(IoBuf, Vec<StatusExtent>), IoError> {
        run(&self.nexus.handle, &self.nexus.device, step, buf).await
    }

    /// Whether the command's result is still needed: long ones check before each piece.
    pub(crate) fn goes_on(&self) -> Result<(), Sense> {
        let aborted = self.running.as_ref().is_some_and(Running::is_aborted);
        match aborted || self.stop.is_set() {
            true => Err(Sense::GIVEN_UP),
            false => Ok(()),
        }
    }

    /// Holds what is about to be changed.
    pub(crate) async fn hold(&self, range: Range<u64>, alone: bool) -> Held {
        self.nexus.unit.hold_to_change(range, alone).await
    }

    /// Nothing is transferred.
    pub(crate) fn empty(&self) -> Reply {
        self.took(0)
    }

    /// Data was taken from the initiator.
    pub(crate) fn took(&self, length: u64) -> Reply {
        Reply {
            data: IoBuf::empty(),
            length,
        }
    }

    pub(crate) fn give(&self, data: IoBuf) -> Reply {
        Reply {
            length: data.len() as u64,
            data,
        }
    }

    /// Parameter data, cut at the allocation length.
    pub(crate) fn give_cut(&self, mut data: Vec<u8>, allocation: usize) -> Reply {
        data.truncate(allocation);
        self.give(IoBuf::from_bytes(data.into_boxed_slice()))
    }
}

/// Memory that a command's data takes, in bytes, as far as the CDB tells: for bounds.
pub fn memory_of(cdb: &[u8; 16], block_size: u64) -> u64 {
    let bytes = match find(cdb).map(|row| row.run) {
        Some(Run::Read | Run::OrWrite) => Blocks::parse(cdb).count.saturating_mul(block_size),
        Some(
            Run::Verify
            | Run::WriteVerify
            | Run::WriteSame
            | Run::Prefetch
            | Run::CompareAndWrite
            | Run::ExtendedCopy
            | Run::ExtendedCopyLong
            | Run::WriteUsingToken,
        ) => 2 << 20,
        _ => 4096,
    };
    bytes.min(TRANSFER_MAX)
}

/// Whether a command's operation continues when it is aborted: its end is not awaited then.
pub fn outlives_abort(cdb: &[u8; 16]) -> bool {
    find(cdb).is_some_and(|row| row.run == Run::Sanitize)
}

impl Luns {
    /// Carries out a command that arrived in `generation` ([`Nexus::generation`]), with all of its
    /// data. None when it was aborted or stopped: then nothing is to be answered.
    pub async fn execute(
        &self,
        lun: Option<u16>,
        cdb: &[u8; 16],
        data: IoBuf,
        generation: u64,
        stop: &Stop,
    ) -> Option<Response> {
        let Some(nexus) = lun.and_then(|lun| self.get(lun)) else {
            return Some(response(absent::answer(cdb, &self.numbers()), false));
        };
        let running = nexus.begin(generation)?;
        let row = find(cdb);
        let answer = match check(&nexus, cdb, row) {
            Err(failure) => Err(failure),
            Ok(row) => {
                let call = Call {
                    nexus: &nexus,
                    luns: self,
                    cdb,
                    data,
                    running: Some(running),
                    stop: stop.clone(),
                };
                dispatch(row.run, call).await
            }
        };
        if nexus.generation() != generation || stop.is_set() {
            return None;
        }
        let descriptor = Switches::get(&nexus.unit.switches.descriptor_sense);
        Some(response(answer, descriptor))
    }
}

pub(crate) fn response(answer: Answer, descriptor: bool) -> Response {
    let (status, sense, reply) = match answer {
        Ok(reply) => (Status::Good, None, Some(reply)),
        Err(Failure::Conflict) => (Status::ReservationConflict, None, None),
        Err(Failure::Check(sense)) => {
            let sense = sense.encode(descriptor);
            (Status::CheckCondition, Some(sense), None)
        }
    };
    let (data, length) = match reply {
        Some(reply) => (reply.data, reply.length),
        None => (IoBuf::empty(), 0),
    };
    Response {
        status,
        sense,
        data,
        length,
    }
}

/// The effect of a command on the unit; it may depend on its fields (SBC-3 table 13).
fn access(row: &Row, cdb: &[u8; 16]) -> Access {
    match row.run {
        Run::StartStop if cdb[4] & 0xf1 == 0x01 => Access::Free,
        Run::PreventAllow if cdb[4] & 0x03 != 0 => Access::Write,
        _ => row.access,
    }
}

/// Needs a unit that is started.
fn needs_medium(run: Run) -> bool {
    matches!(
        run,
        Run::TestUnitReady
            | Run::Read
            | Run::Write
            | Run::WriteAtomic
            | Run::WriteVerify
            | Run::Verify
            | Run::Prefetch
            | Run::Synchronize
            | Run::WriteSame
            | Run::Unmap
            | Run::Sanitize
            | Run::CompareAndWrite
            | Run::OrWrite
            | Run::LbaStatus
            | Run::PopulateToken
            | Run::WriteUsingToken
    )
}

/// Is answered while SANITIZE is in progress (SBC-3 4.11.3).
fn goes_on_while_sanitizing(run: Run) -> bool {
    matches!(
        run,
        Run::Inquiry | Run::RequestSense | Run::ReportLuns | Run::LogSense | Run::PersistentIn
    )
}

/// Checks of every command (SAM-5 5.3.3, SPC-4 4.2 and 5.13).
fn check(
    nexus: &Nexus,
    cdb: &[u8; 16],
    row: Option<&'static Row>,
) -> Result<&'static Row, Failure> {
    let is_exempt = row.is_some_and(|row| row.access == Access::Always);
    if !is_exempt && let Some(attention) = nexus.take_attention() {
        return Err(attention.sense().into());
    }
    check_row(nexus, cdb, row)
}

/// The same but for attentions: this changes nothing.
pub(crate) fn check_row(
    nexus: &Nexus,
    cdb: &[u8; 16],
    row: Option<&'static Row>,
) -> Result<&'static Row, Failure> {
    let Some(row) = row else {
        let known = crate::table::rows_of(cdb[0]).next().is_some();
        return Err(match known {
            true => Sense::INVALID_FIELD_IN_CDB.into(),
            false => Sense::INVALID_OPCODE.into(),
        });
    };
    let member = &nexus.member;
    if let Some(sense) = nexus.groups.refuses(member.ports.target_port, row.run) {
        return Err(sense.into());
    }
    let reservations = &nexus.unit.reservations;
    if reservations.conflicts(access(row, cdb), member.number, &member.ports) {
        return Err(Failure::Conflict);
    }
    rights::check(nexus, row, cdb)?;
    // No auto contingent allegiance here (NACA).
    if cdb[cdb_len(cdb[0]) - 1] & 0x04 != 0 {
        return Err(Sense::INVALID_FIELD_IN_CDB.into());
    }
    let switches = &nexus.unit.switches;
    if Switches::get(&switches.sanitizing) && !goes_on_while_sanitizing(row.run) {
        return Err(Sense::SANITIZING.into());
    }
    if Switches::get(&switches.stopped) && needs_medium(row.run) {
        return Err(Sense::STOPPED.into());
    }
    Ok(row)
}

async fn dispatch(run: Run, call: Call<'_>) -> Answer {
    match run {
        Run::Read => call.read().await,
        Run::Write => call.write().await,
        // The rest is boxed: what is rare does not make the common commands' tasks large.
        _ => Box::pin(dispatch_rare(run, call)).await,
    }
}

async fn dispatch_rare(run: Run, call: Call<'_>) -> Answer {
    let _turn = match run.is_long() {
        true => Some(call.nexus.long.get().await),
        false => None,
    };
    call.goes_on()?;
    match run {
        Run::WriteAtomic => call.write_atomic().await,
        Run::WriteVerify => call.write_verify().await,
        Run::Verify => call.verify().await,
        Run::Prefetch => call.prefetch().await,
        Run::Synchronize => call.synchronize().await,
        Run::CompareAndWrite => call.compare_and_write().await,
        Run::OrWrite => call.or_write().await,
        Run::WriteSame => call.write_same().await,
        Run::Unmap => call.unmap().await,
        Run::LbaStatus => call.lba_status().await,
        Run::Sanitize => call.sanitize().await,
        Run::PersistentOut => call.persistent_out().await,
        Run::ExtendedCopy => copy::extended_copy(call).await,
        Run::ExtendedCopyLong => copy::extended_copy_long(call).await,
        Run::PopulateToken => copy::populate(call).await,
        Run::WriteUsingToken => copy::write_using(call).await,
        _ => dispatch_at_once(run, &call),
    }
}

/// Commands that wait for nothing.
fn dispatch_at_once(run: Run, call: &Call<'_>) -> Answer {
    match run {
        Run::TestUnitReady => match call.nexus.device.is_gone() {
            true => Err(Sense::GONE.into()),
            false => Ok(call.empty()),
        },
        Run::RequestSense => call.request_sense(),
        Run::Inquiry => inquiry::inquiry(call),
        Run::ModeSelect => mode::select(call),
        Run::ModeSense => mode::sense(call),
        Run::Reserve => call.reserve(),
        Run::Release => call.release(),
        Run::StartStop => call.start_stop(),
        Run::SendDiagnostic => call.send_diagnostic(),
        Run::PreventAllow => call.prevent_allow(),
        Run::ReadCapacity => call.read_capacity(),
        Run::ReadCapacity16 => call.read_capacity_16(),
        Run::ReadDefects => call.read_defects(),
        Run::LogSense => log::sense(call),
        Run::PersistentIn => call.persistent_in(),
        Run::CopyStatus => copy::status(call),
        Run::LongCopyStatus => copy::long_status(call),
        Run::TokenInformation => copy::token_information(call),
        Run::CopyParameters => copy::parameters(call),
        Run::ReportLuns => report::luns(call),
        Run::ReportPortGroups => port_groups::report(call),
        Run::SetPortGroups => port_groups::set(call),
        Run::ReportReferrals => port_groups::referrals(call),
        Run::ReportOpcodes => report::opcodes(call),
        Run::ReportFunctions => report::functions(call),
        _ => Err(Sense::INVALID_OPCODE.into()),
    }
}
