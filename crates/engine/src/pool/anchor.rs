//! The end of the daemon's log of changes, kept in the labels (docs/access.md). Its content is opaque here.

use super::{Pool, Result, error, lock};
use crate::control::types::ErrorCode;
use format::ANCHOR_MAX;

impl Pool {
    /// The stored anchor.
    pub fn anchor(&self) -> Option<String> {
        lock(&self.config).audit_anchor.clone()
    }

    /// Replaces the stored anchor.
    ///
    /// # Errors
    /// `Invalid` when it is too long, or when no drive takes the label.
    pub fn set_anchor(&self, anchor: &str) -> Result<()> {
        if anchor.len() > ANCHOR_MAX {
            return error(
                ErrorCode::Invalid,
                format!("the anchor of a log has at most {ANCHOR_MAX} bytes"),
            );
        }
        let _changing = lock(&self.changing);
        self.update_soon(|config| {
            config.audit_anchor = Some(anchor.to_owned());
            Ok(())
        })
    }
}
