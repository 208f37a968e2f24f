//! Checkpoints: changed map pages and bitmaps are written elsewhere (copy on write), then one record makes them valid.
//!
//! Pages are written in the trees' order, children before parents, while hosts continue (a fuzzy checkpoint): a page may be newer than the
//! position from which recovery replays, as records set states and may be applied twice. The journal before that position
//! is truncated.
//!
//! May call the map, the journal and space. Leaves out: choosing the checkpoint to open (`recovery`).

pub(crate) mod dirty_pages;
pub(crate) mod marks;
pub(crate) mod metadata_pages;
pub(crate) mod root;
pub(crate) mod turns;
pub(crate) mod writer;
