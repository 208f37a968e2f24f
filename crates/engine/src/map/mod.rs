//! The map: where each block of each volume and snapshot lies, with its checksum.
//!
//! Each layer of a snapshot chain has a **radix tree** of 4 KiB nodes (256 children, depth four) over chunks of 1 MiB. A
//! leaf is a chunk's map page: for each of 256 blocks its CRC32C, its slot, whether its home location is valid, and whether
//! it is inherited from a layer below. Changes are copy-on-write: a checkpoint writes changed pages elsewhere, and the
//! journal has what changed since.
//!
//! Pages are loaded on demand and evicted by a clock (second chance); of a frozen layer's sparse page a summary of a few
//! bytes a block stays. Unreferenced layers are merged into the one below, chunk by chunk, without waiting
//! within a chunk.
//!
//! May call the journal, which each change of a page is appended to, and space, for what it replaces. Leaves out: reading
//! and writing data.

pub(crate) mod active_layers;
mod bulk_load;
pub(crate) mod diff;
mod heatmap;
pub(crate) mod layer_path;
pub(crate) mod layer_table;
pub(crate) mod locate;
mod merge;
mod mutate;
pub(crate) mod page;
pub(crate) mod page_cache;
mod page_summary;
pub(crate) mod radix;
mod unique_space;
