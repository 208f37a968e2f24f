//! What the daemon does, as plain blocking calls: the engine's, and exports on top of them.
//!
//! [`Manager`] is the composition root: it makes the parts and gives each what it needs, and no part knows it. A part
//! owns its state; beside the engine it sees only parts of lines above its own in this table.
//!
//! | part | responsible for | sees |
//! | --- | --- | --- |
//! | `registry` | which pools are open or should be, the lock of changes | – |
//! | `anchors` | the end of the log of changes in the pools' labels | – |
//! | `status_cache` | one status of all pools a second, shared by all readers | – |
//! | `health`, `wear` | what disks report of themselves, what was written to them | – |
//! | `jobs` | jobs of this daemon and of those before it | registry |
//! | `exports` | exports, sessions, hosts' memory | registry |
//! | `fills` | how pools fill | exports |
//! | `history` | figures over time | exports |
//! | `schedules` | snapshots that are due | registry, exports |
//! | `transfers` | snapshots sent and received as streams | registry, exports, jobs |
//! | `volumes` | volumes | registry, exports, jobs |
//! | `snapshots` | snapshots and clones | registry, exports, volumes |
//! | `qos` | policies, groups, what is promised | registry, volumes, history |
//! | `diagnostics` | latency by source, what-if, why a block lies where it does | registry, status_cache, volumes |
//! | `playback` | maps of volumes as they were | status_cache, volumes |
//! | `pools` | pools, their vdrives and scrubs | registry, jobs, exports, anchors, fills, wear, health |
//! | `drives` | single drives | wear, health |
//! | `notifications` | events, alerts and their targets | – |
//! | `observe` | what is wrong, found once a second | all above but volumes, pools and what stands on them |
//! | `fleet` | other daemons beside this one | pools, jobs, notifications |
//! | `live` | what viewers are told | status_cache, jobs, volumes |
//! | `metrics` | what a scrape is told | registry, status_cache, exports, jobs, pools, diagnostics |
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

pub use core::{Manager, ManagerConfig};
pub use health::SmartConfig;
pub use transfers::{Receiving, Sending};
