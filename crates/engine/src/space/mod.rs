//! Which blocks of a pool are in use.
//!
//! Responsible for: handing groups of space to shards ([`GroupTable`]), and blocks and chunks of
//! a shard's groups to whoever stores something ([`Allocator`]); keeping freed space back until
//! nobody can need it any more ([`Quarantine`]); what a volume may still store ([`Allowance`]).
//! Leaves out: what is stored, and when bitmaps are written.

mod allocator;
mod allowance;
mod books;
mod quarantine;
mod table;

pub use allocator::{Allocator, NO_PAGE, Run};
pub use allowance::Allowance;
pub use books::Books;
pub use format::GroupKey;
pub use quarantine::{Batch, Quarantine};
pub use table::{Class, GroupTable, SpaceShared, VdriveSpace};
