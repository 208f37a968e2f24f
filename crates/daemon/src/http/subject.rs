//! Audit text of a request: its path and the non-secret members of its body.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Members of bodies that are logged. Values of protocol parameters may be secrets and are not.
const TOLD: &[&str] = &[
    "pool",
    "name",
    "volume",
    "volumes",
    "snapshot",
    "size",
    "shrink",
    "kind",
    "role",
    "drive",
    "drives",
    "old",
    "new",
    "force",
    "hold",
    "held",
    "quota",
    "reservation",
    "target_iops",
    "target_bandwidth",
    "target_latency_ns",
    "policy",
    "group",
    "overcommit",
    "level",
    "min_iops",
    "min_bandwidth",
    "max_iops",
    "max_bandwidth",
    "burst_s",
    "max_latency_ns",
    "weight",
    "reaction",
    "fast_floor",
    "ram_percent",
    "every_s",
    "keep",
    "expires_in_s",
    "severity",
];

/// The subject of a change, in one line.
pub fn subject(path: &BTreeMap<String, String>, body: &[u8]) -> String {
    let mut line = String::new();
    let mut add = |name: &str, value: &str| {
        let between = if line.is_empty() { "" } else { " " };
        let _ = write!(line, "{between}{name}={value}");
    };
    for (name, value) in path {
        add(name, value);
    }
    let members = serde_json::from_slice::<serde_json::Map<String, Value>>(body);
    for (name, value) in members.unwrap_or_default() {
        match value {
            Value::String(text) if TOLD.contains(&name.as_str()) => add(&name, &text),
            Value::Number(_) | Value::Bool(_) | Value::Array(_)
                if TOLD.contains(&name.as_str()) =>
            {
                add(&name, &value.to_string());
            }
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_contains_names_but_no_secrets() {
        let path = [("pool".to_owned(), "tank".to_owned())].into();
        let body = br#"{"name":"v","size":5,"parameters":{"chap-secret":"x"},"token":"y","volumes":["a","b"]}"#;
        assert_eq!(
            subject(&path, body),
            r#"pool=tank name=v size=5 volumes=["a","b"]"#
        );
        assert_eq!(subject(&path, b"no json"), "pool=tank");
    }
}
