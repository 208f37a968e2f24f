//! The machine in a line.

use crate::failure::{Failure, Result, While};
use std::fs;

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Processor, cores, memory and kernel, as far as the system tells.
pub fn describe() -> String {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = field(&processor, "model name").unwrap_or_else(|| "processor".to_owned());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = field(&memory, "MemTotal")
        .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kib| kib >> 20);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores ({processor}), {memory} GiB of memory, Linux {}",
        kernel.trim()
    )
}

/// A memory figure of a process from the system, in bytes.
fn memory_bytes(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).during(|| path.clone())?;
    let kib = field(&text, name);
    let kib = kib.and_then(|kib| kib.trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map(|kib| kib << 10)
        .ok_or_else(|| Failure::new(format!("{path} is not as expected")))
}

/// Bytes of memory that a process has.
///
/// # Errors
/// When there is no such process.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    memory_bytes(pid, "VmRSS:")
}

/// Those of them that other processes share: files in memory, such as guests' memory.
///
/// # Errors
/// When there is no such process.
pub fn shared_bytes(pid: u32) -> Result<u64> {
    memory_bytes(pid, "RssShmem:")
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf takes a number and gives one.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// Processor time of a process so far, in seconds: all its threads, and the processes that it has started and
/// that still run.
///
/// # Errors
/// When there is no such process.
pub fn processor_seconds(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).during(|| path.clone())?;
    // The name may hold anything; the fields are counted from its closing bracket on.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<f64>().ok())
    };
    let per_second = ticks_per_second();
    let own = match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => (user + system) / per_second,
        _ => return Err(Failure::new(format!("{path} is not as expected"))),
    };
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let pids = children
        .split_whitespace()
        .filter_map(|pid| pid.parse().ok());
    // One that ends meanwhile counts no more.
    Ok(pids.fold(own, |sum, pid| sum + processor_seconds(pid).unwrap_or(0.0)))
}

fn clock_seconds(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time lives through the call, which cannot fail for the clocks of this process.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processor time of this process so far, in seconds.
pub fn own_processor_seconds() -> f64 {
    clock_seconds(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the thread that calls so far, in seconds.
pub fn thread_processor_seconds() -> f64 {
    clock_seconds(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Takes as many descriptors as the system allows, for many connections.
///
/// # Errors
/// When the system does not tell how many.
pub fn raise_descriptors() -> std::io::Result<()> {
    let checked = |result: i32| match result {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the struct lives through the call, which fills it.
    checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the struct lives through the call.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })
}

fn bind(set: &libc::cpu_set_t) -> std::io::Result<()> {
    // SAFETY: the set lives through the call; 0 is the thread that calls.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Binds the thread that calls to a core.
///
/// # Errors
/// When there is no such core.
pub fn bind_to_core(core: usize) -> std::io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all zeroes is an empty set, and the number was checked to be in it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        set
    };
    bind(&set)
}

/// Does something while the thread that calls is bound to a core, so that the processes which it starts stay
/// there.
///
/// # Errors
/// When there is no such core, or what is done fails.
pub fn on_core<T>(core: usize, what: impl FnOnce() -> Result<T>) -> Result<T> {
    // SAFETY: all zeroes is an empty set, which the call fills; it lives through it.
    let before = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    bind_to_core(core).during(|| format!("cannot use core {core}"))?;
    let result = what();
    bind(&before)?;
    result
}

/// Processor time that all cores have spent so far on something, in seconds; what the host took for others is part
/// of it.
///
/// # Errors
/// When the system does not tell.
pub fn busy_seconds() -> Result<f64> {
    let path = "/proc/stat";
    let text = fs::read_to_string(path).during(|| path.to_owned())?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else {
        return Err(Failure::new(format!("{path} is not as expected")));
    };
    Ok((user + nice + system + irq + softirq + steal) / ticks_per_second())
}
