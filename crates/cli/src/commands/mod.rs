//! The commands, a file an object.

mod access;
mod check;
mod diff;
mod drive;
mod explain;
mod export;
mod fill;
mod job;
mod lab;
mod offline;
mod placement;
mod pool;
mod pool_show;
mod schedule;
mod scrub;
mod snapshot;
mod stream;
mod top;
mod volume;
mod watch;
mod wear;
mod what_if;

pub use access::{audit, token};
pub use check::{check, repair};
pub use drive::drive;
pub use explain::explain;
pub use export::export;
pub use job::job;
pub use lab::lab;
pub use offline::{dump, restore};
pub use pool::pool;
pub use pool_show::vdrive;
pub use snapshot::snapshot;
pub use stream::{receive, send};
pub use top::top;
pub use volume::{map, volume};
