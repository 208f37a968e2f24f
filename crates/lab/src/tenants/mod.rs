//! Several tenants of one pool at the same time: hosts with different loads, and the performance of each in every window of
//! 100 ms.
//!
//! A tenant is one or many sessions with the same kind of load. One thread drives all sessions of a tenant, or of several:
//! 600 NBD connections are watched by one epoll instance, and the few rings of vhost-user-blk are examined in turn. A window
//! keeps seven numbers and no histogram, so that the memory of a run grows with its length and not with its rate.
//! Leaves out: the purpose of the loads, and conclusions from the windows (`storm`, `promises`).

mod crowd;
mod driver;
mod meter;
mod poller;
mod session;
mod source;
mod stage;
#[cfg(test)]
mod tests;

pub use crowd::{Attained, Crowd, Outcome, Tenant};
pub use meter::{WINDOW_NS, Window};
pub use session::Session;
pub use source::{Closed, Next, Open, Shape, Source};
pub use stage::{Drives, POOL, Stage};
