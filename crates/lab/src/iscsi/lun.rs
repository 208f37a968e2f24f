//! Where a unit is.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// A logical unit of a target: `iscsi://ADDRESS:PORT/TARGET/LUN`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lun {
    pub portal: SocketAddr,
    pub target: String,
    /// Its number, below 256.
    pub number: u8,
}

impl FromStr for Lun {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = || {
            let (portal, rest) = text.strip_prefix("iscsi://")?.split_once('/')?;
            let (target, number) = rest.split_once('/')?;
            Some(Self {
                portal: portal.parse().ok()?,
                target: Some(target.to_owned()).filter(|name| !name.is_empty())?,
                number: number.parse().ok()?,
            })
        };
        parsed()
            .ok_or_else(|| format!("'{text}' names no unit: write iscsi://ADDRESS:PORT/TARGET/LUN"))
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "iscsi://{}/{}/{}", self.portal, self.target, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_an_address_a_target_and_a_number() {
        for text in ["iscsi://127.0.0.1:3260/iqn.a:b/0", "iscsi://[::1]:1/t/255"] {
            let lun: Lun = text.parse().expect(text);
            assert_eq!(lun.to_string(), text);
        }
        for wrong in [
            "",
            "iscsi://",
            "iscsi://127.0.0.1/t/0",
            "iscsi://127.0.0.1:1//0",
            "iscsi://127.0.0.1:1/t",
            "iscsi://127.0.0.1:1/t/256",
        ] {
            let refused = wrong.parse::<Lun>().expect_err(wrong);
            assert!(
                refused.contains("iscsi://ADDRESS:PORT/TARGET/LUN"),
                "{refused}"
            );
        }
    }
}
