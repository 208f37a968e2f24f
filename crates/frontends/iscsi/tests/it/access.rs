//! Access rights changed during sessions; listing and ending sessions; portal states.

use crate::support::client::{Client, NO_TAG, Pdu};
use crate::support::server::Server;
use std::net::SocketAddr;

const HOST: &str = "iqn.2026-11.test:host";
const OTHER: &str = "iqn.2026-11.test:other";

/// Status of a login: class and detail.
fn login_status(server: &Server, initiator: &str) -> [u8; 2] {
    let mut client = Client::connect(server);
    let text = format!("InitiatorName={initiator}\0TargetName={}\0", server.target);
    let answer = client.login(0x87, &text);
    [answer.head[36], answer.head[37]]
}

/// Whether discovery reports the target to an initiator.
fn is_discovered(server: &Server, initiator: &str) -> bool {
    let mut client = Client::connect(server);
    let text = format!("InitiatorName={initiator}\0SessionType=Discovery\0");
    assert_eq!(client.login(0x87, &text).head[36], 0);
    let request = Pdu::new(0x04, 0x80)
        .word(16, 1)
        .word(20, NO_TAG)
        .word(24, client.command_number);
    client.send(&request.data(b"SendTargets=All\0"));
    client.receive().unwrap().text().contains(&server.target)
}

/// Key, code and qualifier of a failed TEST UNIT READY; none if it succeeds.
fn sense(client: &mut Client) -> Option<(u8, u8, u8)> {
    let pdu = client.command(0x81, 0, &[0; 6]);
    client.send(&pdu);
    let answer = client.receive().unwrap();
    (answer.head[3] == 2).then(|| (answer.data[4], answer.data[14], answer.data[15]))
}

#[test]
fn only_permitted_addresses_see_the_target() {
    let server = Server::start(&[("addresses", "192.0.2.0/24,2001:db8::/32")]);
    assert_eq!(login_status(&server, HOST), [2, 3]);
    assert!(!is_discovered(&server, HOST));
    let server = Server::start(&[("addresses", "192.0.2.0/24,127.0.0.0/8")]);
    assert_eq!(login_status(&server, HOST), [0, 0]);
    assert!(is_discovered(&server, HOST));
}

#[test]
fn revoked_access_ends_only_its_sessions() {
    let mut server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let mut other = Client::log_in(&server, OTHER, "").settle();
    server.change(&[("initiators", HOST)]).unwrap();
    let told = other.receive().unwrap();
    assert_eq!((told.opcode(), told.head[36]), (0x32, 3));
    assert!(other.receive().is_none());
    assert_eq!(login_status(&server, OTHER), [2, 3]);
    assert!(!is_discovered(&server, OTHER));
    assert_eq!(host.ready(), 0);
    server.change(&[("addresses", "192.0.2.1")]).unwrap();
    assert!(host.receive().is_some() && host.receive().is_none());
}

/// Writes one block of unit 1.
fn write_second(client: &mut Client, fill: u8) -> Pdu {
    let pdu = client.write_10(0, 1, 0xa1);
    pdu.byte(9, 1).data(&[fill; 512])
}

#[test]
fn stopped_export_leaves_other_units_of_the_session() {
    let server = Server::start(&[]);
    let (second, device, _) = server.second(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let mut idle = Client::log_in(&server, OTHER, "").settle();
    let taken = write_second(&mut host, 1);
    host.send(&taken);
    assert_eq!(host.receive().unwrap().head[3], 2, "a new nexus");
    device.hold();
    let written = write_second(&mut host, 2);
    host.send(&written);
    while device.in_flight() == 0 {
        std::thread::yield_now();
    }
    let ending = std::thread::spawn(move || drop(second));
    // While one command is in flight to the removed unit, the other is informed.
    let told = (0..100_000).find_map(|_| sense(&mut host));
    assert_eq!(told, Some((6, 0x3f, 0x0e)), "the inventory has changed");
    assert!(!ending.is_finished());
    device.go_on();
    let answer = host.receive().unwrap();
    assert_eq!(
        (answer.opcode(), answer.head[3]),
        (0x21, 0),
        "it completed in flight"
    );
    ending.join().unwrap();
    assert_eq!(device.content(0, 512), [2; 512]);
    assert_eq!(sense(&mut idle), Some((6, 0x3f, 0x0e)));
    for client in [&mut host, &mut idle] {
        assert_eq!(sense(client), None, "the session continues");
        let refused = write_second(client, 3);
        client.send(&refused);
        let answer = client.receive().unwrap();
        assert_eq!(answer.data[2 + 12..2 + 14], [0x25, 0], "no such unit");
    }
    assert_eq!(server.sessions(), 2);
}

#[test]
fn write_access_changes_during_a_session() {
    let mut server = Server::start(&[]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    server.change(&[("read-only", "yes")]).unwrap();
    assert_eq!(sense(&mut host), Some((6, 0x2a, 0x01)));
    assert_eq!(host.write(0, &[1; 512]), 2);
    assert_eq!(server.device.content(0, 512), [0; 512]);
    server.change(&[("read-only", "no")]).unwrap();
    assert_eq!(sense(&mut host), Some((6, 0x2a, 0x01)));
    assert_eq!(host.write(0, &[1; 512]), 0);
}

#[test]
fn unchangeable_parameters_are_refused() {
    let mut server = Server::start(&[("lun", "0")]);
    let mut host = Client::log_in(&server, HOST, "").settle();
    let refused = server.change(&[("lun", "3"), ("read-only", "yes")]);
    assert!(refused.unwrap_err().to_string().contains("lun"));
    let refused = server.change(&[("lun", "0"), ("addresses", "nowhere")]);
    assert!(refused.unwrap_err().to_string().contains("nowhere"));
    assert_eq!(sense(&mut host), None);
    assert_eq!(host.write(0, &[1; 512]), 0);
}

#[test]
fn session_is_listed_with_statistics_and_disconnected() {
    let server = Server::start(&[]);
    let export = server.export.as_ref().unwrap();
    let mut host = Client::log_in(&server, HOST, "").settle();
    assert_eq!(host.write(0, &[1; 1024]), 0);
    assert_eq!(host.read(0, 1).1, 0);
    let listed = export.session_list();
    let [session] = &listed[..] else {
        panic!("one session: {listed:?}");
    };
    assert_eq!(
        (&*session.initiator, &*session.target),
        (HOST, &*server.target)
    );
    assert_eq!(session.portal, server.portal().to_string());
    let own: SocketAddr = host.stream.local_addr().unwrap();
    assert_eq!(session.address, own.to_string());
    assert_eq!(
        (session.read, session.written, session.commands),
        (512, 1024, 0)
    );
    assert!(session.user.is_none() && session.since_s > 1_700_000_000);
    server.device.hold();
    let waiting = host.write_10(0, 1, 0xa1).data(&[1; 512]);
    host.send(&waiting);
    while export.session_list()[0].commands == 0 {
        std::thread::yield_now();
    }
    server.device.go_on();
    assert_eq!(host.receive().unwrap().head[3], 0);
    assert!(!export.end_session(session.id + 1_000_000));
    // On a busy machine the time may be over before it has done anything: then retry.
    let has_time = (0..20).any(|_| {
        assert!(export.end_session(export.session_list()[0].id));
        let told = host.receive().unwrap();
        assert_eq!((told.opcode(), told.head[36]), (0x32, 1), "log out, please");
        let ready = host.command(0x81, 0, &[0; 6]);
        host.send(&ready);
        let answer = host.receive();
        if let Some(answer) = &answer {
            assert_eq!(answer.head[3], 0);
            assert!(
                host.receive().is_none(),
                "otherwise the connection is closed"
            );
        } else {
            host = Client::log_in(&server, HOST, "").settle();
        }
        answer.is_some()
    });
    assert!(has_time, "there is time to log out");
    while !export.session_list().is_empty() {
        std::thread::yield_now();
    }
}

/// Reports the states of target port groups to a session.
fn states(client: &mut Client) -> Vec<(u16, u8)> {
    let pdu = client.command(0xc1, 255, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0]);
    client.send(&pdu);
    let data = client.receive().unwrap().data;
    let groups = data[4..].chunks_exact(12);
    groups
        .map(|group| (u16::from_be_bytes([group[2], group[3]]), group[0] & 0x0f))
        .collect()
}

/// Portals of an export.
fn portals(server: &Server) -> Vec<String> {
    let address = server.export.as_ref().unwrap().address();
    let list = address.trim_start_matches("iscsi:").split('/').next();
    list.unwrap().split(',').map(str::to_owned).collect()
}

#[test]
fn standby_port_and_back_while_the_other_serves() {
    let mut server = Server::start(&[("portal", "127.0.0.1:0,127.0.0.1:0")]);
    let portals = portals(&server);
    let [first, second] = &portals[..] else {
        panic!("two portals: {portals:?}");
    };
    let log_in = |portal: &str| {
        let portal = portal.parse().unwrap();
        Client::log_in_to(portal, &server.target, HOST, "").settle()
    };
    let (mut one, mut two) = (log_in(first), log_in(second));
    assert_eq!(states(&mut one), [(1, 0), (2, 0)]);
    let standby = format!("{second}=standby,{first}=active-nonoptimized");
    server.change(&[("states", &standby)]).unwrap();
    for client in [&mut one, &mut two] {
        assert_eq!(
            sense(client),
            Some((6, 0x2a, 0x06)),
            "each nexus gets a unit attention"
        );
    }
    assert_eq!(states(&mut one), [(1, 1), (2, 2)]);
    assert_eq!(
        states(&mut two),
        [(1, 1), (2, 2)],
        "a standby port reports states"
    );
    assert_eq!(sense(&mut two), Some((2, 0x04, 0x0b)));
    assert_eq!(two.write(0, &[2; 512]), 2);
    assert_eq!(one.write(0, &[1; 512]), 0);
    assert_eq!(server.device.content(0, 512), [1; 512]);
    // A host sets the states: group 2 first.
    let list = [0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 1];
    let cdb = [0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0];
    let pdu = two.command(0xa1, 12, &cdb).data(&list);
    two.send(&pdu);
    assert_eq!(two.receive().unwrap().head[3], 0);
    assert_eq!(states(&mut two), [(1, 2), (2, 0)]);
    assert_eq!(two.write(0, &[2; 512]), 0);
    assert_eq!(sense(&mut one), Some((6, 0x2a, 0x06)));
    assert_eq!(sense(&mut one), Some((2, 0x04, 0x0b)));
    let strange = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9];
    let pdu = two.command(0xa1, 12, &cdb).data(&strange);
    two.send(&pdu);
    assert_eq!(two.receive().unwrap().head[3], 2, "no such group");
    assert_eq!(
        states(&mut two),
        [(1, 2), (2, 0)],
        "the states are unchanged"
    );
    let refused = server.change(&[("states", "192.0.2.1:3260=standby")]);
    assert!(refused.unwrap_err().to_string().contains("192.0.2.1"));
}

#[test]
fn portal_keeps_its_group_tag_after_an_earlier_export_is_deleted() {
    let mut server = Server::start(&[]);
    let first = server.export.take();
    let own = |portal: &str, lun: &str, groups: &str| {
        let all = [("portal", portal), ("lun", lun), ("groups", groups)];
        server.another(&all[..if groups.is_empty() { 2 } else { 3 }])
    };
    let second = own("127.0.0.1:0", "1", "").unwrap();
    let chosen = second.chosen()["groups"].clone();
    assert_eq!(chosen, "2");
    let address = second.address();
    let portal = address.trim_start_matches("iscsi:").split('/').next();
    let portal = portal.unwrap().to_owned();
    drop(second);
    drop(first);
    // The first is gone; the second is restarted with its stored parameters.
    let second = own(&portal, "0", &chosen).unwrap();
    let log_in = || Client::log_in_to(portal.parse().unwrap(), &server.target, HOST, "");
    assert_eq!(states(&mut log_in().settle()), [(2, 0)]);
    // A group tag belongs to one portal, and vice versa.
    let refused = own("127.0.0.1:0", "2", "2").err().unwrap().to_string();
    assert!(refused.contains(&format!("{portal}=2")), "{refused}");
    assert!(own(&portal, "2", "7").is_err());
    assert_eq!(own("127.0.0.1:0", "2", "").unwrap().chosen()["groups"], "3");
    let shared = own(&portal, "2", "").unwrap();
    assert_eq!(shared.chosen()["groups"], "2", "the same portal");
    // Assigned values need not be repeated in a change.
    let mut changed: std::collections::BTreeMap<_, _> = [
        ("target", &*server.target),
        ("portal", &*portal),
        ("lun", "2"),
        ("read-only", "yes"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    shared.change(&changed).unwrap();
    changed.insert("groups".to_owned(), "5".to_owned());
    let refused = shared.change(&changed).unwrap_err().to_string();
    assert!(refused.contains("groups"), "{refused}");
    drop(second);
}
