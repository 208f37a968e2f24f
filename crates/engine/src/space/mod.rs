//! Which blocks of a pool are in use.
//!
//! Responsible for: handing groups of space to shards ([`GroupTable`]), and blocks and chunks of
//! a shard's groups to whoever stores something ([`Allocator`]); keeping freed space back until
//! nobody can need it any more ([`Quarantine`]); what is free of the pool ([`SpaceShared`]), and
//! what a volume may still store and is promised ([`Allowance`]).
//! Leaves out: what is stored, and when bitmaps are written.

mod allocator;
mod allowance;
mod books;
mod by_group;
mod quarantine;
mod shared;
mod table;

pub use allocator::{Allocator, NO_PAGE, Run};
pub use allowance::{Allowance, Refusal};
pub use books::Books;
pub use format::GroupKey;
pub use quarantine::{Batch, Quarantine};
pub use shared::SpaceShared;
pub use table::{Class, GroupTable, VdriveSpace};
