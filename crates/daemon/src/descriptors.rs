//! The limit of open file descriptors: every drive, export and connection needs at least one.

/// Descriptors that a daemon with many exports needs; a lower limit is logged.
const WANTED: libc::rlim_t = 16_384;

/// Raises the soft limit to the hard limit (RLIMIT_NOFILE, getrlimit(2)): shells set it to 1,024.
pub fn raise_descriptors() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes the value during the call only.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if !known {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the kernel reads the value during the call only.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    if !raised || limit.rlim_max < WANTED {
        tracing::warn!(
            "the limit of {} open file descriptors is low for many exports: raise LimitNOFILE of \
             the unit, or `ulimit -Hn`, to {WANTED}",
            limit.rlim_max
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_is_raised_to_the_hard_limit() {
        raise_descriptors();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits
            .lines()
            .find(|line| line.starts_with("Max open files"))
            .unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[3], words[4], "{line}");
    }
}
