//! Moving data between tiers: promotion, write-back, eviction, pinning, and the settings and budgets that bound them.
//!
//! The placement policy (docs/placement.md) observes accesses and ranks extents. A background task keeps space free on the
//! fast tier: it evicts clean copies of the least valuable extents, and writes dirty chunks back to the slow tier in
//! address order (an elevator), 48 with one flush. Extents that leave the RAM cache and proved themselves are promoted, within their
//! volume's quota and daily write budget. Each move is logged with its cause.
//!
//! May call all parts but `shard`'s queues. Map, cache and io never decide about placement themselves.

pub(crate) mod access_stats;
mod dirty_index;
pub(crate) mod explain;
pub(crate) mod limits;
pub(crate) mod move_log;
pub(crate) mod mover;
pub(crate) mod moves;
pub(crate) mod pin_promoter;
mod pinning;
pub(crate) mod promote;
mod promotion_claim;
pub(crate) mod settings;
pub(crate) mod tier_index;
pub(crate) mod unreadable;
mod victims;
pub(crate) mod what_if;
pub(crate) mod write_budget;
pub(crate) mod writeback;
