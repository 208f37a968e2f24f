//! How a pool is to be opened.

/// Handling of missing drives, in a pool that can run without them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissingDrives {
    /// The pool stays closed.
    #[default]
    Refuse,
    /// It opens without those that are certainly gone: their device or file is not there, or is truncated. One that is
    /// there and cannot be opened keeps it closed.
    Gone,
    /// It opens without them.
    Allow,
}

/// How a pool is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportOptions {
    /// Handling of missing drives.
    pub missing: MissingDrives,
    /// It opens though drives, or metadata, are older than its newest label says; what was written since is lost.
    pub accept_old: bool,
    /// Generation of a label that the caller has seen of the pool: it does not open from drives that are all older
    /// unless `accept_old`. 0: none.
    pub seen: u64,
}

impl From<bool> for ImportOptions {
    /// Without drives that are missing, where the others can do without; or only with all.
    fn from(degraded: bool) -> Self {
        let missing = match degraded {
            true => MissingDrives::Allow,
            false => MissingDrives::Refuse,
        };
        Self {
            missing,
            ..Self::default()
        }
    }
}
