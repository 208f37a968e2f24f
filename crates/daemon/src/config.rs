//! The daemon's configuration: one TOML file, every key with a default.

mod network;

pub use network::{TlsFiles, parse_listen_address, parse_metrics_address};

use crate::off::value_or_off;
use crate::schedule::ScrubFile;
use crate::{RemotePaths, ScrubSchedule, ServeError, Span};
use network::{ListenAddress, MetricsAddress, PemFile, tls_files};
use reactor::Cores;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum path length of a Unix socket, in bytes (`sun_path` without the terminating zero).
const SOCKET_PATH_MAX: usize = 107;
/// Maximum number of threads.
const THREADS_MAX: usize = 256;
/// Minimum size of the RAM tier and of the map cache, in bytes.
const MEMORY_MIN: u64 = 16 << 20;
/// Minimum memory for hosts' requests, in bytes: a volume's share must hold the largest request.
const REQUEST_MEMORY_MIN: u64 = 128 << 20;
/// Default memory for hosts' requests, in bytes.
pub(crate) const REQUEST_MEMORY: u64 = 256 << 20;
/// Maximum size of the configuration file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Log level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Failures only.
    Error,
    /// And conditions that need attention.
    Warn,
    /// And completed actions (default).
    #[default]
    Info,
    /// And details of actions.
    Debug,
    /// And everything else.
    Trace,
}

/// Configuration of the daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Unix socket of the HTTP API.
    pub socket: PathBuf,
    /// TCP address of the unauthenticated metrics listener.
    pub metrics: Option<SocketAddr>,
    /// Allow a metrics address that other hosts can reach.
    pub metrics_anywhere: bool,
    /// TCP address of the web page and the HTTP API over TLS, with tokens.
    pub listen: Option<SocketAddr>,
    /// TLS certificate and key; without them a self-signed certificate is generated.
    pub tls: Option<TlsFiles>,
    /// State folder: everything that persists besides the pools.
    pub state_dir: PathBuf,
    /// Threads of the engine; 0 means one per CPU core.
    pub threads: usize,
    /// CPU cores of the engine's threads.
    pub cores: Cores,
    /// Size of the RAM tier of each pool, in bytes.
    pub ram_tier: u64,
    /// RAM tier of individual pools, by name.
    pub pool_ram: BTreeMap<String, u64>,
    /// Memory of the host in bytes to keep available for others: pools shrink their RAM tiers for
    /// it. None: RAM tiers do not shrink.
    pub host_reserve: Option<u64>,
    /// Size of the map page cache of each pool, in bytes.
    pub map_cache: u64,
    /// Memory for hosts' requests in flight and responses that they have not read, in bytes.
    pub request_memory: u64,
    /// tmpfs folder for the tail of the journals, which outlives the daemon there. None: the record
    /// of each write goes to a drive before it is acknowledged.
    pub journal_memory: Option<PathBuf>,
    /// Drive specifications searched for pools at startup.
    pub drives: Vec<String>,
    /// Time after which an unanswered request to a drive is abandoned.
    pub drive_deadline: Span,
    /// Factor over its usual latency at which a drive is reported as slow.
    pub drive_slow_factor: u32,
    /// Share of a fast-tier drive's size in percent whose daily writes raise a warning; 0: never.
    pub flash_daily_percent: u32,
    /// Configured notification targets, in addition to those created by users.
    pub alert_targets: Vec<api::v1::TargetCreate>,
    /// Schedule of scrubs.
    pub scrub: ScrubSchedule,
    /// Folders in which remote callers may name paths of exports.
    pub remote_paths: RemotePaths,
    /// Whether notifications may be sent to link-local addresses.
    pub alerts_link_local: bool,
    /// Log level.
    pub log_level: LogLevel,
}

impl Default for Config {
    fn default() -> Self {
        let engine = engine::EngineConfig::default();
        Self {
            socket: "/run/convect/convect.sock".into(),
            metrics: None,
            metrics_anywhere: false,
            listen: None,
            tls: None,
            state_dir: "/var/lib/convect".into(),
            threads: engine.threads,
            cores: engine.cores,
            ram_tier: engine.ram_tier,
            pool_ram: BTreeMap::new(),
            host_reserve: Some(512 << 20),
            map_cache: engine.map_cache,
            request_memory: REQUEST_MEMORY,
            journal_memory: Some("/dev/shm".into()),
            drives: Vec::new(),
            drive_deadline: Span(Duration::from_nanos(engine.drive_limits.deadline_ns)),
            drive_slow_factor: engine.drive_limits.slow_factor,
            flash_daily_percent: 100,
            alert_targets: Vec::new(),
            scrub: ScrubSchedule::default(),
            remote_paths: RemotePaths::default(),
            alerts_link_local: false,
            log_level: LogLevel::default(),
        }
    }
}

/// Validates the length and form of a Unix socket's path.
fn check_socket_path(path: &Path) -> Result<(), String> {
    let length = path.as_os_str().len();
    if !path.is_absolute() {
        return Err(format!(
            "the socket path '{}' is not absolute: write an absolute path",
            path.display()
        ));
    }
    if length > SOCKET_PATH_MAX {
        return Err(format!(
            "the socket path {} is {length} bytes long, but the system allows {SOCKET_PATH_MAX}: \
             choose a shorter one",
            path.display()
        ));
    }
    Ok(())
}

struct SocketPath(PathBuf);

impl<'de> Deserialize<'de> for SocketPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = PathBuf::deserialize(deserializer)?;
        check_socket_path(&path).map_err(D::Error::custom)?;
        Ok(Self(path))
    }
}

struct Threads(usize);

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = i64::deserialize(deserializer)?;
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= THREADS_MAX)
            .map(Self)
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "{count} threads are out of range: write 0 for one per CPU core, or 1 to \
                     {THREADS_MAX}"
                ))
            })
    }
}

struct CoreList(Cores);

impl<'de> Deserialize<'de> for CoreList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

struct Memory<const LEAST: u64 = MEMORY_MIN>(u64);

impl<const LEAST: u64> Memory<LEAST> {
    fn checked<E: Error>(bytes: u64) -> Result<Self, E> {
        if bytes < LEAST {
            return Err(E::custom(format!(
                "{} is too small: set it to at least {}",
                units::format_bytes(bytes),
                units::format_bytes(LEAST)
            )));
        }
        Ok(Self(bytes))
    }
}

impl<'de, const LEAST: u64> Deserialize<'de> for Memory<LEAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<const LEAST: u64>;
        impl<const LEAST: u64> Visitor<'_> for Either<LEAST> {
            type Value = Memory<LEAST>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size like \"512M\" or a number of bytes")
            }
            fn visit_i64<E: Error>(self, bytes: i64) -> Result<Self::Value, E> {
                match u64::try_from(bytes) {
                    Ok(bytes) => Memory::checked(bytes),
                    Err(_) => Err(E::custom("a size cannot be negative")),
                }
            }
            fn visit_u64<E: Error>(self, bytes: u64) -> Result<Self::Value, E> {
                Memory::checked(bytes)
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Memory::checked(units::parse_bytes(text).map_err(E::custom)?)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

struct Reserve(Option<u64>);

impl<'de> Deserialize<'de> for Reserve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| units::parse_bytes(text).map_err(|why| why.to_string());
        value_or_off(deserializer, parse).map(Self)
    }
}

struct Folder(Option<PathBuf>);

impl<'de> Deserialize<'de> for Folder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let absolute = |text: &str| match Path::new(text).is_absolute() {
            true => Ok(PathBuf::from(text)),
            false => Err(format!(
                "'{text}' is not the absolute path of a folder in a tmpfs, like /dev/shm"
            )),
        };
        value_or_off(deserializer, absolute).map(Self)
    }
}

struct DriveSpec(String);

impl<'de> Deserialize<'de> for DriveSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spec = String::deserialize(deserializer)?;
        match drives::canonical(&spec) {
            Ok(_) => Ok(Self(spec)),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

struct Deadline(Span);

impl<'de> Deserialize<'de> for Deadline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let span = Span::deserialize(deserializer)?;
        span.within("1s", "1h").map(Self).map_err(D::Error::custom)
    }
}

struct SlowFactor(u32);

impl<'de> Deserialize<'de> for SlowFactor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let factor = i64::deserialize(deserializer)?;
        u32::try_from(factor)
            .ok()
            .filter(|factor| (2..=1000).contains(factor))
            .map(Self)
            .ok_or_else(|| {
                D::Error::custom(format!(
                    "a factor of {factor} is out of range: write 2 to 1000"
                ))
            })
    }
}

struct Percent(u32);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = i64::deserialize(deserializer)?;
        u32::try_from(percent)
            .ok()
            .filter(|percent| *percent <= 10_000)
            .map(Self)
            .ok_or_else(|| {
                let text = format!(
                    "{percent} % per day is out of range: write 1 to 10000, or 0 for never"
                );
                D::Error::custom(text)
            })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    socket: Option<SocketPath>,
    metrics: Option<MetricsAddress>,
    metrics_anywhere: Option<bool>,
    listen: Option<ListenAddress>,
    tls_certificate: Option<PemFile>,
    tls_key: Option<PemFile>,
    state_dir: Option<PathBuf>,
    threads: Option<Threads>,
    cores: Option<CoreList>,
    ram_tier: Option<Memory>,
    pool_ram: Option<BTreeMap<String, Memory>>,
    host_reserve: Option<Reserve>,
    map_cache: Option<Memory>,
    request_memory: Option<Memory<REQUEST_MEMORY_MIN>>,
    journal_memory: Option<Folder>,
    drives: Option<Vec<DriveSpec>>,
    drive_deadline: Option<Deadline>,
    drive_slow_factor: Option<SlowFactor>,
    flash_daily_percent: Option<Percent>,
    alert_target: Option<Vec<api::v1::TargetCreate>>,
    scrub: Option<ScrubFile>,
    remote_paths: Option<RemotePaths>,
    alerts_link_local: Option<bool>,
    log_level: Option<LogLevel>,
}

impl Config {
    /// Loads a file; a missing file gives the defaults unless it is `required`.
    ///
    /// # Errors
    /// One line with the file, the line number and what to do.
    pub fn load(path: &Path, required: bool) -> Result<Self, ServeError> {
        let size = match std::fs::metadata(path) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => 0,
            Err(error) => {
                return Err(ServeError::new(format!(
                    "cannot read the configuration {}: {error}: specify its path with --config",
                    path.display()
                )));
            }
        };
        if size == 0 && !path.exists() {
            return Ok(Self::default());
        }
        if size > FILE_MAX {
            return Err(ServeError::new(format!(
                "the configuration {} has {size} bytes, more than a configuration may have: \
                 specify its path with --config",
                path.display()
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            ServeError::new(format!(
                "cannot read the configuration {}: {error}: it must be a text file readable by \
                 this user",
                path.display()
            ))
        })?;
        Self::parse(&text, path)
    }

    /// Parses the text of a file named `origin`.
    ///
    /// # Errors
    /// One line with the file, the line number and what to do.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, ServeError> {
        let file: File = toml::from_str(text).map_err(|error| explain(&error, text, origin))?;
        let default = Self::default();
        Ok(Self {
            socket: file.socket.map_or(default.socket, |path| path.0),
            metrics: file.metrics.map_or(default.metrics, |address| address.0),
            metrics_anywhere: file.metrics_anywhere.unwrap_or(default.metrics_anywhere),
            listen: file.listen.map_or(default.listen, |address| address.0),
            tls: tls_files(file.tls_certificate, file.tls_key, origin)?,
            state_dir: file.state_dir.unwrap_or(default.state_dir),
            threads: file.threads.map_or(default.threads, |count| count.0),
            cores: file.cores.map_or(default.cores, |cores| cores.0),
            ram_tier: file.ram_tier.map_or(default.ram_tier, |size| size.0),
            pool_ram: file.pool_ram.map_or(default.pool_ram, |sizes| {
                let sizes = sizes.into_iter();
                sizes.map(|(pool, size)| (pool, size.0)).collect()
            }),
            host_reserve: file
                .host_reserve
                .map_or(default.host_reserve, |reserve| reserve.0),
            map_cache: file.map_cache.map_or(default.map_cache, |size| size.0),
            request_memory: file
                .request_memory
                .map_or(default.request_memory, |size| size.0),
            journal_memory: file
                .journal_memory
                .map_or(default.journal_memory, |folder| folder.0),
            drives: file.drives.map_or(default.drives, |specs| {
                specs.into_iter().map(|spec| spec.0).collect()
            }),
            drive_deadline: file
                .drive_deadline
                .map_or(default.drive_deadline, |deadline| deadline.0),
            drive_slow_factor: file
                .drive_slow_factor
                .map_or(default.drive_slow_factor, |factor| factor.0),
            flash_daily_percent: file
                .flash_daily_percent
                .map_or(default.flash_daily_percent, |percent| percent.0),
            alert_targets: file.alert_target.unwrap_or_default(),
            scrub: file.scrub.unwrap_or_default().schedule(),
            remote_paths: file.remote_paths.unwrap_or_default(),
            alerts_link_local: file.alerts_link_local.unwrap_or_default(),
            log_level: file.log_level.unwrap_or(default.log_level),
        })
    }

    /// Validates values that may not have come from a file.
    ///
    /// # Errors
    /// One line that says what to do.
    pub fn check(&self) -> Result<(), ServeError> {
        check_socket_path(&self.socket).map_err(ServeError::new)?;
        match self.metrics {
            Some(at) if !self.metrics_anywhere && !at.ip().to_canonical().is_loopback() => {
                Err(ServeError::new(format!(
                    "other hosts can reach {at} and read the metrics without authentication: \
                     choose a loopback address like 127.0.0.1:{}, or add --metrics-anywhere",
                    at.port()
                )))
            }
            _ => Ok(()),
        }
    }
}

fn explain(error: &toml::de::Error, text: &str, origin: &Path) -> ServeError {
    let line = error.span().map_or(1, |span| {
        1 + text[..span.start.min(text.len())].matches('\n').count()
    });
    let message = error.message().replace('\n', ", ");
    let advice = if message.starts_with("unknown field") {
        "remove the line or correct the name"
    } else {
        "correct the line"
    };
    ServeError::new(format!("{}:{line}: {message}: {advice}", origin.display()))
}
