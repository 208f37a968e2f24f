use super::*;
use std::future::Future;
use std::task::{Context, Waker};

const ADMITTED: ShareLimits = ShareLimits {
    all: 12,
    network: 6,
    address: 4,
    reserve: 4,
    few: 0,
};
const ARRIVALS: ShareLimits = ShareLimits {
    all: 30,
    network: 20,
    address: 20,
    reserve: 0,
    few: 0,
};

fn shares() -> Shares {
    Shares::new(Limits {
        arrivals: ARRIVALS,
        admitted: ADMITTED,
    })
}

/// A connection with a complete request.
fn asking(shares: &Shares, origin: Origin, proven: bool) -> Option<Share> {
    shares.take(origin, proven).filter(Share::admit)
}

fn address(text: &str) -> Origin {
    Origin::of(text.parse().unwrap())
}

fn has_ended(share: &Share) -> bool {
    let ended = std::pin::pin!(share.ended());
    ended
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_ready()
}

fn ended(shares: &[Share]) -> usize {
    shares.iter().filter(|share| has_ended(share)).count()
}

#[test]
fn few_origins_cannot_exhaust_connections() {
    let shares = shares();
    let idle: Vec<Share> = (0..8)
        .map(|at| asking(&shares, Origin::V4(at % 2), false).unwrap())
        .collect();
    let good: Vec<Share> = (10..16)
        .map(|at| asking(&shares, Origin::V4(at), false).unwrap())
        .collect();
    assert_eq!((ended(&idle), ended(&good)), (6, 0));
}

#[test]
fn silent_arrivals_are_closed_oldest_first_before_active_ones() {
    let shares = shares();
    let good = asking(&shares, Origin::User(1), true).unwrap();
    let mut silent: Vec<Share> = (0..ARRIVALS.address)
        .map(|_| shares.take(Origin::User(1), true).unwrap())
        .collect();
    assert_eq!(ended(&silent), 0);
    // As many arrivals of other origins as there is room for.
    let newcomer = shares.take(Origin::User(1), true).unwrap();
    assert!(has_ended(&silent[0]) && ended(&silent[1..]) == 0);
    // It is closed only after all earlier ones, and not at all once it has sent a request.
    for _ in 1..ARRIVALS.address {
        silent.push(shares.take(Origin::User(1), true).unwrap());
    }
    assert!(!has_ended(&newcomer) && newcomer.admit());
    for _ in 0..100 {
        silent.push(shares.take(Origin::User(1), true).unwrap());
    }
    assert!(!has_ended(&newcomer) && !has_ended(&good));
    let other = shares.take(Origin::User(2), true).unwrap();
    for _ in 0..100 {
        silent.push(shares.take(Origin::User(1), true).unwrap());
    }
    assert!(!has_ended(&other), "another origin keeps its arrivals");
}

#[test]
fn closed_arrival_is_not_admitted() {
    let shares = shares();
    let late = shares.take(Origin::User(1), true).unwrap();
    let _silent: Vec<Share> = (0..ARRIVALS.address)
        .map(|_| shares.take(Origin::User(1), true).unwrap())
        .collect();
    assert!(has_ended(&late) && !late.admit());
}

#[test]
fn proven_newcomer_survives_very_many_origins() {
    let shares = shares();
    let good = asking(&shares, Origin::V4(0), false).unwrap();
    good.prove();
    let others: Vec<Share> = (1..100)
        .map(|at| asking(&shares, Origin::V4(at), false).unwrap())
        .collect();
    assert!(!has_ended(&good));
    assert_eq!(ended(&others), 99 - (ADMITTED.all - ADMITTED.reserve));
}

#[test]
fn origin_closes_its_own_idle_connections_and_is_refused_when_all_are_active() {
    let shares = shares();
    let own: Vec<Share> = (0..4)
        .map(|_| asking(&shares, Origin::User(1), true).unwrap())
        .collect();
    let busy: Vec<Busy> = own.iter().skip(1).map(Share::busy).collect();
    let more = asking(&shares, Origin::User(1), true).unwrap();
    assert!(has_ended(&own[0]) && ended(&own[1..]) == 0);
    let _busy = more.busy();
    assert!(asking(&shares, Origin::User(1), true).is_none());
    assert!(asking(&shares, Origin::User(2), true).is_some());
    drop(busy);
    assert!(asking(&shares, Origin::User(1), true).is_some());
}

#[test]
fn connection_of_a_stalled_peer_becomes_inactive() {
    let shares = shares();
    let share = asking(&shares, Origin::User(1), true).unwrap();
    let busy = share.busy();
    let active = |later: u32| {
        let now = Instant::now() + STALL_TIME * later;
        shares.lock().admitted.held[&share.0.number].is_active(now)
    };
    assert!(active(100), "the daemon is busy, not the peer");
    busy.0.waits();
    assert!(active(0) && !active(1));
    busy.0.works();
    assert!(active(100));
    busy.0.waits();
    drop(busy);
    assert!(!active(0));
    let _next = share.busy();
    assert!(active(100), "the next request begins without the wait");
}

#[test]
fn ipv6_network_has_its_own_share() {
    let shares = shares();
    let held: Vec<Share> = (0..20)
        .map(|at| address(&format!("2001:db8:0:{at:x}::1")))
        .map(|origin| asking(&shares, origin, false).unwrap())
        .collect();
    assert_eq!(ended(&held), 20 - ADMITTED.network);
}

#[test]
fn largest_origin_loses_a_connection_when_all_are_active() {
    let shares = shares();
    let held: Vec<Share> = (0..12)
        .map(|at| asking(&shares, Origin::User(at / 4), true).unwrap())
        .collect();
    let _busy: Vec<Busy> = held.iter().map(Share::busy).collect();
    let newcomer = asking(&shares, Origin::User(9), true).unwrap();
    assert!(ended(&held) == 1 && !has_ended(&newcomer));
}

#[test]
fn ended_connection_frees_its_place() {
    let shares = shares();
    let silent = shares.take(Origin::User(1), true).unwrap();
    let held = asking(&shares, Origin::V6(1), false).unwrap();
    held.prove();
    drop(held.busy());
    drop((silent, held));
    let tables = shares.lock();
    for table in [&tables.arrivals, &tables.admitted] {
        assert!(table.held.is_empty() && table.counts.is_empty() && table.unproven == 0);
    }
}
