//! Which blocks of a pool are in use.
//!
//! Responsible for: handing groups of space to shards ([`GroupTable`]), and blocks and chunks of
//! a shard's groups to whoever stores something ([`Allocator`]); keeping freed space back until
//! nobody can need it any more ([`Quarantine`]); what is free of the pool ([`SpaceShared`]), and
//! what a volume may still store and is promised ([`Allowance`]).
//! Leaves out: what is stored, and when bitmaps are written.

mod account;
mod allocator;
mod deferred_free;
mod group_map;
mod group_table;
mod pool_space;
mod quota;
pub(crate) mod quota_claim;

pub use account::Books;
pub use allocator::{Allocator, NO_PAGE, Run};
pub use deferred_free::{Batch, Quarantine};
pub use format::GroupKey;
pub use group_table::{Class, GroupTable, VdriveSpace};
pub use pool_space::SpaceShared;
pub use quota::{Allowance, Refusal};
