//! Exports kept in the pool, and the pool's temperature.

use super::shards::try_all;
use super::{Pool, Result, error, lock};
use crate::control::types::{ErrorCode, ExportRecord};
use format::ExportConfig;

impl Pool {
    /// The exports kept in the pool.
    pub fn exports(&self) -> Vec<ExportRecord> {
        let config = lock(&self.config);
        let record = |export: &ExportConfig| ExportRecord {
            name: export.name.clone(),
            volume: export.volume.clone(),
            kind: export.kind.clone(),
            parameters: export.parameters.clone(),
        };
        config.exports.iter().map(record).collect()
    }

    /// Replaces the exports kept in the pool.
    ///
    /// # Errors
    /// When an export names a volume that is not there, or the labels cannot be written.
    pub fn set_exports(&self, exports: Vec<ExportRecord>) -> Result<()> {
        let _changing = lock(&self.changing);
        self.update(|config| {
            for export in &exports {
                if !config
                    .volumes
                    .iter()
                    .any(|volume| volume.name == export.volume)
                {
                    return error(
                        ErrorCode::NotFound,
                        format!(
                            "export {}: there is no volume '{}'",
                            export.name, export.volume
                        ),
                    );
                }
            }
            let keep = |export: ExportRecord| ExportConfig {
                name: export.name,
                volume: export.volume,
                kind: export.kind,
                parameters: export.parameters,
            };
            config.exports = exports.into_iter().map(keep).collect();
            Ok(())
        })
    }

    /// Writes everything back to its slow home and forgets every copy.
    ///
    /// # Errors
    /// What a drive said, or `NoSpace` when the slow tier has no room.
    pub fn cool(&self) -> Result<()> {
        try_all(
            &self.shards,
            "the pool cannot be cooled",
            |shard| async move { shard.cool().await },
        )
    }
}
