//! The daemon's operations as plain blocking calls: the engine's, and exports, jobs, events and history on top of them.
//!
//! [`Manager`] is the composition root: it creates the parts and passes each its dependencies. A
//! part owns its state; besides the engine it depends only on parts above it in this table.
//!
//! | part | responsible for | sees |
//! | --- | --- | --- |
//! | `registry` | which pools are open or should be, calls of the engine about one, the lock of changes | – |
//! | `anchors` | the end of the audit log in the pools' labels | – |
//! | `status_cache` | one status of all pools a second, shared by all readers | – |
//! | `health`, `wear` | SMART health of disks, bytes written to them | – |
//! | `jobs` | jobs of this daemon and of those before it | registry |
//! | `exports` | exports, sessions, hosts' memory | registry |
//! | `fills` | fill levels of pools and their trend | exports |
//! | `history` | metrics over time | exports |
//! | `schedules` | snapshot schedules | registry, exports |
//! | `transfers` | snapshots sent and received as streams | registry, exports, jobs |
//! | `volumes` | volumes | registry, exports, jobs |
//! | `snapshots` | snapshots and clones | registry, exports, volumes |
//! | `qos` | policies, groups, admission checks | registry, volumes, history |
//! | `diagnostics` | latency by tier, forecasts, placement of a block | registry, status_cache, volumes |
//! | `playback` | recorded maps of volumes | status_cache, volumes |
//! | `pools` | pools, their vdrives and scrubs | registry, jobs, exports, anchors, fills, wear, health |
//! | `drives` | single drives | registry, wear, health |
//! | `notifications` | events, alerts and their targets | – |
//! | `why` | why a volume is slow | registry, status_cache, jobs, history, notifications |
//! | `observe` | findings, once a second | registry, status_cache, exports, jobs, schedules, fills, wear, health, history, notifications |
//! | `fleet` | other daemons beside this one | pools, jobs, notifications |
//! | `live` | live status for viewers | status_cache, jobs, volumes |
//! | `metrics` | Prometheus metrics | registry, status_cache, exports, jobs, pools, diagnostics |
//! | `ram` | RAM tiers while the host is short of memory | – |

mod anchors;
mod core;
mod diagnostics;
mod drives;
mod exports;
mod fills;
mod findings;
mod fleet;
mod health;
mod history;
mod jobs;
mod live;
mod metrics;
mod notifications;
mod observe;
mod playback;
mod pools;
mod promises;
mod qos;
mod ram;
mod registry;
mod schedules;
mod snapshots;
mod status_cache;
mod transfers;
mod uses;
mod volumes;
mod wear;
mod why;

/// What parts answer.
type Result<T> = std::result::Result<T, api::v1::Problem>;

pub use core::{Manager, ManagerConfig};
pub use health::SmartConfig;
pub use transfers::{Receiving, Sending};
