//! Export parameters: parsing and validation.

use crate::address::{invalid, parse_listen};
use crate::tls::{Files, Tls, config};
use reactor::{ListenAddress, ShareLimits};
use std::collections::BTreeMap;
use std::io::Result;

const CONNECTIONS_DEFAULT: usize = 128;
const CONNECTIONS_MAX: usize = 1024;
/// Default maximum connections per address.
const OF_ADDRESS_DEFAULT: usize = 64;
/// Share of the connections reserved for addresses with fewer than `FEW`, unless one address cannot
/// use all anyway.
const RESERVE_PART: usize = 8;
const FEW: usize = 2;

/// Parameters of an export.
pub(crate) struct Parameters {
    pub listen: ListenAddress,
    /// Limits of connections in transmission.
    pub connections: ShareLimits,
    pub tls: Option<Tls>,
}

/// Parses all parameters.
///
/// # Errors
/// One sentence that says what to write instead.
pub(crate) fn parse(parameters: &BTreeMap<String, String>) -> Result<Parameters> {
    let listen = parameters.get("listen").ok_or_else(|| {
        invalid("an NBD export requires listen: unix:PATH or tcp:ADDRESS:PORT".to_owned())
    })?;
    let parsed = Parameters {
        listen: parse_listen(listen)?,
        connections: connections(parameters)?,
        tls: tls(parameters)?,
    };
    let anybody_may_connect = match &parsed.tls {
        Some(tls) => !(tls.required && tls.authenticates),
        None => true,
    };
    if let ListenAddress::Tcp(at) = &parsed.listen
        && !at.ip().to_canonical().is_loopback()
        && anybody_may_connect
        && !is_yes(parameters, "without-authentication")?
    {
        return Err(invalid(format!(
            "{at} is reachable from other hosts without authentication: add tls-certificate, \
             tls-key and tls-client-ca, or --without-authentication yes"
        )));
    }
    Ok(parsed)
}

fn count(parameters: &BTreeMap<String, String>, name: &str) -> Result<Option<usize>> {
    let Some(text) = parameters.get(name) else {
        return Ok(None);
    };
    let count = text.parse().ok();
    let count = count.filter(|count| (1..=CONNECTIONS_MAX).contains(count));
    count.map(Some).ok_or_else(|| {
        invalid(format!(
            "{name} is '{text}': write a number from 1 to {CONNECTIONS_MAX}"
        ))
    })
}

/// Connection limits, in total and per address.
fn connections(parameters: &BTreeMap<String, String>) -> Result<ShareLimits> {
    let given = count(parameters, "max-connections")?;
    let all = given.unwrap_or(CONNECTIONS_DEFAULT);
    let address = count(parameters, "max-connections-per-address")?;
    let address = address.or(given).unwrap_or(OF_ADDRESS_DEFAULT).min(all);
    Ok(ShareLimits {
        all,
        network: address.max(all - all / 4),
        address,
        reserve: (all / RESERVE_PART).min(all - address),
        few: FEW,
    })
}

fn is_yes(parameters: &BTreeMap<String, String>, name: &str) -> Result<bool> {
    match parameters.get(name).map(String::as_str) {
        None | Some("no") => Ok(false),
        Some("yes") => Ok(true),
        Some(other) => Err(invalid(format!("{name} is '{other}': write yes or no"))),
    }
}

fn tls(parameters: &BTreeMap<String, String>) -> Result<Option<Tls>> {
    let get = |name: &str| parameters.get(name).map(String::as_str);
    let (certificate, key) = (get("tls-certificate"), get("tls-key"));
    let (client_ca, word) = (get("tls-client-ca"), get("tls"));
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return match certificate.or(key).or(client_ca).or(word) {
            None => Ok(None),
            Some(_) => Err(invalid(
                "TLS requires both tls-certificate and tls-key: set both to absolute paths of files"
                    .to_owned(),
            )),
        };
    };
    let required = match word {
        None | Some("required") => true,
        Some("optional") => false,
        Some(other) => {
            return Err(invalid(format!(
                "tls is '{other}': write required or optional"
            )));
        }
    };
    let files = Files {
        certificate,
        key,
        client_ca,
    };
    Ok(Some(Tls {
        config: config(&files)?,
        required,
        authenticates: client_ca.is_some(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Parameters> {
        let pairs = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        parse(&pairs.collect())
    }

    #[test]
    fn connections_are_bounded() {
        let with = |count| with(&[("listen", "unix:/a"), ("max-connections", count)]);
        assert_eq!(with("3").unwrap().connections.all, 3);
        for count in ["0", "1025", "-1", "many"] {
            assert!(with(count).is_err(), "{count}");
        }
    }

    #[test]
    fn address_keeps_its_share_and_not_the_reserve() {
        const ALL: &str = "max-connections";
        const ADDRESS: &str = "max-connections-per-address";
        for (given, expected) in [
            (&[][..], (128, 64, 16)),
            (&[(ALL, "16")], (16, 16, 0)),
            (&[(ALL, "1024")], (1024, 1024, 0)),
            (&[(ADDRESS, "100")], (128, 100, 16)),
            (&[(ADDRESS, "1000")], (128, 128, 0)),
            (&[(ALL, "8"), (ADDRESS, "2")], (8, 2, 1)),
        ] {
            let all = [&[("listen", "unix:/a")], given].concat();
            let limits = with(&all).unwrap().connections;
            let seen = (limits.all, limits.address, limits.reserve);
            assert_eq!(seen, expected, "{given:?}");
            assert!(limits.network >= limits.address && limits.network <= limits.all);
        }
    }

    #[test]
    fn non_loopback_address_requires_explicit_permission() {
        for (listen, is_local) in [
            ("tcp:127.0.0.1:0", true),
            ("tcp:[::1]:0", true),
            ("tcp:[::ffff:127.0.0.1]:0", true),
            ("tcp:0.0.0.0:0", false),
            ("tcp:[::]:0", false),
            ("tcp:192.0.2.1:10809", false),
            ("unix:/a", true),
        ] {
            assert_eq!(with(&[("listen", listen)]).is_ok(), is_local, "{listen}");
            let word = |word| with(&[("listen", listen), ("without-authentication", word)]);
            assert!(word("yes").is_ok(), "{listen}");
            assert_eq!(word("no").is_ok(), is_local, "{listen}");
        }
        let error = with(&[("listen", "tcp:0.0.0.0:0")]).err().unwrap();
        assert!(error.to_string().contains("--without-authentication yes"));
    }

    #[test]
    fn incomplete_tls_parameters_are_refused_by_name() {
        let at = ("listen", "unix:/a");
        for (pairs, part) in [
            (
                &[at, ("tls", "required")][..],
                "tls-certificate and tls-key",
            ),
            (&[at, ("tls-key", "/k")], "tls-certificate and tls-key"),
            (
                &[at, ("tls-client-ca", "/k")],
                "tls-certificate and tls-key",
            ),
            (
                &[at, ("tls-certificate", "c"), ("tls-key", "/k")],
                "tls-certificate c: it is not an absolute path",
            ),
            (
                &[at, ("tls-certificate", "/dev/null"), ("tls-key", "/k")],
                "/dev/null: it is not a regular file",
            ),
            (
                &[
                    at,
                    ("tls-certificate", "/c"),
                    ("tls-key", "/k"),
                    ("tls", "maybe"),
                ],
                "required or optional",
            ),
        ] {
            let error = with(pairs).err().expect("it is refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
