//! Fair shares of resources by origin, so that no peer can take all of them: [`Origin`] identifies the owner,
//! [`OriginCounts`] how much each origin holds, and [`ShareLimits`] how much it may. [`Shares`] are places that are
//! given or refused. Who is disconnected where there is no place is decided by their owner: what counts for that
//! (logged in, idle, stalled) differs by protocol.

mod counts;
mod origin;
mod places;

pub use counts::{Full, OriginCounts, ShareLimits};
pub use origin::{Origin, PeerAddress};
pub use places::{Share, Shares};
