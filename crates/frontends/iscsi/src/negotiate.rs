//! Negotiation of keys between initiator and target (RFC 7143, section 13).

use crate::text::{Pairs, first_of, number};

/// MaxRecvDataSegmentLength of this target, in bytes.
pub(crate) const SEGMENT_MAX: u32 = 256 << 10;
/// Preferred burst lengths of this target, in bytes.
const BURST_MAX: u32 = 1 << 20;
const FIRST_BURST_MAX: u32 = 64 << 10;
/// Maximum value of length keys (13.12 to 13.14).
const LENGTH_MAX: u32 = (1 << 24) - 1;

/// Maximum number of connections per session.
pub(crate) const CONNECTIONS_MAX: u16 = 8;

/// Purpose of a login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Discovery,
    /// A new session with at most this many connections.
    Session(u16),
    /// A further connection of a session.
    Connection,
}

/// Negotiated parameters of a connection and its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Agreed {
    pub header_digest: bool,
    pub data_digest: bool,
    pub initial_r2t: bool,
    pub immediate_data: bool,
    /// MaxRecvDataSegmentLength of the initiator.
    pub segment_max: u32,
    pub burst_max: u32,
    pub first_burst_max: u32,
    /// Maximum connections of the session.
    pub connections_max: u16,
}

impl Default for Agreed {
    /// Defaults of keys that are not negotiated.
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            initial_r2t: true,
            immediate_data: true,
            segment_max: 8192,
            burst_max: 256 << 10,
            first_burst_max: 64 << 10,
            connections_max: 1,
        }
    }
}

/// Response to a key; none for declarations.
type Reply = Option<String>;

/// A key or value that ends the negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadKey;

fn boolean(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

fn yes_no(value: bool) -> Reply {
    Some(if value { "Yes" } else { "No" }.to_owned())
}

fn within(value: &str, least: u32, most: u32) -> Option<u32> {
    number(value).filter(|number| (least..=most).contains(number))
}

fn reject() -> Reply {
    Some("Reject".to_owned())
}

fn lesser(value: &str, (least, most): (u32, u32), own: u32) -> (Reply, Option<u32>) {
    match within(value, least, most) {
        Some(offered) => {
            let agreed = offered.min(own);
            (Some(agreed.to_string()), Some(agreed))
        }
        None => (reject(), None),
    }
}

impl Agreed {
    fn digest(value: &str, agreed: &mut bool) -> Reply {
        match first_of(value, &["CRC32C", "None"]) {
            Some(chosen) => {
                *agreed = chosen == "CRC32C";
                Some(chosen.to_owned())
            }
            None => reject(),
        }
    }

    /// Negotiates one key of the operational stage.
    fn key(&mut self, key: &str, value: &str, most: u16) -> Result<Reply, BadKey> {
        let length = (512, LENGTH_MAX);
        Ok(match key {
            "HeaderDigest" => Self::digest(value, &mut self.header_digest),
            "DataDigest" => Self::digest(value, &mut self.data_digest),
            "MaxConnections" => {
                let (reply, agreed) = lesser(value, (1, 65535), u32::from(most));
                let agreed = agreed.and_then(|agreed| u16::try_from(agreed).ok());
                self.connections_max = agreed.unwrap_or(self.connections_max);
                reply
            }
            "InitialR2T" => match boolean(value) {
                Some(offered) => {
                    self.initial_r2t = offered;
                    yes_no(offered)
                }
                None => reject(),
            },
            "ImmediateData" => match boolean(value) {
                Some(offered) => {
                    self.immediate_data = offered;
                    yes_no(offered)
                }
                None => reject(),
            },
            "MaxRecvDataSegmentLength" => {
                self.segment_max = within(value, 512, LENGTH_MAX).ok_or(BadKey)?;
                None
            }
            "MaxBurstLength" => {
                let (reply, agreed) = lesser(value, length, BURST_MAX);
                self.burst_max = agreed.unwrap_or(self.burst_max);
                reply
            }
            "FirstBurstLength" => {
                let (reply, agreed) = lesser(value, length, FIRST_BURST_MAX);
                self.first_burst_max = agreed.unwrap_or(self.first_burst_max);
                reply
            }
            "DefaultTime2Wait" => match within(value, 0, 3600) {
                Some(offered) => Some(offered.max(2).to_string()),
                None => reject(),
            },
            "DefaultTime2Retain" => lesser(value, (0, 3600), 0).0,
            "MaxOutstandingR2T" => lesser(value, (1, 65535), 1).0,
            "ErrorRecoveryLevel" => lesser(value, (0, 2), 0).0,
            "DataPDUInOrder" | "DataSequenceInOrder" => match boolean(value) {
                Some(_) => yes_no(true),
                None => reject(),
            },
            "iSCSIProtocolLevel" => lesser(value, (0, 31), 1).0,
            "TaskReporting" => match first_of(value, &["RFC3720"]) {
                Some(chosen) => Some(chosen.to_owned()),
                None => reject(),
            },
            // Markers were removed by RFC 7143 (13.25).
            "IFMarker" | "OFMarker" => yes_no(false),
            "IFMarkInt" | "OFMarkInt" => reject(),
            "InitiatorAlias" | "InitiatorName" | "TargetName" | "SessionType" => None,
            _ => Some("NotUnderstood".to_owned()),
        })
    }

    /// Negotiates all keys of a text. A discovery session ignores many keys; session-wide keys
    /// apply to its first connection only (LO in section 13).
    pub(crate) fn negotiate(&mut self, offered: &Pairs, purpose: Purpose) -> Result<Pairs, BadKey> {
        let mut replies = Pairs::new();
        for (key, value) in offered {
            if value == "NotUnderstood" || value == "Irrelevant" || value == "Reject" {
                continue;
            }
            let reply = match (purpose, key.as_str()) {
                (
                    Purpose::Discovery,
                    "InitialR2T"
                    | "ImmediateData"
                    | "MaxBurstLength"
                    | "FirstBurstLength"
                    | "MaxOutstandingR2T"
                    | "DataPDUInOrder"
                    | "DataSequenceInOrder"
                    | "MaxConnections",
                ) => Some("Irrelevant".to_owned()),
                (
                    Purpose::Connection,
                    "InitialR2T"
                    | "ImmediateData"
                    | "MaxBurstLength"
                    | "FirstBurstLength"
                    | "MaxOutstandingR2T"
                    | "DataPDUInOrder"
                    | "DataSequenceInOrder"
                    | "MaxConnections"
                    | "ErrorRecoveryLevel"
                    | "DefaultTime2Wait"
                    | "DefaultTime2Retain"
                    | "TaskReporting"
                    | "iSCSIProtocolLevel",
                ) => reject(),
                (Purpose::Session(most), _) => self.key(key, value, most)?,
                _ => self.key(key, value, 1)?,
            };
            if let Some(reply) = reply {
                replies.push((key.clone(), reply));
            }
        }
        self.settle_bursts(&mut replies);
        Ok(replies)
    }

    /// Limits the response to FirstBurstLength by MaxBurstLength (13.14) regardless of their order
    /// in a text. If FirstBurstLength is not offered, or was agreed on earlier, the initiator uses
    /// the known value, so that much is accepted even if MaxBurstLength is smaller by now.
    fn settle_bursts(&mut self, replies: &mut Pairs) {
        let mut named = replies.iter_mut();
        let first = named.find(|(key, _)| key == "FirstBurstLength");
        if let Some((_, value)) = first
            && self.first_burst_max > self.burst_max
            && number(value).is_some()
        {
            self.first_burst_max = self.burst_max;
            *value = self.first_burst_max.to_string();
        }
    }

    /// The session's parameters, with the per-connection ones of `self`.
    pub(crate) fn of_session(self, session: &Self) -> Self {
        Self {
            header_digest: self.header_digest,
            data_digest: self.data_digest,
            segment_max: self.segment_max,
            ..*session
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: &str, value: &str) -> (Option<String>, Agreed) {
        let mut agreed = Agreed::default();
        let replies = agreed.negotiate(
            &vec![(key.to_owned(), value.to_owned())],
            Purpose::Session(8),
        );
        let reply = replies.unwrap().pop().map(|(_, value)| value);
        (reply, agreed)
    }

    #[test]
    fn every_key_is_negotiated_by_its_rule() {
        for (key, value, expected) in [
            ("HeaderDigest", "CRC32C,None", Some("CRC32C")),
            ("HeaderDigest", "None,CRC32C", Some("None")),
            ("DataDigest", "X,CRC32C", Some("CRC32C")),
            ("DataDigest", "X", Some("Reject")),
            ("MaxConnections", "1", Some("1")),
            ("MaxConnections", "4", Some("4")),
            ("MaxConnections", "65535", Some("8")),
            ("MaxConnections", "0", Some("Reject")),
            ("InitialR2T", "No", Some("No")),
            ("InitialR2T", "Yes", Some("Yes")),
            ("ImmediateData", "Yes", Some("Yes")),
            ("ImmediateData", "yes", Some("Reject")),
            ("MaxRecvDataSegmentLength", "512", None),
            ("MaxBurstLength", "16776192", Some("1048576")),
            ("MaxBurstLength", "262144", Some("262144")),
            ("MaxBurstLength", "511", Some("Reject")),
            ("FirstBurstLength", "262144", Some("65536")),
            ("DefaultTime2Wait", "0", Some("2")),
            ("DefaultTime2Retain", "20", Some("0")),
            ("MaxOutstandingR2T", "16", Some("1")),
            ("ErrorRecoveryLevel", "2", Some("0")),
            ("ErrorRecoveryLevel", "3", Some("Reject")),
            ("DataPDUInOrder", "No", Some("Yes")),
            ("DataSequenceInOrder", "Yes", Some("Yes")),
            ("IFMarker", "No", Some("No")),
            ("OFMarkInt", "2048", Some("Reject")),
            ("TaskReporting", "FastAbort,RFC3720", Some("RFC3720")),
            ("iSCSIProtocolLevel", "2", Some("1")),
            ("InitiatorAlias", "me", None),
            ("X-com.example.a", "1", Some("NotUnderstood")),
        ] {
            assert_eq!(one(key, value).0.as_deref(), expected, "{key}={value}");
        }
    }

    #[test]
    fn negotiated_values_apply() {
        let (_, agreed) = one("MaxRecvDataSegmentLength", "0x10000");
        assert_eq!(agreed.segment_max, 65536);
        let (_, agreed) = one("MaxBurstLength", "1024");
        assert_eq!(
            (agreed.burst_max, agreed.first_burst_max),
            (1024, 64 << 10),
            "the default of a key that was not offered"
        );
        assert!(one("DataDigest", "CRC32C").1.data_digest);
        let bad = vec![("MaxRecvDataSegmentLength".to_owned(), "1".to_owned())];
        assert_eq!(
            Agreed::default().negotiate(&bad, Purpose::Session(1)),
            Err(BadKey)
        );
    }

    /// Responses to a sequence of texts, and the final parameters.
    fn several(texts: &[&[(&str, &str)]]) -> (Vec<String>, Agreed) {
        let mut agreed = Agreed::default();
        let mut all = Vec::new();
        for text in texts {
            let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let offered = text.iter().map(pair).collect();
            let replies = agreed.negotiate(&offered, Purpose::Session(8)).unwrap();
            all.extend(
                replies
                    .into_iter()
                    .map(|(key, value)| format!("{key}={value}")),
            );
        }
        (all, agreed)
    }

    #[test]
    fn first_burst_response_never_exceeds_max_burst() {
        let (first, most) = (("FirstBurstLength", "65536"), ("MaxBurstLength", "8192"));
        for texts in [
            &[&[first, most][..]][..],
            &[&[most, first]],
            &[&[most], &[first]],
        ] {
            let (mut replies, agreed) = several(texts);
            replies.sort();
            assert_eq!(replies, ["FirstBurstLength=8192", "MaxBurstLength=8192"]);
            assert_eq!((agreed.first_burst_max, agreed.burst_max), (8192, 8192));
        }
        // The value of an earlier text is kept.
        let (replies, agreed) = several(&[&[first], &[most]]);
        assert_eq!(replies, ["FirstBurstLength=65536", "MaxBurstLength=8192"]);
        assert_eq!((agreed.first_burst_max, agreed.burst_max), (65536, 8192));
        let (replies, agreed) = several(&[&[("FirstBurstLength", "1"), most]]);
        assert_eq!(replies, ["FirstBurstLength=Reject", "MaxBurstLength=8192"]);
        assert_eq!((agreed.first_burst_max, agreed.burst_max), (65536, 8192));
        let (replies, _) = several(&[&[most, ("FirstBurstLength", "512")]]);
        assert_eq!(replies, ["MaxBurstLength=8192", "FirstBurstLength=512"]);
    }

    #[test]
    fn dependent_keys_are_negotiated_in_any_order() {
        let pairs = [
            (("InitialR2T", "No"), ("ImmediateData", "No")),
            (("InitialR2T", "Yes"), ("ImmediateData", "No")),
            (("InitialR2T", "Yes"), ("ImmediateData", "Yes")),
            (("InitialR2T", "Yes"), ("FirstBurstLength", "4096")),
            (("ImmediateData", "No"), ("FirstBurstLength", "4096")),
            (("FirstBurstLength", "262144"), ("MaxBurstLength", "131072")),
            (
                ("MaxRecvDataSegmentLength", "65536"),
                ("MaxBurstLength", "512"),
            ),
            (("ErrorRecoveryLevel", "2"), ("MaxConnections", "4")),
            (("ErrorRecoveryLevel", "2"), ("DefaultTime2Retain", "20")),
            (("DefaultTime2Wait", "0"), ("DefaultTime2Retain", "0")),
            (("ErrorRecoveryLevel", "1"), ("DataSequenceInOrder", "No")),
            (("MaxOutstandingR2T", "8"), ("DataPDUInOrder", "No")),
            (("IFMarker", "Yes"), ("IFMarkInt", "2048")),
            (("OFMarker", "Yes"), ("OFMarkInt", "2048~4096")),
            (("HeaderDigest", "CRC32C"), ("DataDigest", "None")),
            (
                ("iSCSIProtocolLevel", "2"),
                ("TaskReporting", "ResponseFence"),
            ),
        ];
        for (one, two) in pairs {
            let (mut expected, agreed) = several(&[&[one, two]]);
            expected.sort();
            for texts in [&[&[two, one][..]][..], &[&[one], &[two]], &[&[two], &[one]]] {
                let (mut replies, again) = several(texts);
                replies.sort();
                assert_eq!((&replies, again), (&expected, agreed), "{one:?} {two:?}");
            }
        }
    }

    #[test]
    fn discovery_session_ignores_irrelevant_keys() {
        let offered = vec![("MaxBurstLength".to_owned(), "1024".to_owned())];
        let replies = Agreed::default()
            .negotiate(&offered, Purpose::Discovery)
            .unwrap();
        assert_eq!(replies[0].1, "Irrelevant");
    }

    #[test]
    fn further_connection_negotiates_only_its_own_keys() {
        let text = [
            ("MaxBurstLength", "1024"),
            ("MaxConnections", "4"),
            ("DataDigest", "CRC32C"),
        ];
        let offered = text.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut own = Agreed::default();
        let replies = own
            .negotiate(&offered.to_vec(), Purpose::Connection)
            .unwrap();
        let replies: Vec<&str> = replies.iter().map(|(_, value)| &**value).collect();
        assert_eq!(replies, ["Reject", "Reject", "CRC32C"]);
        let session = Agreed {
            burst_max: 4096,
            connections_max: 2,
            ..Agreed::default()
        };
        let all = own.of_session(&session);
        assert_eq!(
            (all.burst_max, all.connections_max, all.data_digest),
            (4096, 2, true)
        );
    }
}
