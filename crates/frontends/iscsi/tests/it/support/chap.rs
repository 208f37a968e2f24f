//! CHAP secrets and proofs.

use super::client::Client;
use super::server::Server;
use md5::{Digest, Md5};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// Result of starting something with a file of secrets.
pub fn with_secrets<T>(name: &str, text: &str, start: impl FnOnce(&str) -> T) -> T {
    let file = format!("convect-iscsi-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(file);
    let _ = std::fs::remove_file(&path);
    let mut file = std::fs::OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(&path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
    let started = start(path.to_str().unwrap());
    std::fs::remove_file(path).unwrap();
    started
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits = text.trim_start_matches("0x");
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// CHAP response (RFC 1994, section 4.1) with MD5.
pub fn proof(identifier: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
    let hash = Md5::new().chain_update([identifier]);
    hash.chain_update(secret)
        .chain_update(challenge)
        .finalize()
        .to_vec()
}

/// Requests a challenge: connection, identifier and challenge.
pub fn challenge(target: &str, initiator: &str, mut client: Client) -> (Client, u8, Vec<u8>) {
    let names = format!("InitiatorName={initiator}\0TargetName={target}\0");
    client.login(0x81, &format!("{names}AuthMethod=CHAP\0"));
    let text = client.login(0x01, "CHAP_A=5\0").text();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("no {key} in {text}"))
            .to_owned()
    };
    let identifier = value("CHAP_I=").parse().unwrap();
    (client, identifier, unhex(&value("CHAP_C=")))
}

/// Logs in with a proof: the connection and the status of its last login request.
pub fn log_in(
    server: &Server,
    initiator: &str,
    client: Client,
    (name, secret): (&str, &[u8]),
    keys: &str,
) -> (Client, [u8; 2]) {
    let (mut client, identifier, challenge) = challenge(&server.target, initiator, client);
    let proof = hex(&proof(identifier, secret, &challenge));
    let answer = client.login(0x81, &format!("CHAP_N={name}\0CHAP_R=0x{proof}\0"));
    assert_eq!(answer.head[36..38], [0, 0], "authentication succeeds");
    let answer = client.login(0x87, keys);
    (client, [answer.head[36], answer.head[37]])
}
