//! Recovery: opens the newest valid checkpoint of a shard and replays the journal after it (redo only).
//!
//! Records up to the last durable mark are applied as they are. Later ones may have been persisted without their data, so each block
//! counts only if its data is there with its checksum. What a record that is left out had replaced is reconciled with
//! the bitmaps. A new checkpoint in a new epoch ends it, before anything is served.
//!
//! May call the map, the journal, space and vdrives.

mod open;
pub(crate) mod open_checkpoint;
mod reconcile;
mod replay;
mod unproven;
