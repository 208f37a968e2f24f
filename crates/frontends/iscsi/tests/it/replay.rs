//! Replay attacks: repeated or reflected proofs, and reused numbers.

use crate::support::chap::{challenge, hex, log_in, proof, with_secrets};
use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;

const HOST: &str = "iqn.2026-11.test:host";
const SECRET: &[u8] = b"0123456789abcdef";
const TARGET_SECRET: &[u8] = b"fedcba9876543210";

fn server(name: &str) -> Server {
    let text =
        "name host\nsecret 0123456789abcdef\nmutual-name t\nmutual-secret fedcba9876543210\n";
    with_secrets(name, text, |path| Server::start(&[("chap", path)]))
}

/// A connection with its challenge: identifier and challenge.
fn challenged(server: &Server) -> (Client, u8, Vec<u8>) {
    challenge(&server.target, HOST, Client::connect(server))
}

fn refused(client: &mut Client, text: &str) {
    let answer = client.login(0x81, text);
    assert_eq!(answer.head[36..38], [2, 1], "{}", answer.text());
    assert!(
        !answer.text().contains("CHAP_R"),
        "the target proves nothing to an unauthenticated host"
    );
    assert!(client.receive().is_none());
}

#[test]
fn proof_is_valid_once() {
    let server = server("again");
    let (mut client, identifier, challenge) = challenged(&server);
    let sent = format!(
        "CHAP_N=host\0CHAP_R=0x{}\0CHAP_I=9\0CHAP_C=0x{}\0",
        hex(&proof(identifier, SECRET, &challenge)),
        hex(&[0x5a; 16]),
    );
    let answer = client.login(0x81, &sent);
    assert_eq!(answer.head[36..38], [0, 0], "{}", answer.text());
    let own = proof(9, TARGET_SECRET, &[0x5a; 16]);
    assert!(
        answer.text().to_lowercase().contains(&hex(&own)),
        "{}",
        answer.text()
    );
    // The same proof while that connection exists, and after it.
    let (mut again, _, other) = challenged(&server);
    assert_ne!(other, challenge, "no challenge comes twice");
    refused(&mut again, &sent);
    drop(client);
    refused(&mut challenged(&server).0, &sent);
}

#[test]
fn all_connections_of_a_session_prove_the_same_credentials() {
    let server = server("connections");
    let text = "name other\nsecret another-secret-1\n";
    // The other secret gives access to another logical unit.
    let second = with_secrets("other", text, |path| server.second(&[("chap", path)]));
    let log_in = |client: Client, name: &str, secret: &[u8]| {
        log_in(&server, HOST, client, (name, secret), "MaxConnections=4\0")
    };
    let further = |first: &Client| {
        let mut client = Client::connect(&server);
        client.be_of(first, 2);
        client
    };
    let (mut first, status) = log_in(Client::connect(&server), "host", SECRET);
    assert_eq!(status, [0, 0]);
    let (mut other, status) = log_in(further(&first), "other", b"another-secret-1");
    assert_eq!(status, [2, 1], "a valid proof of another secret");
    assert!(other.receive().is_none());
    let mut unproved = further(&first);
    let names = format!("InitiatorName={HOST}\0TargetName={}\0", server.target);
    let answer = unproved.login(0x87, &names);
    assert_eq!(answer.head[36..38], [2, 1], "no proof");
    let (mut two, status) = log_in(further(&first), "host", SECRET);
    assert_eq!(status, [0, 0]);
    assert_eq!(two.handle, first.handle);
    assert_eq!((first.ready(), first.ready()), (2, 0));
    two.command_number = first.command_number;
    assert_eq!(two.ready(), 0);
    drop(second);
}

#[test]
fn target_response_does_not_help_to_log_in() {
    let server = server("back");
    // The target's challenge to one connection is reflected on another.
    let (mut one, identifier, challenge) = challenged(&server);
    let (mut two, own_identifier, own) = challenged(&server);
    let asked = format!("CHAP_I={identifier}\0CHAP_C=0x{}\0", hex(&challenge));
    refused(
        &mut two,
        &format!("CHAP_N=host\0CHAP_R=0x{}\0{asked}", hex(&[0; 16])),
    );
    // Its own response is not accepted: the secrets differ.
    let reflected = proof(identifier, TARGET_SECRET, &challenge);
    refused(
        &mut one,
        &format!("CHAP_N=t\0CHAP_R=0x{}\0", hex(&reflected)),
    );
    // With the right secret, a reflected challenge is refused (RFC 7143, section 12.1.3).
    let (mut three, identifier, challenge) = challenged(&server);
    let right = hex(&proof(identifier, SECRET, &challenge));
    let back = format!("CHAP_I={identifier}\0CHAP_C=0x{}\0", hex(&challenge));
    refused(
        &mut three,
        &format!("CHAP_N=host\0CHAP_R=0x{right}\0{back}"),
    );
    // A proof is not valid for another connection.
    let (mut four, _, _) = challenged(&server);
    let taken = hex(&proof(own_identifier, SECRET, &own));
    refused(&mut four, &format!("CHAP_N=host\0CHAP_R=0x{taken}\0"));
}

/// A forged PDU, sent after a write of 16 blocks that waits for its data; and the assertion that it
/// has no effect.
type Forged = fn(&mut Client, &Pdu);

fn out(client: &Client, r2t: &Pdu) -> Pdu {
    Pdu::new(0x05, 0x80)
        .word(16, client.tag)
        .word(20, r2t.get(20))
        .word(40, r2t.get(40))
}

/// The write fails, or the connection ends.
fn not_done(client: &mut Client) {
    while let Some(pdu) = client.receive() {
        if pdu.opcode() == 0x21 {
            assert_eq!(pdu.head[3], 2, "the write was executed");
            return;
        }
    }
}

/// Asserts that the target has read what was sent: only a ping behind it is answered.
fn only_read(client: &mut Client) {
    let ping = Pdu::new(0x40, 0x80).word(16, 9).word(20, NO_TAG);
    client.send(&ping.word(24, client.command_number));
    assert_eq!(client.receive().unwrap().opcode(), 0x20);
}

const FORGED: &[(&str, Forged)] = &[
    ("a DataSN that is not the next", |client, r2t| {
        client.send(&out(client, r2t).word(36, 1).data(&[6; 8192]));
        not_done(client);
    }),
    ("a DataSN that was used", |client, r2t| {
        let mut first = out(client, r2t).data(&[6; 4096]);
        first.head[1] = 0;
        client.send(&first);
        client.send(&out(client, r2t).word(40, 4096).data(&[6; 4096]));
        not_done(client);
    }),
    ("the tag of another command", |client, r2t| {
        let forged = out(client, r2t).word(16, client.tag + 1);
        client.send(&forged.data(&[6; 8192]));
        only_read(client);
    }),
    ("a command's number again", |client, _| {
        let again = client.write_10(0, 1, 0xa1);
        client.command_number -= 1;
        let used = client.command_number - 1;
        client.send(&again.word(24, used).data(&[6; 512]));
        only_read(client);
    }),
    ("a status acknowledged that was never sent", |client, _| {
        let ready = client.command(0x81, 0, &[0; 6]);
        client.send(&ready.word(28, 0x7fff_0000));
        assert_eq!(client.receive().unwrap().opcode(), 0x21);
        only_read(client);
    }),
    ("retransmission request", |client, r2t| {
        // SNACK (RFC 7143, section 11.16) requires error recovery level 1, which was not
        // negotiated.
        let snack = Pdu::new(0x10, 0x80).word(16, client.tag);
        client.send(&snack.word(20, r2t.get(20)).word(44, 1));
        assert_eq!(client.receive().unwrap().opcode(), 0x3f, "a reject");
    }),
];

#[test]
fn forged_numbers_have_no_effect() {
    let server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    for (name, forge) in FORGED {
        println!("{name}");
        let mut client = Client::log_in(&server, "iqn.2026-11.test:hostile", "").settle();
        let command = client.write_10(0, 16, 0xa1);
        client.send(&command);
        let r2t = client.receive().expect("an R2T");
        assert_eq!(r2t.opcode(), 0x31);
        forge(&mut client, &r2t);
        assert_eq!(host.write(40, &[9; 512]), 0, "{name}");
        assert_eq!(host.read(40, 1), (vec![9; 512], 0), "{name}");
        assert_eq!(server.device.content(0, 8192), [0; 8192], "{name}");
    }
}
