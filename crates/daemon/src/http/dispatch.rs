//! Executes an operation: parses and validates its arguments, calls the manager, and builds the
//! response.

use super::gate;
use super::hub::Wish;
use super::keys::StoredResponse;
use super::tags::Tag;
use crate::access::Caller;
use crate::clock::now_s;
use crate::events::Filter;
use crate::live::MapView;
use crate::{Format, Manager, Receiving, Sending};
use api::Operation;
use api::v1::{EventCode, Problem, ProblemCode, Severity, Version};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// Arguments of an operation.
#[derive(Default)]
pub struct Arguments {
    /// Path parameters, by their names in the route.
    pub path: BTreeMap<String, String>,
    /// Query parameters.
    pub query: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
    /// The Accept header.
    pub accept: String,
    /// Entity tags of which the object must have one (If-Match).
    pub if_match: Option<String>,
    /// The idempotency key.
    pub key: Option<String>,
}

/// Response of an operation.
pub enum Answer {
    /// No content.
    Nothing,
    /// JSON, with the entity tag of the object.
    Json(StoredResponse),
    /// Metrics in this format.
    Figures(Format),
    /// JSON, and a session cookie.
    Cookie {
        /// The JSON.
        body: Vec<u8>,
        /// The cookie.
        cookie: String,
        /// Who logged in or out.
        who: String,
    },
    /// Live data with these maps, and the number of updates after which it ends.
    Live(Wish, Option<u64>),
    /// A stream.
    Send(Box<Sending>),
    /// A receiver of the request's body, which is a stream.
    Receive(Box<Receiving>),
}

/// Default and maximum number of cells of a live map; maximum number of maps of a viewer.
const LIVE_CELLS: usize = 1024;
const LIVE_CELLS_MAX: usize = 4096;
const LIVE_MAPS_MAX: usize = 16;
/// Default and maximum number of log entries.
const ENTRIES: usize = 100;
const ENTRIES_MAX: usize = 1000;

type Result<T> = std::result::Result<T, Problem>;

impl Arguments {
    fn text(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<T> {
        let text = self.text(name);
        text.parse()
            .map_err(|_| Problem::invalid(format!("'{text}' is not the number of a {name}")))
    }

    fn asked(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    fn asked_number<T: FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.asked(name) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Problem::invalid(format!(
                "'{text}' is not a number of {name}"
            ))),
        }
    }

    fn asked_flag(&self, name: &str) -> Result<bool> {
        match self.asked(name) {
            None => Ok(false),
            Some(text) => text.parse().map_err(|_| {
                Problem::invalid(format!("{name} is 'true' or 'false', not '{text}'"))
            }),
        }
    }

    /// A number from 1 to `most`; `usual` by default.
    fn asked_count(&self, name: &str, usual: usize, most: usize) -> Result<usize> {
        let count = self.asked_number(name)?.unwrap_or(usual);
        match (1..=most).contains(&count) {
            true => Ok(count),
            false => Err(Problem::invalid(format!(
                "{name} is 1 to {most}, not {count}"
            ))),
        }
    }

    /// The requested live maps.
    fn wish(&self) -> Result<Wish> {
        let cells = self.asked_count("cells", LIVE_CELLS, LIVE_CELLS_MAX)?;
        let start = self.asked_number("start")?.unwrap_or(0);
        let length = self.asked_number("length")?;
        let names = self.asked("maps").unwrap_or_default();
        let names: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
        if names.len() > LIVE_MAPS_MAX {
            return Err(Problem::invalid(format!(
                "at most {LIVE_MAPS_MAX} maps can be watched at a time, not {}",
                names.len()
            )));
        }
        let view = |name: &str| match name.split_once('/') {
            Some((pool, volume)) => Ok(MapView {
                pool: pool.to_owned(),
                volume: volume.to_owned(),
                cells,
                start,
                length,
            }),
            None => Err(Problem::invalid(format!(
                "'{name}' is not a volume: write POOL/VOLUME"
            ))),
        };
        names.into_iter().map(view).collect()
    }

    /// Number of live updates before the stream ends.
    fn looks(&self) -> Result<Option<u64>> {
        match self.asked_number("looks")? {
            Some(0) => Err(Problem::invalid("looks must be 1 or more".to_owned())),
            looks => Ok(looks),
        }
    }

    /// The event filter.
    fn filter(&self) -> Result<Filter> {
        let severity = self.asked("severity").map(|text| {
            let all = [Severity::Info, Severity::Warning, Severity::Critical];
            let found = all.into_iter().find(|known| known.as_str() == text);
            found.ok_or_else(|| {
                Problem::invalid(format!(
                    "'{text}' is not a severity: write info, warning or critical"
                ))
            })
        });
        let code = |text: &str| {
            let found = EventCode::ALL.iter().find(|code| code.as_str() == text);
            found.copied().ok_or_else(|| {
                Problem::invalid(format!("'{text}' is not an event code: see docs/events.md"))
            })
        };
        let codes = self.asked("code").unwrap_or_default().split(',');
        let codes = codes.filter(|text| !text.is_empty()).map(code);
        Ok(Filter {
            before: self.asked_number("before")?,
            severity: severity.transpose()?,
            codes: codes.collect::<Result<_>>()?,
            pool: self.asked("pool").map(str::to_owned),
        })
    }

    fn check_query(&self, operation: Operation) -> Result<()> {
        let known = operation.route().query;
        let unknown = self
            .query
            .keys()
            .find(|name| known.iter().all(|known| known.name != name.as_str()));
        match unknown {
            Some(name) => Err(Problem::invalid(format!(
                "{} takes no query parameter '{name}': remove it",
                operation.route().path
            ))),
            None => Ok(()),
        }
    }
}

/// A request and its preconditions. The request is validated before preconditions are evaluated
/// (RFC 9110, section 13.2.1).
struct CheckedRequest<'a> {
    arguments: &'a Arguments,
    condition: &'a dyn Fn() -> Result<()>,
}

impl Deref for CheckedRequest<'_> {
    type Target = Arguments;

    fn deref(&self) -> &Arguments {
        self.arguments
    }
}

impl CheckedRequest<'_> {
    fn request<T: DeserializeOwned>(&self) -> Result<T> {
        let read = serde_json::from_slice(&self.body);
        let request = read.map_err(|error| {
            Problem::invalid(format!("cannot parse the request: {error}: correct it"))
        })?;
        (self.condition)()?;
        Ok(request)
    }
}

fn json<T: Serialize>(value: T) -> Result<Answer> {
    match serde_json::to_vec(&value) {
        Ok(body) => Ok(Answer::Json(StoredResponse { body, tag: None })),
        Err(error) => Err(Problem::new(ProblemCode::Internal, error.to_string())),
    }
}

fn tagged<T: Serialize + Tag>(value: T) -> Result<Answer> {
    let tag = Some(value.tag());
    match json(value)? {
        Answer::Json(kept) => Ok(Answer::Json(StoredResponse { tag, ..kept })),
        other => Ok(other),
    }
}

fn nothing((): ()) -> Result<Answer> {
    Ok(Answer::Nothing)
}

fn log_in(manager: &Manager, caller: &Caller, token: &str) -> Result<Answer> {
    let Ok(from) = caller.from.parse() else {
        return Err(Problem::invalid(
            "sessions are for browsers over TLS: requests over this socket need none".to_owned(),
        ));
    };
    let (caller, cookie) = manager.access.log_in(token, from)?;
    match json(caller.login())? {
        Answer::Json(StoredResponse { body, .. }) => Ok(Answer::Cookie {
            body,
            cookie: gate::set_cookie(manager.access.cookie(), &cookie),
            who: caller.who,
        }),
        other => Ok(other),
    }
}

/// Executes an operation if `condition` is met.
pub fn dispatch(
    manager: &Arc<Manager>,
    caller: &Caller,
    operation: Operation,
    arguments: &Arguments,
    condition: &dyn Fn() -> Result<()>,
) -> Result<Answer> {
    let with = &CheckedRequest {
        arguments,
        condition,
    };
    with.check_query(operation)?;
    if operation.changes_tagged().is_none() || !operation.route().has_request() {
        condition()?;
    }
    let Manager {
        access,
        diagnostics,
        drives,
        exports,
        fleet,
        health,
        history,
        jobs,
        notifications,
        playback,
        pools,
        qos,
        schedules,
        snapshots,
        transfers,
        volumes,
        why,
        ..
    } = manager.as_ref();
    let pool = with.text("pool");
    let volume = with.text("volume");
    let export = with.text("export");
    let policy = with.text("policy");
    let group = with.text("group");
    let snapshot = (pool, volume, with.text("snapshot"));
    match operation {
        Operation::VersionShow => json(Version {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: vec!["v1".to_owned()],
        }),
        Operation::Metrics => Ok(Answer::Figures(Format::accepted(&with.accept))),
        Operation::DriveList => json(drives.list()?),
        Operation::DriveProbe => json(drives.probe(&with.request::<api::v1::DriveProbe>()?.spec)?),
        Operation::FrontEndList => json(exports.front_end_list()),
        Operation::PoolList => json(pools.list()?),
        Operation::PoolCreate => tagged(pools.create(with.request()?)?),
        Operation::PoolScan => json(pools.scan(&with.request()?)?),
        Operation::PoolShow => tagged(pools.show(pool)?),
        Operation::PoolChange => tagged(pools.change(pool, &with.request()?)?),
        Operation::PoolDestroy => nothing(pools.destroy(pool, with.asked_flag("force")?)?),
        Operation::PoolExport => nothing(pools.export(pool, with.asked_flag("force")?)?),
        Operation::PoolImport => tagged(pools.import(pool, &with.request()?)?),
        Operation::PoolCounters => json(pools.counters(pool)?),
        Operation::PoolLatency => json(diagnostics.pool_latency(pool)?),
        Operation::PoolMoves => json(diagnostics.pool_moves(pool)?),
        Operation::PoolWhatIf => json(diagnostics.pool_what_if(pool)?),
        Operation::PoolCool => nothing(pools.cool(pool)?),
        Operation::PoolHoldPromotion => {
            let hold = with.request::<api::v1::HoldPromotion>()?.hold;
            nothing(pools.hold_promotion(pool, hold)?)
        }
        Operation::PoolScrub => json(pools.scrub(pool, with.request()?)?),
        Operation::PoolScrubShow => json(pools.scrub_show(pool)?),
        Operation::PoolScrubCancel => nothing(pools.scrub_cancel(pool)?),
        Operation::PoolWarnAt => tagged(pools.warn_at(pool, &with.request()?)?),
        Operation::QosShow => json(qos.status(pool)?),
        Operation::QosCheck => {
            json(qos.check(pool, with.asked("policy"), with.asked_number("volumes")?)?)
        }
        Operation::QosPolicyList => json(qos.policy_list(pool)?),
        Operation::QosPolicyCreate => json(qos.policy_create(pool, with.request()?)?),
        Operation::QosPolicyShow => json(qos.policy_show(pool, policy)?),
        Operation::QosPolicyChange => json(qos.policy_change(pool, policy, &with.request()?)?),
        Operation::QosPolicyDelete => nothing(qos.policy_delete(pool, policy)?),
        Operation::QosGroupList => json(qos.group_list(pool)?),
        Operation::QosGroupCreate => json(qos.group_create(pool, with.request()?)?),
        Operation::QosGroupShow => json(qos.group_show(pool, group)?),
        Operation::QosGroupChange => json(qos.group_change(pool, group, with.request()?)?),
        Operation::QosGroupDelete => nothing(qos.group_delete(pool, group)?),
        Operation::VdriveList => json(pools.vdrive_list(pool)?),
        Operation::VdriveAdd => json(pools.vdrive_add(pool, with.request()?)?),
        Operation::VdriveRemove => json(pools.vdrive_remove(pool, with.number("vdrive")?)?),
        Operation::DriveOnline => json(pools.drive_online(pool, &with.request()?)?),
        Operation::DriveOffline => nothing(pools.drive_offline(pool, &with.request()?)?),
        Operation::DriveReplace => json(pools.drive_replace(pool, &with.request()?)?),
        Operation::VolumeList => json(volumes.list(with.asked("pool"))?),
        Operation::VolumeCreate => tagged(volumes.create(with.request()?)?),
        Operation::VolumeShow => tagged(volumes.show(pool, volume)?),
        Operation::VolumeDelete => json(volumes.delete(pool, volume, with.asked_flag("force")?)?),
        Operation::VolumeChange => tagged(volumes.change(pool, volume, with.request()?)?),
        Operation::VolumeResize => tagged(volumes.resize(pool, volume, with.request()?)?),
        Operation::VolumeRollBack => tagged(snapshots.roll_back(pool, volume, &with.request()?)?),
        Operation::VolumePromote => json(snapshots.promote(pool, volume)?),
        Operation::SnapshotList => json(snapshots.list(
            with.asked("pool"),
            with.asked("volume"),
            with.asked_number("wait_s")?,
        )?),
        Operation::SnapshotCreate => json(snapshots.create(with.request()?)?),
        Operation::SnapshotShow => tagged(snapshots.show(snapshot)?),
        Operation::SnapshotChange => tagged(snapshots.change(snapshot, &with.request()?)?),
        Operation::SnapshotDelete => {
            nothing(snapshots.delete(snapshot, with.asked_flag("force")?)?)
        }
        Operation::SnapshotClone => tagged(snapshots.clone_volume(snapshot, &with.request()?)?),
        Operation::SnapshotDiff => json(snapshots.diff(
            (pool, volume),
            with.asked("from"),
            with.asked("to"),
            with.asked_number("start")?,
            with.asked_number("limit")?,
        )?),
        Operation::SnapshotSend => {
            let sending = transfers.send(snapshot, with.asked("from"), with.asked("resume"))?;
            Ok(Answer::Send(Box::new(sending)))
        }
        Operation::VolumeReceive => {
            let receiving = transfers.receive(pool, volume, with.asked_flag("force")?)?;
            Ok(Answer::Receive(Box::new(receiving)))
        }
        Operation::ScheduleList => json(schedules.list(with.asked("pool"), with.asked("volume"))?),
        Operation::ScheduleSet => json(schedules.set(with.request()?)?),
        Operation::ScheduleRemove => {
            nothing(schedules.remove(pool, volume, with.text("schedule"))?)
        }
        Operation::VolumeCounters => json(volumes.counters(pool, volume)?),
        Operation::VolumeLatency => json(diagnostics.volume_latency(pool, volume)?),
        Operation::VolumeWhy => {
            let times = (with.asked_number("from")?, with.asked_number("to")?);
            json(why.volume(pool, volume, times, now_s())?)
        }
        Operation::VolumeMap => {
            let cells = with.asked_number("cells")?;
            let start = with.asked_number("start")?.unwrap_or(0);
            json(volumes.map(pool, volume, cells, start, with.asked_number("length")?)?)
        }
        Operation::VolumeMapFrames => json(playback.frames(
            pool,
            volume,
            with.asked_number("from")?,
            with.asked_number("to")?,
            now_s(),
        )?),
        Operation::VolumeExplain => {
            json(diagnostics.volume_explain(pool, volume, with.asked_number("lba")?)?)
        }
        Operation::ExportList => json(exports.list(with.asked("pool"))),
        Operation::ExportCreate => {
            let request: api::v1::ExportCreate = with.request()?;
            if !caller.is_local_admin() {
                exports.check_remote_paths(&request.kind, &request.parameters)?;
            }
            tagged(exports.create(request)?)
        }
        Operation::ExportShow => tagged(exports.show(export, with.asked("pool"))?),
        Operation::ExportDelete => nothing(exports.delete(export, with.asked("pool"))?),
        Operation::ExportSet => {
            let request: api::v1::ExportChange = with.request()?;
            if !caller.is_local_admin() {
                let kind = exports.show(export, with.asked("pool"))?.kind;
                exports.check_remote_paths(&kind, &request.parameters)?;
            }
            tagged(exports.set(export, with.asked("pool"), request)?)
        }
        Operation::ExportDisable => {
            tagged(exports.disable(export, with.asked("pool"), with.asked_flag("force")?)?)
        }
        Operation::ExportEnable => tagged(exports.enable(export, with.asked("pool"))?),
        Operation::SessionList => json(exports.session_list()),
        Operation::SessionEnd => nothing(exports.end_session(with.number("session")?)?),
        Operation::JobList => json(jobs.list()?),
        Operation::JobShow => json(jobs.show(with.number("job")?)?),
        Operation::JobCancel => nothing(jobs.cancel(with.number("job")?)?),
        Operation::DriveLocate => nothing(health.drive_locate(&with.request()?)?),
        Operation::JobPause => nothing(jobs.pause(with.number("job")?)?),
        Operation::JobResume => nothing(jobs.resume(with.number("job")?)?),
        Operation::LogIn => {
            let request = with.request::<api::v1::LogIn>()?;
            log_in(manager, caller, request.token.expose())
        }
        Operation::LoginShow => json(caller.login()),
        Operation::LogOut => {
            access.log_out(caller)?;
            Ok(Answer::Cookie {
                body: Vec::new(),
                cookie: gate::forget_cookie(access.cookie()),
                who: caller.who.clone(),
            })
        }
        Operation::TokenList => json(access.token_list()),
        Operation::TokenCreate => json(access.token_create(&with.request()?)?),
        Operation::TokenRevoke => nothing(access.token_revoke(with.text("token"))?),
        Operation::AuditList => {
            let limit = with.asked_count("limit", ENTRIES, ENTRIES_MAX)?;
            json(access.audit_list(with.asked_number("before")?, limit))
        }
        Operation::EventList => {
            let limit = with.asked_count("limit", ENTRIES, ENTRIES_MAX)?;
            json(notifications.event_list(&with.filter()?, limit))
        }
        Operation::AlertList => json(notifications.alert_list()),
        Operation::History => {
            let series = with.asked("series").unwrap_or_default().split(',');
            let series: Vec<&str> = series.filter(|name| !name.is_empty()).collect();
            let times = (
                with.asked_number("from")?,
                with.asked_number("to")?,
                with.asked_number("step")?,
            );
            let object = with.asked("object").unwrap_or_default();
            json(history.query(object, &series, times, now_s())?)
        }
        Operation::TargetList => json(notifications.target_list()),
        Operation::TargetCreate => json(notifications.target_create(with.request()?)?),
        Operation::TargetDelete => nothing(notifications.target_delete(with.text("target"))?),
        Operation::TargetTest => nothing(notifications.target_test(with.text("target"))?),
        Operation::ServerList => json(fleet.list()),
        Operation::ServerCreate => json(fleet.create(with.request()?)?),
        Operation::ServerRemove => nothing(fleet.remove(with.text("server"))?),
        Operation::Live => Ok(Answer::Live(with.wish()?, with.looks()?)),
    }
}
