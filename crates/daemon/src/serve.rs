//! Starts the daemon from its configuration, and stops it.

use crate::clock::now_s;
use crate::delivery::{TARGETS_MAX, deliver};
use crate::{Config, Control, FRONT_ENDS, LogLevel, Manager, ManagerConfig, ServeError, StateDir};
use crate::{RamPlan, check_memory, descriptors::raise_descriptors, http, notify};
use block::Lasting;
use drives::LastingFiles;
use reactor::FrontEnd;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Retry interval of exports that could not be started.
const RETRY_TIME: Duration = Duration::from_secs(30);
/// Interval of checks for due work, and of updates of the list of open pools.
const REFRESH_TIME: Duration = Duration::from_secs(10);
/// Number of threads of the daemon's own tasks: one for each function spawned by `run`, live data,
/// and the shutdown.
const OWN_WORKERS: usize = 8;
/// Maximum number of blocking threads: the sum of the limits of all users, so that no task waits
/// for a thread of another.
const THREADS_MAX: usize = http::WORKERS_MAX + http::SCRAPE_WORKERS + OWN_WORKERS + 2 * TARGETS_MAX;
/// Minimum and maximum interval of observations. In between the interval is the duration of the
/// last one times [`OBSERVE_DUTY`].
const OBSERVE_MIN: Duration = Duration::from_secs(1);
const OBSERVE_MAX: Duration = Duration::from_secs(10);
const OBSERVE_DUTY: u32 = 100;
/// Time slice of recording maps for playback, at a duty cycle of 2 %: after a longer slice the pause
/// is longer, up to the maximum.
const RECORD_TIME: Duration = Duration::from_millis(20);
const RECORD_DUTY: u32 = 50;
const RECORD_MIN: Duration = Duration::from_secs(1);
const RECORD_MAX: Duration = Duration::from_secs(600);
/// Interval of disk health polls.
const DISKS_TIME: Duration = Duration::from_secs(600);
/// Interval of checks of the host's memory.
const MEMORY_TIME: Duration = Duration::from_secs(1);
/// Exit code after a second signal during the shutdown.
const EXIT_AT_ONCE: i32 = 1;

fn start_logging(level: LogLevel) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Trace => tracing::Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .finish();
    // Keep the logger of an embedding program.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Completes at the first SIGTERM or SIGINT; the second one exits immediately.
async fn signals() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        tracing::error!("cannot install signal handlers: this daemon stops only when it is killed");
        return std::future::pending().await;
    };
    let mut next = async move || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    next().await;
    tokio::spawn(async move {
        next().await;
        tracing::warn!("exiting immediately");
        std::process::exit(EXIT_AT_ONCE);
    });
}

/// Memory for the journals' tails that outlives the daemon. It affects only write latency, not
/// safety.
fn journal_memory(folder: Option<&Path>) -> Lasting {
    let Some(folder) = folder else {
        return Lasting::NONE;
    };
    match LastingFiles::within(folder) {
        Ok(files) => Lasting::of(Arc::new(files)),
        Err(error) => {
            tracing::warn!(
                %error,
                "no journal memory in {}: writes wait until their records are on a drive; set \
                 journal_memory to a folder on tmpfs, or to \"off\"",
                folder.display()
            );
            Lasting::NONE
        }
    }
}

/// Serves with the real engine and protocols until SIGTERM or SIGINT. Prints `ready` on stdout and
/// notifies the service manager once pools are open and requests are served.
///
/// # Errors
/// One line that says what to do; everything is cleaned up.
pub fn serve(config: &Config) -> Result<(), ServeError> {
    start_logging(config.log_level);
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    check_memory(config, &meminfo)?;
    raise_descriptors();
    let start = || {
        let engine = engine::Engine::start(&engine::EngineConfig {
            threads: config.threads,
            cores: config.cores.clone(),
            ram_tier: config.ram_tier,
            map_cache: config.map_cache,
            drive_limits: engine::DriveLimits {
                deadline_ns: config.drive_deadline.0.as_nanos() as u64,
                slow_factor: config.drive_slow_factor,
            },
            lasting: journal_memory(config.journal_memory.as_deref()),
            ..engine::EngineConfig::default()
        });
        match engine {
            Ok(engine) => Ok(Arc::new(engine) as Arc<dyn Control>),
            Err(error) => Err(ServeError::new(format!("cannot start the engine: {error}"))),
        }
    };
    let announce = || {
        println!("ready");
        notify::notify("READY=1");
    };
    run(config, start, FRONT_ENDS, announce, signals())
}

/// Serves with the given engine and protocols until `stop` completes, which is polled within the
/// runtime; `announce` is called once requests are served.
///
/// # Errors
/// One line that says what to do; everything is cleaned up.
pub fn run(
    config: &Config,
    start: impl FnOnce() -> Result<Arc<dyn Control>, ServeError>,
    front_ends: &'static [FrontEnd],
    announce: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    config.check()?;
    let state = StateDir::open(&config.state_dir)?;
    let socket = http::bind(&config.socket)?;
    let metrics = config.metrics.map(http::bind_metrics).transpose()?;
    let listen = config
        .listen
        .map(|at| http::bind_network(config, state.files(), at));
    let network = listen.transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS_MAX)
        .build()
        .map_err(|error| ServeError::new(format!("cannot create an event loop: {error}")))?;
    let ram = RamPlan {
        each: config.ram_tier,
        pools: config.pool_ram.clone(),
        reserve: config.host_reserve,
    };
    let settings = ManagerConfig {
        scrubs: config.scrub,
        ram,
        request_memory: config.request_memory,
        flash_daily_percent: config.flash_daily_percent,
        targets: config.alert_targets.clone(),
        alerts_link_local: config.alerts_link_local,
        remote_paths: config.remote_paths.clone(),
        ..ManagerConfig::default()
    };
    let manager = Arc::new(Manager::new(start()?, front_ends, state, settings));
    if let Err(error) = manager.start(&config.drives) {
        manager.stop();
        return Err(error);
    }
    let served = runtime.block_on(async {
        tokio::spawn(refresh(Arc::clone(&manager)));
        tokio::spawn(retry_exports(Arc::clone(&manager)));
        tokio::spawn(fit_ram(Arc::clone(&manager)));
        tokio::spawn(observe(Arc::clone(&manager)));
        tokio::spawn(record(Arc::clone(&manager)));
        tokio::spawn(ask_disks(Arc::clone(&manager)));
        let notifications = &manager.notifications;
        let (events, targets) = (notifications.events(), notifications.targets());
        let link_local = notifications.link_local();
        tokio::spawn(deliver(Arc::clone(events), Arc::clone(targets), link_local));
        announce();
        let served = http::serve(&socket, metrics, network, Arc::clone(&manager), stop).await;
        notify::notify("STOPPING=1");
        tracing::info!("stopping");
        manager.access.flush();
        let stopping = Arc::clone(&manager);
        // A panic there was reported already.
        let _ = tokio::task::spawn_blocking(move || stopping.stop()).await;
        served
    });
    runtime.shutdown_timeout(Duration::ZERO);
    served.map_err(|error| ServeError::new(format!("cannot serve the socket: {error}")))
}

/// Retries exports, as their addresses may have become available.
async fn retry_exports(manager: Arc<Manager>) {
    loop {
        tokio::time::sleep(RETRY_TIME).await;
        let trying = Arc::clone(&manager);
        let _ = tokio::task::spawn_blocking(move || trying.exports.retry()).await;
    }
}

/// Memory can run short within seconds.
async fn fit_ram(manager: Arc<Manager>) {
    loop {
        tokio::time::sleep(MEMORY_TIME).await;
        let manager = Arc::clone(&manager);
        let work = move || {
            let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
            manager.ram.fit(&meminfo);
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

/// Observes conditions within seconds, using at most a hundredth of a core.
async fn observe(manager: Arc<Manager>) {
    loop {
        let began = Instant::now();
        let looking = Arc::clone(&manager);
        let _ = tokio::task::spawn_blocking(move || looking.observer.observe_now()).await;
        let took = began.elapsed();
        let period = (took * OBSERVE_DUTY).clamp(OBSERVE_MIN, OBSERVE_MAX);
        tokio::time::sleep(period.saturating_sub(took)).await;
    }
}

/// Records maps for playback with a duty cycle of 2 %.
async fn record(manager: Arc<Manager>) {
    loop {
        let began = Instant::now();
        let looking = Arc::clone(&manager);
        let work = move || looking.playback.record(now_s(), RECORD_TIME);
        let _ = tokio::task::spawn_blocking(work).await;
        let took = began.elapsed();
        let period = (took * RECORD_DUTY).clamp(RECORD_MIN, RECORD_MAX);
        tokio::time::sleep(period.saturating_sub(took)).await;
    }
}

/// Polls the health of disks rarely, as it may stall a disk for a moment.
async fn ask_disks(manager: Arc<Manager>) {
    loop {
        let asking = Arc::clone(&manager);
        let _ = tokio::task::spawn_blocking(move || asking.health.ask_disks(now_s())).await;
        tokio::time::sleep(DISKS_TIME).await;
    }
}

async fn refresh(manager: Arc<Manager>) {
    loop {
        tokio::time::sleep(REFRESH_TIME).await;
        let manager = Arc::clone(&manager);
        let work = move || {
            manager.registry.probe_state();
            manager.registry.refresh();
            manager.anchors.keep();
            manager.access.flush();
            manager.notifications.events().flush();
            manager.pools.scrub_what_is_due_now();
            manager.schedules.take_what_is_due_now();
            manager.fills.watch_now();
            manager.wear.watch_now();
        };
        let _ = tokio::task::spawn_blocking(work).await;
    }
}
