//! Which cores loops run on.

use std::fmt;
use std::io;
use std::str::FromStr;

/// Cores that a list may name.
const MOST: usize = 4096;

/// Which cores the loops of an engine run on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Cores {
    /// On a machine whose memory is in several nodes (NUMA) each loop runs on the cores of one node, the nodes in
    /// turn, so that its memory is there, too. Elsewhere wherever the system puts it.
    #[default]
    Auto,
    /// Wherever the system puts them.
    Free,
    /// Each on a core of its own, the first loop on the first one.
    Own(Vec<usize>),
}

/// Why a text names no cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoresError(String);

impl fmt::Display for CoresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a list of cores: use auto, free, or a list like 0-3,8 with each core once",
            self.0
        )
    }
}

impl std::error::Error for CoresError {}

impl FromStr for Cores {
    type Err = CoresError;

    fn from_str(text: &str) -> Result<Self, CoresError> {
        match text {
            "auto" => Ok(Self::Auto),
            "free" => Ok(Self::Free),
            list => match listed(list) {
                Some(cores) if !cores.is_empty() => Ok(Self::Own(cores)),
                _ => Err(CoresError(list.to_owned())),
            },
        }
    }
}

/// The numbers of a list like `0-3,8`, in its order; none when it is no such list or names one twice.
fn listed(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        for core in first..=last {
            if cores.contains(&core) {
                return None;
            }
            cores.push(core);
        }
    }
    Some(cores)
}

impl Cores {
    /// Default number of loops: one per listed core, or per core that this process may use.
    pub fn count(&self) -> usize {
        match self {
            Self::Own(cores) => cores.len(),
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// The cores of each of `threads` loops; no cores are all that there are.
    ///
    /// # Errors
    /// When fewer cores are named than there are loops.
    pub fn of_loops(&self, threads: usize) -> io::Result<Vec<Vec<usize>>> {
        match self {
            Self::Free => Ok(vec![Vec::new(); threads]),
            Self::Auto => Ok(by_node(&nodes(), threads)),
            Self::Own(cores) if cores.len() < threads => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} cores are listed for {threads} threads: list as many, or set fewer threads",
                    cores.len()
                ),
            )),
            Self::Own(cores) => Ok(cores[..threads].iter().map(|core| vec![*core]).collect()),
        }
    }
}

/// The cores of each node of memory that has some.
fn nodes() -> Vec<Vec<usize>> {
    let folder = "/sys/devices/system/node";
    let read = |path: String| std::fs::read_to_string(path).ok();
    let Some(online) = read(format!("{folder}/online")).and_then(|list| listed(list.trim())) else {
        return Vec::new();
    };
    let of = |node| listed(read(format!("{folder}/node{node}/cpulist"))?.trim());
    online.into_iter().filter_map(of).collect()
}

fn by_node(nodes: &[Vec<usize>], threads: usize) -> Vec<Vec<usize>> {
    match nodes {
        [] | [_] => vec![Vec::new(); threads],
        nodes => nodes.iter().cycle().take(threads).cloned().collect(),
    }
}

/// Keeps the calling thread to these cores; none are all that there are.
///
/// # Errors
/// The system's error: none of the cores exists, or is allowed to this process.
pub(crate) fn keep_to(cores: &[usize]) -> io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    // One bit a core, in words as the system has them.
    let mut mask = [0u64; MOST / 64];
    for core in cores.iter().filter(|core| **core < MOST) {
        mask[core / 64] |= 1 << (core % 64);
    }
    // SAFETY: the mask is as long as is said; 0 is the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let names: Vec<String> = cores.iter().map(usize::to_string).collect();
    Err(io::Error::new(
        error.kind(),
        format!(
            "cannot run on core {}: {error}; list cores that this machine has and this process may use",
            names.join(", ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_named_by_lists_and_each_once() {
        assert_eq!("auto".parse(), Ok(Cores::Auto));
        assert_eq!("free".parse(), Ok(Cores::Free));
        assert_eq!("4,0-2".parse(), Ok(Cores::Own(vec![4, 0, 1, 2])));
        for wrong in [
            "",
            "3-1",
            "0,0",
            "0-2,1",
            "all",
            "0-",
            "-1",
            "5000",
            "0-99999999999",
        ] {
            let refused = wrong.parse::<Cores>().unwrap_err();
            assert!(refused.to_string().contains("0-3,8"), "{wrong}");
        }
    }

    #[test]
    fn loops_take_the_named_cores_in_order_or_the_nodes_in_turn() {
        let own = Cores::Own(vec![5, 3]);
        assert_eq!(own.count(), 2);
        assert_eq!(own.of_loops(2).unwrap(), [[5], [3]]);
        assert_eq!(own.of_loops(1).unwrap(), [[5]]);
        assert!(own.of_loops(3).unwrap_err().to_string().contains("2 cores"));
        let two = [vec![0, 1], vec![2, 3]];
        assert_eq!(by_node(&two, 3), [vec![0, 1], vec![2, 3], vec![0, 1]]);
        assert_eq!(by_node(&two[..1], 2), [vec![], vec![]]);
        assert_eq!(Cores::Free.of_loops(2).unwrap(), [vec![], vec![]]);
    }
}
