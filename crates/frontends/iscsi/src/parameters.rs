//! Export parameters: parsing and validation.

use crate::access::{Grant, Network};
use crate::chap::Credentials;
use crate::negotiate::CONNECTIONS_MAX;
use scsi::AccessState;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum portals of an export.
const PORTALS_MAX: usize = 16;
/// Maximum initiators, and address ranges, of an export.
const INITIATORS_MAX: usize = 256;
const NETWORKS_MAX: usize = 256;
/// Maximum length of a name (RFC 7143, section 4.2.7.1).
pub(crate) const NAME_MAX: usize = 223;
/// Maximum size of a file of secrets, in bytes.
const FILE_MAX: u64 = 4096;
/// Permitted lengths of a secret, in bytes (RFC 7143, section 9.2.1: at least 96 bits).
const SECRET_LEN: std::ops::RangeInclusive<usize> = 12..=255;
/// Prefix of default target names.
const PREFIX: &str = "iqn.2026-11.io.convect:";

/// Parameters of an export.
pub(crate) struct Wanted {
    pub portals: Vec<SocketAddr>,
    pub target: String,
    pub lun: u16,
    /// Portal group tags; none: assigned.
    pub groups: Option<Vec<u16>>,
    pub grant: Grant,
    /// ALUA states of portals; others are active/optimized.
    pub states: Vec<(SocketAddr, AccessState)>,
}

/// Secrets of both sides.
#[derive(Clone)]
pub(crate) struct Secrets {
    pub initiator: Credentials,
    pub target: Option<Credentials>,
}

fn invalid(text: String) -> Error {
    Error::new(ErrorKind::InvalidInput, text)
}

fn is_name_of(name: &str, further: &[u8]) -> bool {
    let form = ["iqn.", "eui.", "naa."]
        .iter()
        .any(|form| name.starts_with(form));
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut letters = name.bytes();
    form && name.len() <= NAME_MAX
        && name.len() > 4
        && letters.all(|byte| is_letter(byte) || further.contains(&byte))
}

/// Normalises a target name according to RFC 7143 section 4.2.7 and RFC 3722: folded to lower case.
fn target_name(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    is_name_of(&name, b".-:").then_some(name)
}

/// Normalises an initiator name in the same way. Characters that RFC 3722 forbids, but
/// administrators use, are accepted if they have no special meaning.
pub(crate) fn initiator_name(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    is_name_of(&name, b".-:_+/@#=~%").then_some(name)
}

fn portals(text: &str) -> Result<Vec<SocketAddr>> {
    let form = |part: &str| {
        invalid(format!(
            "'{part}' is not a portal: write ADDRESS:PORT, for example 192.0.2.1:3260 or [::1]:3260"
        ))
    };
    let mut portals = Vec::new();
    for part in text.split(',') {
        let (host, port) = part.rsplit_once(':').ok_or_else(|| form(part))?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(form(part));
        }
        let portal = reactor::resolve(part)?[0];
        // Port 0 may be repeated, as each one is assigned a different port.
        if portal.port() == 0 || !portals.contains(&portal) {
            portals.push(portal);
        }
    }
    if portals.len() > PORTALS_MAX {
        return Err(invalid(format!(
            "at most {PORTALS_MAX} portals are permitted: remove some"
        )));
    }
    Ok(portals)
}

fn target(given: Option<&String>, export: &str) -> Result<String> {
    let made = || {
        let letter = |byte: u8| match byte.to_ascii_lowercase() {
            byte @ (b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-') => char::from(byte),
            _ => '-',
        };
        PREFIX.chars().chain(export.bytes().map(letter)).collect()
    };
    let name = given.cloned().unwrap_or_else(made);
    target_name(&name).ok_or_else(|| {
        invalid(format!(
            "'{name}' is not a valid target name: write one like {PREFIX}disk, with letters, \
             digits, dots, dashes and colons, at most {NAME_MAX}"
        ))
    })
}

fn initiators(text: &str) -> Result<Vec<String>> {
    let read = |name: &str| {
        initiator_name(name).ok_or_else(|| {
            invalid(format!(
                "'{name}' is not a valid initiator name: hosts show theirs, for example in \
                 /etc/iscsi/initiatorname.iscsi"
            ))
        })
    };
    let names: Vec<String> = text.split(',').map(read).collect::<Result<_>>()?;
    match names.len() > INITIATORS_MAX {
        true => Err(invalid(format!(
            "at most {INITIATORS_MAX} initiators are permitted: remove some"
        ))),
        false => Ok(names),
    }
}

fn networks(text: &str) -> Result<Vec<Network>> {
    let read = |part: &str| {
        Network::parse(part).ok_or_else(|| {
            invalid(format!(
                "'{part}' is not an address range: write one like 192.0.2.7, 192.0.2.0/24 or \
                 2001:db8::/64, without bits beyond the prefix"
            ))
        })
    };
    let networks: Vec<Network> = text.split(',').map(read).collect::<Result<_>>()?;
    match networks.len() > NETWORKS_MAX {
        true => Err(invalid(format!(
            "at most {NETWORKS_MAX} address ranges are permitted: remove some"
        ))),
        false => Ok(networks),
    }
}

fn groups(text: &str, portals: usize) -> Result<Vec<u16>> {
    let numbers: Option<Vec<u16>> = text.split(',').map(|part| part.parse().ok()).collect();
    let distinct = |numbers: &Vec<u16>| {
        let set: std::collections::BTreeSet<_> = numbers.iter().collect();
        set.len() == portals && numbers.len() == portals && !numbers.contains(&0)
    };
    numbers.filter(distinct).ok_or_else(|| {
        invalid(format!(
            "groups is '{text}': write one number from 1 to 65535 per portal, comma-separated, no \
             two the same"
        ))
    })
}

fn connections(text: &str) -> Result<u16> {
    let number = text.parse().ok();
    let number = number.filter(|number| (1..=CONNECTIONS_MAX).contains(number));
    number.ok_or_else(|| {
        invalid(format!(
            "connections is '{text}': write the maximum number per session, from 1 to \
             {CONNECTIONS_MAX}"
        ))
    })
}

/// Parses `ADDRESS:PORT=STATE`, comma-separated.
fn states(text: &str) -> Result<Vec<(SocketAddr, AccessState)>> {
    let names: Vec<&str> = AccessState::NAMES.iter().map(|(name, _)| *name).collect();
    let read = |part: &str| {
        let (portal, name) = part.split_once('=')?;
        let found = AccessState::NAMES.iter().find(|(known, _)| *known == name);
        Some((portal.parse().ok()?, found?.1))
    };
    let each = text.split(',').map(|part| {
        read(part).ok_or_else(|| {
            invalid(format!(
                "'{part}' is not a portal state: write ADDRESS:PORT=STATE, with one of {}",
                names.join(", ")
            ))
        })
    });
    each.collect()
}

/// Rejects states of unknown portals.
pub(crate) fn check_states(
    states: &[(SocketAddr, AccessState)],
    portals: &[SocketAddr],
) -> Result<()> {
    match states.iter().find(|(portal, _)| !portals.contains(portal)) {
        None => Ok(()),
        Some((portal, _)) => Err(invalid(format!(
            "states contains {portal}, which is not a portal of this export: use one of its portals"
        ))),
    }
}

fn yes(parameters: &BTreeMap<String, String>, name: &str) -> Result<bool> {
    match parameters.get(name).map(String::as_str) {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(invalid(format!("{name} is '{other}': write yes or no"))),
    }
}

/// Reads a file of secrets. Errors reveal nothing of its content.
fn secrets(path: &Path) -> Result<Secrets> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(invalid(format!(
            "chap is '{shown}': write the absolute path of a file"
        )));
    }
    let explain = |error: Error| Error::new(error.kind(), format!("{shown}: {error}"));
    // A FIFO is refused without blocking.
    let file = reactor::open_regular(path, std::fs::OpenOptions::new().read(true));
    let file = file.map_err(explain)?;
    let meta = file.metadata().map_err(explain)?;
    if meta.mode() & 0o077 != 0 {
        return Err(invalid(format!(
            "{shown} must be a file that only its owner may read: run chmod 600 {shown}"
        )));
    }
    let mut text = String::new();
    file.take(FILE_MAX + 1)
        .read_to_string(&mut text)
        .map_err(explain)?;
    if text.len() as u64 > FILE_MAX {
        return Err(invalid(format!(
            "{shown} is larger than {FILE_MAX} bytes: it must contain the secrets only"
        )));
    }
    parse_secrets(&text).map_err(|why| invalid(format!("{shown}: {why}")))
}

fn parse_secrets(text: &str) -> std::result::Result<Secrets, String> {
    let mut words: BTreeMap<&str, &str> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.ends_with(char::is_whitespace) {
            return Err(format!(
                "line {} ends with a blank, which may or may not belong to the value: remove it",
                number + 1
            ));
        }
        let pair = line.split_once(char::is_whitespace);
        let (word, value) = pair.ok_or(format!("line {} has a single word", number + 1))?;
        let known = ["name", "secret", "mutual-name", "mutual-secret"].contains(&word);
        if !known || words.insert(word, value.trim_start()).is_some() {
            return Err(format!(
                "line {}: expected one of name, secret, mutual-name, mutual-secret, each once",
                number + 1
            ));
        }
    }
    let mut credentials =
        |name: &str, secret: &str| match (words.remove(name), words.remove(secret)) {
            (None, None) => Ok(None),
            (Some(_), Some(given)) if !SECRET_LEN.contains(&given.len()) => Err(format!(
                "{secret} must have {} to {} bytes",
                SECRET_LEN.start(),
                SECRET_LEN.end()
            )),
            (Some(name), Some(given)) if name.len() <= NAME_MAX => Ok(Some(Credentials {
                name: name.to_owned(),
                secret: given.as_bytes().to_vec(),
            })),
            _ => Err(format!("{name} and {secret} must be given together")),
        };
    let initiator = credentials("name", "secret")?;
    let target = credentials("mutual-name", "mutual-secret")?;
    let initiator = initiator.ok_or("the lines name and secret are missing")?;
    if target
        .as_ref()
        .is_some_and(|target| target.secret == initiator.secret)
    {
        return Err("the two secrets must differ".to_owned());
    }
    Ok(Secrets { initiator, target })
}

/// Parses all parameters.
pub(crate) fn parse(parameters: &BTreeMap<String, String>, export: &str) -> Result<Wanted> {
    let get = |name: &str| parameters.get(name);
    let portals = portals(get("portal").map_or("", String::as_str))?;
    let lun = match get("lun") {
        None => 0,
        Some(text) => {
            let number = text.parse().ok().filter(|lun| *lun <= scsi::LUN_MAX);
            number.ok_or_else(|| {
                invalid(format!(
                    "lun is '{text}': write a number from 0 to {}",
                    scsi::LUN_MAX
                ))
            })?
        }
    };
    let groups = get("groups").map(|text| groups(text, portals.len()));
    let wanted = Wanted {
        portals,
        groups: groups.transpose()?,
        target: target(get("target"), export)?,
        lun,
        grant: Grant {
            initiators: get("initiators").map_or(Ok(Vec::new()), |text| initiators(text))?,
            networks: get("addresses").map_or(Ok(Vec::new()), |text| networks(text))?,
            chap: get("chap")
                .map(|path| secrets(Path::new(path)))
                .transpose()?,
            read_only: yes(parameters, "read-only")?,
            connections: get("connections")
                .map_or(Ok(CONNECTIONS_MAX), |text| connections(text))?,
        },
        states: get("states").map_or(Ok(Vec::new()), |text| states(text))?,
    };
    let beyond = wanted
        .portals
        .iter()
        .find(|portal| !portal.ip().is_loopback());
    if let Some(portal) = beyond
        && wanted.grant.chap.is_none()
        && !yes(parameters, "without-authentication")?
    {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            format!(
                "{portal} is reachable from other hosts without authentication: add chap with a \
                 file of secrets, or --without-authentication yes"
            ),
        ));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_of(pairs: &[(&str, &str)]) -> Result<Wanted> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        parse(&pairs.collect(), "My_disk")
    }

    #[test]
    fn defaults_are_filled_in() {
        let wanted = parse_of(&[("portal", "127.0.0.1:0,[::1]:3260")]).unwrap();
        assert_eq!(wanted.target, "iqn.2026-11.io.convect:my-disk");
        assert_eq!((wanted.lun, wanted.portals.len()), (0, 2));
    }

    #[test]
    fn names_are_folded_and_unusual_initiator_names_accepted() {
        let wanted = parse_of(&[
            ("portal", "127.0.0.1:0"),
            ("target", "iqn.2026-11.test:VM1"),
            (
                "initiators",
                "iqn.1998-01.com.vmware:ESX01-4F2A,IQN.2008-11.org.linux-kvm:win_10",
            ),
        ])
        .unwrap();
        assert_eq!(wanted.target, "iqn.2026-11.test:vm1");
        assert_eq!(
            wanted.grant.initiators,
            [
                "iqn.1998-01.com.vmware:esx01-4f2a",
                "iqn.2008-11.org.linux-kvm:win_10"
            ]
        );
        for bad in [
            "iqn.",
            "win_10",
            "iqn.a b",
            "iqn.a,b",
            "iqn.a\"",
            "iqn.a\n",
            "iqn.\u{e4}",
            &format!("iqn.{}", "a".repeat(220)),
        ] {
            assert_eq!(initiator_name(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn invalid_parameters_are_refused_with_advice() {
        for (pairs, part) in [
            (&[("portal", "127.0.0.1")][..], "ADDRESS:PORT"),
            (&[("portal", "127.0.0.1:1"), ("lun", "256")], "0 to 255"),
            (&[("portal", "127.0.0.1:1"), ("target", "disk")], "iqn."),
            (
                &[("portal", "127.0.0.1:1"), ("initiators", "iqn.a,x")],
                "'x'",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("initiators", "iqn.a b")],
                "'iqn.a b'",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("target", "iqn.a_b")],
                "dashes and colons",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("addresses", "10.0.0.1/8")],
                "'10.0.0.1/8'",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("states", "127.0.0.1:1=best")],
                "active-optimized, active-nonoptimized, standby",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("read-only", "1")],
                "yes or no",
            ),
            (&[("portal", "127.0.0.1:1"), ("groups", "0")], "1 to 65535"),
            (
                &[("portal", "127.0.0.1:1,127.0.0.1:2"), ("groups", "7,7")],
                "no two",
            ),
            (
                &[("portal", "127.0.0.1:1"), ("groups", "1,2")],
                "per portal",
            ),
            (&[("portal", "127.0.0.1:1"), ("connections", "9")], "1 to 8"),
            (
                &[("portal", "127.0.0.1:1"), ("chap", "secrets")],
                "absolute",
            ),
            (&[("portal", "192.0.2.1:1")], "--without-authentication"),
        ] {
            let error = parse_of(pairs).err().map(|error| error.to_string());
            assert!(
                error.as_ref().is_some_and(|text| text.contains(part)),
                "{error:?}"
            );
        }
        let allowed = [("portal", "192.0.2.1:1"), ("without-authentication", "yes")];
        assert!(parse_of(&allowed).is_ok());
    }

    #[test]
    fn secrets_are_parsed_and_never_shown() {
        let both =
            "# a\nname host\nsecret abcdefghijkl\nmutual-name t\nmutual-secret mnopqrstuvwx\n";
        let read = parse_secrets(both).unwrap();
        assert_eq!(read.initiator.name, "host");
        assert_eq!(read.target.unwrap().secret, b"mnopqrstuvwx");
        let read = parse_secrets("name host\r\n  secret  abc def ghi jkl\r\n").unwrap();
        assert_eq!(
            read.initiator.secret, b"abc def ghi jkl",
            "inner blanks are part of it"
        );
        for text in [
            "",
            "name host\n",
            "name host\nsecret short\n",
            "name host\nsecret abcdefghijkl\nsecret abcdefghijkl\n",
            "name host\nsecret abcdefghijkl\nmutual-name t\n",
            "name host\nsecret abcdefghijkl\nmutual-name t\nmutual-secret abcdefghijkl\n",
            "hidden-word abcdefghijkl\n",
            "name host\nsecret abcdefghijkl \n",
            "name host\nsecret abcdefghijkl\t\r\n",
            "name host \nsecret abcdefghijkl\n",
        ] {
            let why = parse_secrets(text).err().expect("it is refused");
            assert!(
                !why.contains("abcdefghijkl") && !why.contains("hidden"),
                "{why}"
            );
        }
    }

    #[test]
    fn fifo_as_secrets_file_is_refused_without_blocking() {
        let path = std::env::temp_dir().join(format!("convect-chap-fifo-{}", std::process::id()));
        let name = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: a zero-terminated string that is valid during the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let refused = secrets(&path);
        std::fs::remove_file(&path).unwrap();
        let why = refused.err().expect("it is refused").to_string();
        assert!(why.contains("not a regular file"), "{why}");
    }
}
