//! This daemon together with the other daemons that it monitors.

use super::Result;
use super::jobs::Jobs;
use super::notifications::Notifications;
use super::pools::Pools;
use crate::names::check_name;
use crate::servers::{SeenPool, ServerSummary, Servers};
use crate::state::StateFiles;
use api::v1;
use std::sync::Arc;

/// This daemon and the monitored ones.
pub struct Fleet {
    servers: Servers,
    pools: Arc<Pools>,
    notifications: Arc<Notifications>,
    jobs: Arc<Jobs>,
}

impl Fleet {
    /// The fleet of a state folder, not loaded yet.
    pub(super) fn new(
        files: &StateFiles,
        pools: &Arc<Pools>,
        notifications: &Arc<Notifications>,
        jobs: &Arc<Jobs>,
    ) -> Self {
        Self {
            servers: Servers::new(files),
            pools: Arc::clone(pools),
            notifications: Arc::clone(notifications),
            jobs: Arc::clone(jobs),
        }
    }

    /// Loads the stored servers.
    pub(super) fn load(&self) {
        self.servers.load();
    }

    /// Summary of this daemon's pools, alerts and jobs.
    fn own_seen(&self) -> ServerSummary {
        let list = self.pools.list().unwrap_or(v1::PoolList {
            items: Vec::new(),
            absent: Vec::new(),
        });
        let absent = list.absent.into_iter().map(|pool| SeenPool {
            name: pool.name,
            state: "absent".to_owned(),
            ..SeenPool::default()
        });
        let open = list.items.into_iter().map(|pool| {
            let counters = self.pools.counters(&pool.name).ok();
            SeenPool {
                state: pool.state,
                capacity: pool.capacity,
                used: pool.used,
                seconds_to_full: pool
                    .fills
                    .iter()
                    .filter_map(|fill| fill.seconds_to_full)
                    .min(),
                counted: counters
                    .map(|did| [did.reads, did.writes, did.read_bytes, did.write_bytes]),
                name: pool.name,
            }
        });
        let alerts = self.notifications.alert_list().items;
        let jobs = self.jobs.recent();
        let running = jobs.iter().filter(|job| job.state == v1::JobState::Running);
        ServerSummary {
            pools: absent.chain(open).collect(),
            alerts_open: alerts.len() as u64,
            alerts: alerts
                .into_iter()
                .map(|alert| (alert.severity, alert.message))
                .collect(),
            jobs_running: running.count() as u64,
        }
    }

    /// Summaries of this daemon and the others, which are polled only while a client is interested,
    /// every few seconds at most.
    pub fn list(&self) -> v1::ServerList {
        v1::ServerList {
            this: self.servers.own(&self.own_seen()),
            items: self.servers.list(),
        }
    }

    /// Adds a daemon.
    ///
    /// # Errors
    /// When it is invalid, its name is taken, or it cannot be stored.
    pub fn create(&self, request: v1::ServerCreate) -> Result<v1::Server> {
        check_name("a server", &request.name)?;
        self.servers.create(request)
    }

    /// Removes a daemon.
    ///
    /// # Errors
    /// When it does not exist, or the change cannot be stored.
    pub fn remove(&self, name: &str) -> Result<()> {
        self.servers.remove(name)
    }
}
