use super::*;
use crate::Clock;
use std::pin::pin;
use std::task::Context;

/// Who waits, at an address and so urgently.
type Who = (u64, Option<Urgency>);

/// Who gets the turns, of those who wait at these addresses while the one at 50 has the only one.
fn order(addresses: &[u64]) -> Vec<u64> {
    let waiting: Vec<Who> = addresses.iter().map(|at| (*at, None)).collect();
    order_of(&Limit::new(1), &waiting, || ())
}

/// The same of a limit, and `meanwhile` is done once all wait.
fn order_of(limit: &Limit, waiting: &[Who], meanwhile: impl FnOnce()) -> Vec<u64> {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(mut held) = pin!(limit.get_at(50, None)).poll(&mut context) else {
        panic!("nobody has a turn yet");
    };
    let waiting = waiting
        .iter()
        .map(|(at, urgency)| (*at, Box::pin(limit.get_at(*at, *urgency))));
    let mut waiting: Vec<_> = waiting.collect();
    waiting.iter_mut().for_each(|(_, turn)| {
        assert!(turn.as_mut().poll(&mut context).is_pending());
    });
    meanwhile();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        drop(held);
        let mut turns = waiting.iter_mut().enumerate();
        let next = turns.find_map(
            |(index, (_, turn))| match turn.as_mut().poll(&mut context) {
                Poll::Ready(permit) => Some((index, permit)),
                Poll::Pending => None,
            },
        );
        let (index, permit) = next.expect("one of them has it");
        held = permit;
        order.push(waiting.remove(index).0);
    }
    order
}

/// A clock that stands.
struct Standing(u64);

impl Clock for Standing {
    fn now_ns(&self) -> u64 {
        self.0
    }
}

/// One turn at a time, at this moment.
fn limit_at(now_ns: u64) -> Limit {
    let handle = Handle::simulated(Box::new(Standing(now_ns)), 1).unwrap();
    handle.now_ns();
    Limit::timed(1, 1, &handle)
}

fn urgent(level: u8, from_ns: u64) -> Option<Urgency> {
    Some(Urgency { level, from_ns })
}

#[test]
fn turns_go_upwards_and_then_from_the_lowest_again() {
    assert_eq!(order(&[60, 10, 70, 55, 20]), [55, 60, 70, 10, 20]);
    assert_eq!(order(&[0, 0, 0]), [0, 0, 0]);
}

#[test]
fn who_waits_behind_much_has_a_turn_all_the_same() {
    let mut addresses = vec![1];
    addresses.extend(100..200);
    let place = order(&addresses).iter().position(|at| *at == 1);
    assert!(
        place.is_some_and(|place| place < ELDEST as usize),
        "{place:?}"
    );
}

#[test]
fn who_is_urgent_goes_first_by_level_and_then_as_the_head_goes() {
    let waiting = [
        (60, None),
        (10, urgent(3, 0)),
        (90, urgent(1, 7)),
        (70, urgent(3, 5)),
        (55, None),
        (20, urgent(1, 7)),
        (80, urgent(2, 8)),
    ];
    // At level 2 no waiter is urgent yet.
    let got = order_of(&limit_at(7), &waiting, || ());
    assert_eq!(got, [90, 20, 70, 10, 55, 60, 80]);
    let got = order_of(&limit_at(8), &waiting, || ());
    assert_eq!(got, [90, 20, 80, 10, 70, 55, 60]);
}

#[test]
fn whoever_is_urgent_one_of_sixteen_turns_goes_to_who_waited_longest() {
    let mut waiting = vec![(1, None), (2, urgent(5, 0))];
    waiting.extend((0..100).map(|at| (200 + at, urgent(1, 0))));
    let got = order_of(&limit_at(1), &waiting, || ());
    let place = |at: u64| got.iter().position(|got| *got == at);
    assert_eq!([place(1), place(2)], [Some(15), Some(31)]);
}

#[test]
fn who_is_waited_for_becomes_as_urgent() {
    let limit = limit_at(1);
    let waiting = [
        (30, None),
        (40, urgent(4, 9)),
        (60, None),
        (70, urgent(1, 0)),
    ];
    let hurry = || {
        limit.hurry(
            30..41,
            Urgency {
                level: 2,
                from_ns: 0,
            },
        );
        limit.hurry(
            70..71,
            Urgency {
                level: 2,
                from_ns: 0,
            },
        );
    };
    assert_eq!(order_of(&limit, &waiting, hurry), [70, 30, 40, 60]);
}

#[test]
fn while_somebody_urgent_has_a_turn_others_get_fewer() {
    let handle = Handle::simulated(Box::new(Standing(1)), 1).unwrap();
    handle.now_ns();
    let limit = Limit::timed(3, 2, &handle);
    let mut context = Context::from_waker(Waker::noop());
    let mut get = |at, urgency| {
        let mut turn = Box::pin(limit.get_at(at, urgency));
        match turn.as_mut().poll(&mut context) {
            Poll::Ready(permit) => Ok(permit),
            Poll::Pending => Err(turn),
        }
    };
    let first = get(1, None).ok().expect("nobody has one");
    let urgent_one = get(9, urgent(2, 0)).ok().expect("two are free");
    let mut other = get(2, None).err().expect("what is left is kept");
    let mut less = get(3, urgent(3, 0)).err().expect("and for this one");
    let alike = get(4, urgent(1, 0)).ok().expect("it is more urgent");
    drop(alike);
    assert!(other.as_mut().poll(&mut context).is_pending());
    drop(urgent_one);
    let less = less.as_mut().poll(&mut context);
    assert!(less.is_ready(), "it is the next that is urgent");
    assert!(other.as_mut().poll(&mut context).is_pending());
    drop(first);
    assert!(other.as_mut().poll(&mut context).is_ready());
}

#[test]
fn who_is_urgent_and_gives_up_leaves_nothing() {
    let limit = limit_at(1);
    let mut context = Context::from_waker(Waker::noop());
    let held = limit.try_get().expect("the only one");
    let mut gone = Box::pin(limit.get_at(3, urgent(1, 0)));
    assert!(gone.as_mut().poll(&mut context).is_pending());
    drop(gone);
    assert!(limit.0.urgent.borrow().is_empty());
    drop(held);
    assert_eq!(limit.taken(), 0);
}

#[test]
fn who_gives_up_waiting_leaves_the_turn_to_others() {
    let limit = Limit::new(1);
    let mut context = Context::from_waker(Waker::noop());
    let held = limit.try_get().expect("the only one");
    let mut gone = Box::pin(limit.get());
    assert!(gone.as_mut().poll(&mut context).is_pending());
    let mut granted = Box::pin(limit.get());
    assert!(granted.as_mut().poll(&mut context).is_pending());
    drop(gone);
    drop(held);
    drop(granted);
    assert!(limit.try_get().is_some());
}
