//! CHAP authentication (RFC 7143, section 12.1.3; RFC 1994), one-way and mutual.
//!
//! Responsible for: challenges, responses and their verification. Leaves out: storage of secrets.

use crate::text::{Pairs, binary, find, first_of, number, to_hex};
use md5::Md5;
use sha2::{Digest, Sha256};
use sha3::Sha3_256;
use std::io;

/// Maximum length of accepted challenges and responses, in bytes (12.1.3).
const BINARY_MAX: usize = 1024;
/// Length of this target's challenges, in bytes.
const CHALLENGE_LEN: usize = 32;

/// A name and its secret. No `Debug`, so that it is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub name: String,
    pub secret: Vec<u8>,
}

impl Credentials {
    /// Credentials that nobody can prove.
    pub(crate) fn decoy() -> Self {
        Self {
            name: String::new(),
            secret: vec![0; 16],
        }
    }
}

/// Hash algorithms (IANA's PPP authentication algorithm numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Algorithm {
    Md5,
    Sha256,
    Sha3,
}

impl Algorithm {
    /// The first supported algorithm in the initiator's list.
    fn choose(list: &str) -> Option<Self> {
        match first_of(list, &["5", "7", "8"])? {
            "5" => Some(Self::Md5),
            "7" => Some(Self::Sha256),
            _ => Some(Self::Sha3),
        }
    }

    fn number(self) -> &'static str {
        match self {
            Self::Md5 => "5",
            Self::Sha256 => "7",
            Self::Sha3 => "8",
        }
    }

    fn respond(self, id: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        fn hash<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
            let mut digest = D::new();
            parts.iter().for_each(|part| digest.update(part));
            digest.finalize().to_vec()
        }
        let parts = [&[id][..], secret, challenge];
        match self {
            Self::Md5 => hash::<Md5>(parts),
            Self::Sha256 => hash::<Sha256>(parts),
            Self::Sha3 => hash::<Sha3_256>(parts),
        }
    }
}

/// A challenge to an initiator.
pub(crate) struct Asked {
    algorithm: Algorithm,
    id: u8,
    challenge: Vec<u8>,
}

/// An initiator's response.
pub(crate) struct Answered {
    pub name: String,
    response: Vec<u8>,
    /// Its challenge for mutual authentication.
    back: Option<(u8, Vec<u8>)>,
}

/// Constant-time comparison.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differ = left
        .iter()
        .zip(right)
        .fold(0, |sum, (left, right)| sum | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differ) == 0
}

impl Asked {
    /// Chooses an algorithm and a challenge; returns the text to send. None if no algorithm of the
    /// initiator is supported.
    pub(crate) fn new(list: &str) -> io::Result<Option<(Self, Pairs)>> {
        let Some(algorithm) = Algorithm::choose(list) else {
            return Ok(None);
        };
        let random = [(); CHALLENGE_LEN / 16].map(|()| reactor::control::entropy());
        let mut challenge = Vec::with_capacity(CHALLENGE_LEN);
        for half in random {
            challenge.extend(half?.to_be_bytes());
        }
        let id = reactor::control::entropy()? as u8;
        let text = vec![
            ("CHAP_A".to_owned(), algorithm.number().to_owned()),
            ("CHAP_I".to_owned(), id.to_string()),
            ("CHAP_C".to_owned(), to_hex(&challenge)),
        ];
        let asked = Self {
            algorithm,
            id,
            challenge,
        };
        Ok(Some((asked, text)))
    }

    /// Parses the initiator's response. None if it is malformed, or reflects this target's own
    /// challenge to obtain the response to it.
    pub(crate) fn read(&self, pairs: &Pairs) -> Option<Answered> {
        let back = match (find(pairs, "CHAP_I"), find(pairs, "CHAP_C")) {
            (None, None) => None,
            (Some(id), Some(challenge)) => {
                let id = number(id).and_then(|id| u8::try_from(id).ok())?;
                let challenge = binary(challenge, BINARY_MAX)?;
                if challenge == self.challenge {
                    return None;
                }
                Some((id, challenge))
            }
            _ => return None,
        };
        Some(Answered {
            name: find(pairs, "CHAP_N")?.to_owned(),
            response: binary(find(pairs, "CHAP_R")?, BINARY_MAX)?,
            back,
        })
    }

    /// Whether the response proves these credentials.
    pub(crate) fn proves(&self, answered: &Answered, known: &Credentials) -> bool {
        let right = self
            .algorithm
            .respond(self.id, &known.secret, &self.challenge);
        same(answered.name.as_bytes(), known.name.as_bytes()) & same(&answered.response, &right)
    }

    /// The target's response for mutual authentication. None without credentials for it.
    pub(crate) fn answer(&self, answered: &Answered, own: Option<&Credentials>) -> Option<Pairs> {
        let Some((id, challenge)) = &answered.back else {
            return Some(Pairs::new());
        };
        let own = own?;
        let response = self.algorithm.respond(*id, &own.secret, challenge);
        Some(vec![
            ("CHAP_N".to_owned(), own.name.clone()),
            ("CHAP_R".to_owned(), to_hex(&response)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, String)]) -> Pairs {
        let pair = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
        list.iter().map(pair).collect()
    }

    fn credentials(name: &str, secret: &str) -> Credentials {
        Credentials {
            name: name.to_owned(),
            secret: secret.as_bytes().to_vec(),
        }
    }

    #[test]
    fn every_algorithm_accepts_only_the_right_secret() {
        let known = credentials("host", "a secret of 16 b");
        for list in ["5", "7", "8", "6,8,5"] {
            let (asked, _) = Asked::new(list).unwrap().unwrap();
            let right = asked
                .algorithm
                .respond(asked.id, &known.secret, &asked.challenge);
            let answer = |name: &str, response: &[u8]| {
                let text = [("CHAP_N", name.to_owned()), ("CHAP_R", to_hex(response))];
                asked.read(&pairs(&text)).unwrap()
            };
            assert!(asked.proves(&answer("host", &right), &known), "{list}");
            assert!(!asked.proves(&answer("other", &right), &known));
            assert!(!asked.proves(&answer("host", &right[1..]), &known));
            let wrong = asked
                .algorithm
                .respond(asked.id, b"another", &asked.challenge);
            assert!(!asked.proves(&answer("host", &wrong), &known));
        }
        assert!(Asked::new("6").unwrap().is_none());
    }

    /// As computed by `printf '\1ab' | md5sum` and similar.
    #[test]
    fn response_is_the_hash_of_identifier_secret_and_challenge() {
        let respond = |algorithm: Algorithm| to_hex(&algorithm.respond(1, b"a", b"b"));
        assert_eq!(
            respond(Algorithm::Md5),
            "0x456b3330b7659caac46d2f439294584b"
        );
        assert!(respond(Algorithm::Sha256).starts_with("0x170404e05440f450"));
        assert!(respond(Algorithm::Sha3).starts_with("0xdf1b9bf86ef842d1"));
    }

    #[test]
    fn reflected_challenge_is_refused() {
        let (asked, text) = Asked::new("5").unwrap().unwrap();
        let mut answer = vec![("CHAP_N".to_owned(), "host".to_owned())];
        answer.push(("CHAP_R".to_owned(), "0x00".to_owned()));
        answer.push(("CHAP_I".to_owned(), "1".to_owned()));
        let reflected = find(&text, "CHAP_C").unwrap().to_owned();
        answer.push(("CHAP_C".to_owned(), reflected));
        assert!(asked.read(&answer).is_none());
        answer[3].1 = "0x0102".to_owned();
        let answered = asked.read(&answer).unwrap();
        let own = credentials("target", "another secret 1");
        assert_eq!(asked.answer(&answered, Some(&own)).unwrap().len(), 2);
        assert!(
            asked.answer(&answered, None).is_none(),
            "the target has no credentials"
        );
    }

    #[test]
    fn incomplete_response_is_refused() {
        let (asked, _) = Asked::new("5").unwrap().unwrap();
        for text in [
            &[("CHAP_N", "a".to_owned())][..],
            &[("CHAP_R", "0x00".to_owned())],
            &[("CHAP_N", "a".to_owned()), ("CHAP_R", "00".to_owned())],
            &[
                ("CHAP_N", "a".to_owned()),
                ("CHAP_R", "0x00".to_owned()),
                ("CHAP_I", "1".to_owned()),
            ],
        ] {
            assert!(asked.read(&pairs(text)).is_none());
        }
    }
}
