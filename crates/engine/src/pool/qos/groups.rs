//! Groups of volumes that share a policy: kept in the labels.

use super::super::{Pool, Result, error, lock};
use crate::control::qos::{GroupChoice, QosGroup};
use crate::control::types::ErrorCode;
use format::{PoolConfig, QOS_GROUPS_MAX, QosGroupConfig};

impl Pool {
    fn group_status(&self, config: &PoolConfig, group: &QosGroupConfig) -> QosGroup {
        let volumes = config.volumes.iter();
        let pool_drives = volumes.filter(|volume| volume.group == group.id && !volume.deleting);
        QosGroup {
            name: group.name.clone(),
            volumes: pool_drives.map(|volume| volume.name.clone()).collect(),
            qos: self.group_qos(config, group),
        }
    }

    /// The pool's groups, in the order in which they were made.
    pub fn qos_groups(&self) -> Vec<QosGroup> {
        let config = self.config();
        let groups = config.qos.groups.iter();
        groups
            .map(|group| self.group_status(&config, group))
            .collect()
    }

    pub(super) fn find_group(&self, name: &str) -> Result<QosGroupConfig> {
        let config = lock(&self.config);
        match config.qos.groups.iter().find(|group| group.name == name) {
            Some(group) => Ok(group.clone()),
            None => error(
                ErrorCode::NotFound,
                format!(
                    "pool {} has no group '{name}': see `convect qos group list {}`",
                    self.name, self.name
                ),
            ),
        }
    }

    /// Applies a changed description, if its additional guarantees fit.
    fn set_groups(&self, planned: PoolConfig, overcommit: bool) -> Result<()> {
        if !overcommit {
            self.refuse_overcommit(&planned)?;
        }
        self.update_soon(|config| {
            config.qos.groups = planned.qos.groups;
            config.next_volume = planned.next_volume;
            Ok(())
        })?;
        self.tell_tenants()
    }

    fn group_named(&self, name: &str) -> Result<QosGroup> {
        let group = self.find_group(name)?;
        Ok(self.group_status(&self.config(), &group))
    }

    /// Creates a group without volumes.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_group_create`]'s.
    pub fn create_group(&self, choice: &GroupChoice) -> Result<QosGroup> {
        let _changing = lock(&self.changing);
        let policy = self.find_policy(&choice.policy)?;
        let mut planned = self.config();
        let group = QosGroupConfig {
            id: planned.next_volume,
            name: choice.name.clone(),
            policy: policy.id,
        };
        if let Err(wrong) = group.check() {
            return error(ErrorCode::Invalid, format!("a group would have {wrong}"));
        }
        if self.find_group(&group.name).is_ok() {
            let text = format!(
                "pool {} already has a group '{}': choose another name",
                self.name, group.name
            );
            return error(ErrorCode::Exists, text);
        }
        if planned.qos.groups.len() >= QOS_GROUPS_MAX {
            let text = format!("a pool has at most {QOS_GROUPS_MAX} groups: delete an empty one");
            return error(ErrorCode::Invalid, text);
        }
        planned.next_volume += 1;
        planned.qos.groups.push(group);
        self.set_groups(planned, choice.overcommit)?;
        self.group_named(&choice.name)
    }

    /// Changes the policy of a group.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_group_change`]'s.
    pub fn change_group(&self, choice: &GroupChoice) -> Result<QosGroup> {
        let _changing = lock(&self.changing);
        let group = self.find_group(&choice.name)?;
        let policy = self.find_policy(&choice.policy)?;
        let mut planned = self.config();
        let groups = planned.qos.groups.iter_mut();
        groups
            .filter(|known| known.id == group.id)
            .for_each(|known| known.policy = policy.id);
        self.set_groups(planned, choice.overcommit)?;
        self.group_named(&choice.name)
    }

    /// Deletes a group.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_group_delete`]'s.
    pub fn delete_group(&self, name: &str) -> Result<()> {
        let _changing = lock(&self.changing);
        let group = self.find_group(name)?;
        let pool_drives = self.group_named(name)?.volumes;
        if let Some(first) = pool_drives.first() {
            let text = format!(
                "group {name} has {} volumes ({first} is the first): remove them with `convect volume set --group \
                 none`",
                pool_drives.len()
            );
            return error(ErrorCode::Busy, text);
        }
        let mut planned = self.config();
        planned.qos.groups.retain(|known| known.id != group.id);
        self.set_groups(planned, true)
    }
}
