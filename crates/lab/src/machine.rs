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

/// Bytes of memory that a process has.
///
/// # Errors
/// When there is no such process.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).during(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kib.map(|kib| kib << 10)
        .ok_or_else(|| Failure::new(format!("{path} is not as expected")))
}

/// Processor time of a process so far, in seconds, over all its threads.
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
    // SAFETY: sysconf takes a number and gives one.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) / per_second),
        _ => Err(Failure::new(format!("{path} is not as expected"))),
    }
}

/// Processor time of this process so far, in seconds.
pub fn own_processor_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time lives through the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Binds a process, or with 0 the thread that calls, to a core. Allocates nothing.
///
/// # Errors
/// When there is no such core.
pub fn bind_to_core(pid: i32, core: usize) -> std::io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(std::io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all zeroes is an empty set, and the number was checked to be in it.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match result {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
