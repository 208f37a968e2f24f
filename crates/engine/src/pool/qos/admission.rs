//! Admission: guaranteed minimums, compared with the pool's measured capacity.

use super::super::shards::ask_all;
use super::super::{Pool, Result, error};
use super::status;
use crate::control::qos::{QosCheck, QosClaim, QosVerdict};
use crate::control::types::ErrorCode;
use format::{PoolConfig, QosPolicyConfig};
use qos::Costs;
use units::format_bytes;

/// A whole, in millionths.
const WHOLE_PPM: u64 = 1_000_000;
/// Guarantees without a warning, in millionths of a pool's measured capacity.
const AMPLE_PPM: u64 = 800_000;
/// Name of a planned volume.
const PLANNED: &str = "(planned)";

/// Measured capacity of a pool's shards.
struct Shown {
    costs: Vec<Costs>,
}

impl Shown {
    /// Operations of 4 KiB per second of the whole pool; `None` while no shard has measured any. A shard without a measurement
    /// is assumed to be like the others.
    fn iops(&self) -> Option<u64> {
        let shown: Vec<u64> = self.costs.iter().filter_map(Costs::iops).collect();
        let sum: u64 = shown.iter().sum();
        let mean = sum.checked_div(shown.len() as u64)?;
        Some(mean.saturating_mul(self.costs.len() as u64))
    }

    /// A policy's minimum as a share of that, in millionths.
    fn share_ppm(&self, policy: &QosPolicyConfig) -> Option<u64> {
        let floors = self.costs.iter();
        let floors: Vec<u64> = floors
            .filter_map(|costs| costs.floor(policy.min_iops, policy.min_bandwidth))
            .collect();
        let mean = floors
            .iter()
            .sum::<u64>()
            .checked_div(floors.len() as u64)?;
        // Nanoseconds per second, with one second per shard.
        Some(mean / 1000 / self.costs.len().max(1) as u64)
    }
}

fn percent(ppm: u64) -> String {
    format!("{:.1} %", ppm as f64 / 1e4)
}

impl Pool {
    /// Refuses a description whose guarantees exceed the measured capacity or the fast tier, and the present guarantees.
    pub(super) fn refuse_overcommit(&self, planned: &PoolConfig) -> Result<()> {
        self.check_floors(planned, 0)?;
        let before = self.check_with(&self.config(), None)?;
        let after = self.check_with(planned, None)?;
        match after.total_ppm > before.total_ppm {
            true => self.refuse(&after),
            false => Ok(()),
        }
    }

    pub(super) fn refuse(&self, check: &QosCheck) -> Result<()> {
        match check.verdict {
            QosVerdict::Refused => error(
                ErrorCode::Refused,
                format!(
                    "{}: choose smaller minimums, or --overcommit to have the lowest levels miss theirs first",
                    check.message
                ),
            ),
            QosVerdict::Accepted | QosVerdict::Warning => Ok(()),
        }
    }

    /// Whether the minimums fit, with a number of volumes of a planned policy.
    ///
    /// # Errors
    /// As [`crate::Engine::qos_check`]'s.
    pub fn check_qos(&self, planned: Option<(&str, usize)>) -> Result<QosCheck> {
        let planned = match planned {
            Some((name, count)) => Some((self.find_policy(name)?, count)),
            None => None,
        };
        let planned = planned.as_ref().map(|(policy, count)| (policy, *count));
        let config = self.config();
        let mut check = self.check_with(&config, planned)?;
        let new = planned.map_or(0, |(policy, count)| {
            policy.fast_floor.saturating_mul(count as u64)
        });
        (check.fast_guaranteed, check.fast_limit) = self.fast_claims(&config, new);
        if check.fast_guaranteed > check.fast_limit {
            check.verdict = QosVerdict::Refused;
            check.message = format!(
                "policies, pins and floors would guarantee {} of the fast tier of pool {}, and {} of it can be guaranteed; {}",
                format_bytes(check.fast_guaranteed),
                self.name,
                format_bytes(check.fast_limit),
                check.message
            );
        }
        Ok(check)
    }

    pub(super) fn check_with(
        &self,
        config: &PoolConfig,
        planned: Option<(&QosPolicyConfig, usize)>,
    ) -> Result<QosCheck> {
        let costs = ask_all(&self.shards, |shard| async move { shard.costs() })?;
        let shown = Shown { costs };
        let claim = |volume: &str, group: bool, policy: QosPolicyConfig| QosClaim {
            volume: volume.to_owned(),
            group,
            share_ppm: shown.share_ppm(&policy),
            policy: status(policy),
        };
        let qos = &config.qos;
        let volumes = config.volumes.iter().filter(|volume| !volume.deleting);
        let alone = volumes.filter(|volume| qos.group(volume.group).is_none());
        let mut claims: Vec<QosClaim> = alone
            .filter_map(|volume| Some(claim(&volume.name, false, qos.policy(volume.policy)?)))
            .collect();
        let groups = qos.groups.iter();
        claims.extend(
            groups.filter_map(|group| Some(claim(&group.name, true, qos.policy(group.policy)?))),
        );
        if let Some((policy, count)) = planned {
            claims.extend((0..count).map(|_| claim(PLANNED, false, policy.clone())));
        }
        claims.sort_by(|one, other| {
            (one.policy.level, &one.volume).cmp(&(other.policy.level, &other.volume))
        });
        let capacity_iops = shown.iops();
        let sum = || claims.iter().filter_map(|claim| claim.share_ppm).sum();
        let total_ppm: Option<u64> = capacity_iops.map(|_| sum());
        let (verdict, message) = self.judge(capacity_iops.zip(total_ppm), claims.len());
        Ok(QosCheck {
            capacity_iops,
            claims,
            total_ppm,
            // Space is checked apart (`check_floors`): lowering an IOPS minimum is not refused for it.
            fast_guaranteed: 0,
            fast_limit: 0,
            verdict,
            message,
        })
    }

    fn judge(&self, shown: Option<(u64, u64)>, volumes: usize) -> (QosVerdict, String) {
        let name = &self.name;
        let Some((iops, total)) = shown else {
            let text = format!(
                "the capacity of pool {name} has not been measured yet: put load on volumes with policies, then check again"
            );
            let verdict = match volumes {
                0 => QosVerdict::Accepted,
                _ => QosVerdict::Warning,
            };
            return (verdict, text);
        };
        let text = format!(
            "the minimums of {volumes} volumes and groups take {} of the measured capacity of pool {name}, {iops} operations of 4 KiB a \
             second",
            percent(total)
        );
        let verdict = if total <= AMPLE_PPM {
            QosVerdict::Accepted
        } else if total <= WHOLE_PPM {
            QosVerdict::Warning
        } else {
            QosVerdict::Refused
        };
        (verdict, text)
    }
}
