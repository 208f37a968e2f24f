//! Names: unusual initiator names, hidden target names, reported addresses, and hosts with the same
//! name.

use crate::support::chap::{hex, with_secrets};
use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use std::net::SocketAddr;

const HOST: &str = "iqn.2026-11.test:host";

fn try_log_in(server: &Server, initiator: &str, target: &str) -> [u8; 2] {
    let mut client = Client::connect(server);
    let answer = client.login(
        0x87,
        &format!("InitiatorName={initiator}\0TargetName={target}\0"),
    );
    [answer.head[36], answer.head[37]]
}

#[test]
fn unusual_initiator_names_are_accepted() {
    let granted = "iqn.1998-01.com.vmware:ESX01-4F2A,iqn.2008-11.org.linux-kvm:win_10";
    let server = Server::start(&[("initiators", granted)]);
    for (name, status) in [
        ("iqn.1998-01.com.vmware:esx01-4f2a", [0, 0]),
        ("IQN.1998-01.COM.VMWARE:ESX01-4F2A", [0, 0]),
        ("iqn.2008-11.org.linux-kvm:win_10", [0, 0]),
        ("iqn.2008-11.org.linux-kvm:Win_10", [0, 0]),
        ("iqn.2008-11.org.linux-kvm:win-10", [2, 3]),
        ("win_10", [2, 0]),
        ("iqn.2008-11.org.linux-kvm:win 10", [2, 0]),
        ("iqn.2008-11.org.linux-kvm:win,10", [2, 0]),
    ] {
        assert_eq!(try_log_in(&server, name, &server.target), status, "{name}");
        let capitals = server.target.to_uppercase();
        assert_eq!(try_log_in(&server, name, &capitals), status, "{name}");
    }
}

/// SendTargets response at an address.
fn told(portal: SocketAddr) -> String {
    let mut client = Client::connect_to(portal);
    let text = format!("InitiatorName={HOST}\0SessionType=Discovery\0");
    assert_eq!(client.login(0x87, &text).head[36], 0);
    let request = Pdu::new(0x04, 0x80).word(16, 1).word(20, NO_TAG);
    client.send(
        &request
            .word(24, client.command_number)
            .data(b"SendTargets=All\0"),
    );
    client.receive().unwrap().text()
}

#[test]
fn wildcard_portal_reports_a_usable_address() {
    let server = Server::start(&[("portal", "[::]:0"), ("without-authentication", "yes")]);
    let port = server.portal().port();
    for (address, shown) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
        let text = told(SocketAddr::new(address.parse().unwrap(), port));
        let line = format!("TargetAddress={shown}:{port},1\n");
        assert!(text.contains(&line), "{text}");
    }
    let four = SocketAddr::new("127.0.0.1".parse().unwrap(), port);
    let _host = Client::log_in_to(four, &server.target, HOST, "");
    let sessions = server.export.as_ref().unwrap().session_list();
    assert!(
        sessions[0].address.starts_with("127.0.0.1:"),
        "{}",
        sessions[0].address
    );
}

#[test]
fn hosts_with_one_name_are_reported() {
    let server = Server::start(&[("portal", "[::]:0"), ("without-authentication", "yes")]);
    let port = server.portal().port();
    let log_in = |address: &str| {
        let portal = SocketAddr::new(address.parse().unwrap(), port);
        Client::log_in_to(portal, &server.target, HOST, "")
    };
    let troubles = || server.export.as_ref().unwrap().troubles();
    let first = log_in("127.0.0.1");
    let second = log_in("::1");
    assert!(troubles().is_empty(), "a host may have moved");
    let third = log_in("127.0.0.1");
    let told = troubles();
    assert_eq!(told.len(), 1);
    for part in [HOST, "127.0.0.1", "::1", "InitiatorName"] {
        assert!(told[0].contains(part), "{told:?}");
    }
    drop((first, second, third));
}

/// All login responses, without random values.
fn answers(server: &Server, initiator: &str, target: &str, texts: &[(u8, &str)]) -> String {
    let mut client = Client::connect(server);
    let mut all = String::new();
    for (number, (flags, text)) in texts.iter().enumerate() {
        let names = match number {
            0 => format!("InitiatorName={initiator}\0TargetName={target}\0"),
            _ => String::new(),
        };
        let pdu = Pdu::new(0x43, *flags).byte(13, 1).word(24, 1);
        client.send(&pdu.data(format!("{names}{text}").as_bytes()));
        let Some(answer) = client.receive() else {
            all += "closed\n";
            break;
        };
        all += &format!("{:02x?} {:02x?}\n", &answer.head[..4], &answer.head[36..38]);
        for line in answer.text().lines() {
            let key = line.split('=').next().unwrap();
            let is_drawn = ["CHAP_C", "CHAP_I"].contains(&key);
            all += if is_drawn { key } else { line };
            all.push('\n');
        }
    }
    all
}

#[test]
fn unknown_target_is_indistinguishable_from_a_secret_one() {
    let text = "name host\nsecret 0123456789abcdef\n";
    let server = with_secrets("hidden", text, |path| Server::start(&[("chap", path)]));
    let forbidden = format!("{}.forbidden", server.target);
    let _forbidden = server.also(&[("target", &forbidden), ("initiators", "iqn.other")]);
    let elsewhere = Server::start(&[]);
    let proof = format!("CHAP_N=host\0CHAP_R=0x{}\0", hex(&[7; 16]));
    let logins: [&[(u8, &str)]; 6] = [
        &[(0x87, "")],
        &[(0x83, "")],
        &[(0x81, "AuthMethod=None\0")],
        &[(0x81, "AuthMethod=KRB5\0")],
        &[(0x81, "AuthMethod=CHAP,None\0"), (0x01, "CHAP_A=9\0")],
        &[
            (0x81, "AuthMethod=CHAP,None\0"),
            (0x01, "CHAP_A=7,5\0"),
            (0x81, &proof),
            (0x87, ""),
        ],
    ];
    for login in logins {
        let secret = answers(&server, HOST, &server.target, login);
        assert!(secret.contains("[02, 01]"), "{secret}");
        for other in ["iqn.2026-11.test:none", &forbidden, &elsewhere.target] {
            assert_eq!(answers(&server, HOST, other, login), secret, "{other}");
        }
    }
    // Without required secrets nothing is hidden, and hosts without access see nothing.
    for other in ["iqn.2026-11.test:none", &server.target, &forbidden] {
        assert_eq!(try_log_in(&elsewhere, HOST, other), [2, 3]);
    }
}
