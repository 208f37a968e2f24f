//! The parameters of an export, read and checked.

use crate::address::{invalid, parse_listen};
use crate::tls::{Files, Tls, config};
use reactor::ListenAddress;
use std::collections::BTreeMap;
use std::io::Result;

pub(crate) const CONNECTIONS_DEFAULT: usize = 64;
pub(crate) const CONNECTIONS_MAX: usize = 1024;

/// What an export was asked to be.
pub(crate) struct Parameters {
    pub listen: ListenAddress,
    /// Connections in transmission at a time.
    pub connections: usize,
    pub tls: Option<Tls>,
}

/// Reads all of them.
///
/// # Errors
/// One sentence that says what to write instead.
pub(crate) fn parse(parameters: &BTreeMap<String, String>) -> Result<Parameters> {
    let listen = parameters.get("listen").ok_or_else(|| {
        invalid("an NBD export needs listen: unix:PATH or tcp:ADDRESS:PORT".to_owned())
    })?;
    let connections = match parameters.get("max-connections") {
        None => CONNECTIONS_DEFAULT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|count| (1..=CONNECTIONS_MAX).contains(count))
            .ok_or_else(|| {
                invalid(format!(
                    "max-connections is '{text}': give a number from 1 to {CONNECTIONS_MAX}"
                ))
            })?,
    };
    let parsed = Parameters {
        listen: parse_listen(listen)?,
        connections,
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
            "{at} can be reached from other machines, and anybody could use the volume: give tls-certificate, tls-key \
             and tls-client-ca, or --without-authentication yes"
        )));
    }
    Ok(parsed)
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
                "TLS needs both tls-certificate and tls-key: give the absolute paths of two files"
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
        assert_eq!(with("3").unwrap().connections, 3);
        for count in ["0", "1025", "-1", "many"] {
            assert!(with(count).is_err(), "{count}");
        }
    }

    #[test]
    fn an_address_beyond_the_loopback_needs_an_explicit_word() {
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
    fn tls_that_is_not_whole_is_refused_and_named() {
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
                "tls-certificate c: it is no absolute path",
            ),
            (
                &[at, ("tls-certificate", "/dev/null"), ("tls-key", "/k")],
                "/dev/null: it is no file",
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
