//! Space: which blocks of a pool are in use, and by whom.
//!
//! The pool's space is divided into groups ([`GroupTable`], the only part that shards share), which are handed to shards.
//! Within its groups a shard allocates slots and homes from bitmaps ([`Allocator`]), next-fit, so that what is written
//! together lies together. Freed space is a **deferred free** ([`DeferredFrees`]): it is reused once the record that freed
//! it is durable and reads that began before have ended (epoch-based reclamation). What is free of the pool is one number
//! ([`SpaceShared`]); what a volume may still store and is promised is another ([`Allowance`]): both are taken in one
//! step, before a map page changes.
//!
//! Leaves out: what is stored, and when bitmaps are written.

mod account;
mod allocator;
mod deferred_free;
mod group_map;
mod group_table;
mod pool_space;
mod quota;
pub(crate) mod quota_claim;
mod tiers;

pub use account::Books;
pub use allocator::{Allocator, NO_PAGE, Run};
pub use deferred_free::{Batch, DeferredFrees};
pub use format::GroupKey;
pub use group_table::{Class, GroupTable, VdriveSpace};
pub use pool_space::SpaceShared;
pub use quota::{Allowance, Refusal};
pub(crate) use tiers::Tiers;
