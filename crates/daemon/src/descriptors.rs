//! The limit of open descriptors: drives, exports and connections have one each and more.

/// Descriptors that a daemon with many exports needs; of fewer it is told.
const WANTED: libc::rlim_t = 16_384;

/// Raises the limit to the most that this process may have (RLIMIT_NOFILE, getrlimit(2)): a shell gives 1,024.
pub fn raise_descriptors() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the value is written during the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if !known {
        return;
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the value is read during the call.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    if !raised || limit.rlim_max < WANTED {
        tracing::warn!(
            "at most {} descriptors may be open, which is little with many exports: raise LimitNOFILE of the unit, or \
             `ulimit -Hn`, to {WANTED}",
            limit.rlim_max
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_most_that_there_may_be() {
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
