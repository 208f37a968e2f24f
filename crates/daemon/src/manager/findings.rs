//! Findings: conditions found by a check, and their subjects.

use crate::events::Finding;
use api::v1::{EventCode, Subject, SubjectKind};
use engine::DriveStatus;

/// A pool, or a part of it, as subject.
pub(super) fn of_pool(pool: &str, name: &str) -> Subject {
    Subject {
        kind: SubjectKind::Pool,
        pool: Some(pool.to_owned()),
        name: name.to_owned(),
    }
}

/// A drive of a pool as subject.
pub(super) fn of_drive(pool: &str, drive: &DriveStatus) -> Subject {
    Subject {
        kind: SubjectKind::Drive,
        pool: Some(pool.to_owned()),
        name: drive.spec.clone(),
    }
}

/// A finding without a grade.
pub(super) fn finding(
    code: EventCode,
    subject: Subject,
    message: String,
    advice: impl Into<String>,
) -> Finding {
    Finding {
        code,
        subject,
        grade: 0,
        message,
        advice: advice.into(),
    }
}
