//! The budget is never exceeded, every waiter gets its turn, and returned memory is available to others.

use super::*;
use std::task::Wake;

const MIB: usize = 1 << 20;

#[derive(Default)]
struct Counting(AtomicUsize);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll(step: &mut (impl Future<Output = ()> + Unpin), waker: &Waker) -> bool {
    std::pin::Pin::new(step)
        .poll(&mut Context::from_waker(waker))
        .is_ready()
}

fn is_ready(step: &mut (impl Future<Output = ()> + Unpin)) -> bool {
    poll(step, Waker::noop())
}

#[test]
fn a_session_has_a_little_of_its_own_whatever_others_hold() {
    let budget = Budget::new(MIB);
    let (much, little) = (
        Account::new([budget.clone()]),
        Account::new([budget.clone()]),
    );
    assert!(much.try_take(MIB + OWN));
    assert_eq!(budget.used(), MIB);
    assert!(little.try_take(OWN));
    assert!(!little.try_take(1));
    much.give(MIB + OWN);
    assert!(little.try_take(1));
    assert_eq!(budget.used(), GRANULE);
}

#[test]
fn a_part_is_limited_by_itself_and_by_the_whole() {
    let whole = Budget::new(3 * MIB);
    let parts = [whole.part(2 * MIB), whole.part(2 * MIB)];
    let [first, second] = parts.each_ref().map(|part| Account::new([part.clone()]));
    assert!(first.try_take(2 * MIB));
    assert!(!first.try_take(MIB));
    assert!(second.try_take(MIB));
    assert!(!second.try_take(MIB), "the whole is taken");
    assert_eq!(
        (parts[1].used(), whole.used()),
        (MIB, 3 * MIB),
        "what was refused is counted nowhere"
    );
    drop(first);
    assert!(second.try_take(MIB));
    drop(second);
    assert_eq!((parts[0].used(), parts[1].used(), whole.used()), (0, 0, 0));
}

#[test]
fn a_large_request_is_not_passed_by_small_ones() {
    let budget = Budget::new(4 * MIB);
    let sessions: Vec<_> = (0..4).map(|_| Account::new([budget.clone()])).collect();
    for session in &sessions[..3] {
        assert!(session.try_take(MIB + OWN));
    }
    let mut large = Box::pin(sessions[3].take(4 * MIB));
    assert!(!is_ready(&mut large));
    // There is room for these, but another waiter is first.
    let fifth = Account::new([budget.clone()]);
    let mut small = Box::pin(fifth.take(GRANULE));
    assert!(!is_ready(&mut small));
    for session in &sessions[..3] {
        assert!(!is_ready(&mut large));
        session.give(MIB + OWN);
    }
    assert!(!is_ready(&mut small));
    assert!(is_ready(&mut large));
    assert!(!is_ready(&mut small));
    drop(large);
    sessions[3].give(4 * MIB);
    assert!(is_ready(&mut small));
}

#[test]
fn more_than_all_is_had_by_who_is_alone() {
    let budget = Budget::new(MIB);
    let (first, second) = (
        Account::new([budget.clone()]),
        Account::new([budget.clone()]),
    );
    assert!(first.try_take(GRANULE));
    let mut huge = Box::pin(second.take(8 * MIB));
    assert!(!is_ready(&mut huge));
    // Its free allowance does not count, and its reserve is returned since another session waits.
    first.give(GRANULE - 1);
    assert!(is_ready(&mut huge));
    assert!(first.try_take(OWN - 1));
    assert!(!first.try_take(1));
}

#[test]
fn who_waits_is_woken_in_turn_and_who_gives_up_leaves_the_turn() {
    let budget = Budget::new(MIB);
    let holder = Account::new([budget.clone()]);
    assert!(holder.try_take(MIB));
    let counts: Vec<_> = (0..3).map(|_| Arc::new(Counting::default())).collect();
    let woken = |at: usize| counts[at].0.load(Ordering::Relaxed) > 0;
    let sessions: Vec<_> = (0..3).map(|_| Account::new([budget.clone()])).collect();
    let mut waits: Vec<_> = sessions
        .iter()
        .map(|session| Some(Box::pin(session.take(MIB))))
        .collect();
    for (wait, count) in waits.iter_mut().zip(&counts) {
        let wait = wait.as_mut().expect("it waits");
        assert!(!poll(wait, &Waker::from(count.clone())));
    }
    assert_eq!(budget.waiting(), 3);
    waits[0] = None;
    assert!(woken(1) && !woken(2), "the next one looks");
    holder.give(MIB);
    assert!(is_ready(waits[1].as_mut().expect("it waits")));
    assert!(woken(2), "there may be some left for the one behind");
    assert!(!is_ready(waits[2].as_mut().expect("it waits")));
    sessions[1].give(MIB);
    assert!(is_ready(waits[2].as_mut().expect("it waits")));
    assert_eq!(budget.waiting(), 0);
}

#[test]
fn what_a_session_returns_wakes_its_own_tasks() {
    let budget = Budget::new(MIB);
    let session = Account::new([budget.clone()]);
    assert!(session.try_take(MIB + OWN));
    let count = Arc::new(Counting::default());
    let mut wait = Box::pin(session.take(4096));
    assert!(!poll(&mut wait, &Waker::from(count.clone())));
    // Too little for a granule to be returned.
    session.give(4096);
    assert!(count.0.load(Ordering::Relaxed) > 0);
    assert!(is_ready(&mut wait));
}

#[test]
fn sessions_on_other_threads_hold_never_more_than_there_is() {
    let whole = Budget::new(8 * MIB);
    let part = whole.part(5 * MIB);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let part = part.clone();
            scope.spawn(move || {
                let session = Account::new([part.clone()]);
                for round in 0..2000 {
                    let bytes = (thread * 7919 + round * 104_729) % (3 * MIB) + 1;
                    while !session.try_take(bytes) {
                        std::thread::yield_now();
                    }
                    assert!(part.used() <= part.most());
                    session.give(bytes);
                }
            });
        }
    });
    assert_eq!((whole.used(), part.used()), (0, 0));
}

struct Moving(std::rc::Rc<Cell<u64>>);

impl crate::Clock for Moving {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// Timeout in seconds of a step for a session that holds `bytes`, with or without other waiters.
fn patience(bytes: usize, pressed: bool) -> u64 {
    let now = std::rc::Rc::new(Cell::new(0));
    let handle = Handle::simulated(Box::new(Moving(now.clone())), 1).unwrap();
    let budget = Budget::new(MIB);
    let (other, waits) = (
        Account::new([budget.clone()]),
        Account::new([budget.clone()]),
    );
    let session = Account::new([budget]);
    assert!(session.try_take(bytes) && other.try_take(GRANULE));
    let mut wait = Box::pin(waits.take(2 * MIB));
    assert!(!pressed || !is_ready(&mut wait));
    let mut step = Box::pin(session.patiently(&handle, std::future::pending::<()>()));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        handle.fire_timers();
        if step.as_mut().poll(&mut context) == Poll::Ready(None) {
            return now.get() / SECOND_NS;
        }
        now.set(now.get() + SECOND_NS);
        assert!(now.get() < 100 * SECOND_NS, "it is never given up");
    }
}

#[test]
fn a_peer_that_reads_nothing_is_given_up_soon_when_others_need_what_it_holds() {
    assert_eq!(patience(MIB / 2, true), PATIENCE_PRESSED_S);
    assert_eq!(patience(MIB / 2, false), PATIENCE_S);
    // Its free allowance does not help others.
    assert_eq!(patience(OWN, true), PATIENCE_S);
}
