//! The contract of a loop with its tasks.

use io_uring::opcode;
use reactor::{
    Event, Interest, Limit, ListenAddress, Listener, Reactor, ReactorThread, Remote, SECOND_NS,
    within,
};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes per request to a drive.
const LONG: usize = 128 << 10;

#[test]
fn sleeping_tasks_wake_in_the_order_of_their_deadlines() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let order = Rc::new(RefCell::new(Vec::new()));
    for ms in [30u64, 10, 20] {
        let (handle, order) = (handle.clone(), order.clone());
        reactor.handle().spawn(async move {
            handle.sleep(ms * 1_000_000).await;
            order.borrow_mut().push(ms);
        });
    }
    let woken = order.clone();
    let all = async move {
        while woken.borrow().len() < 3 {
            handle.sleep(1_000_000).await;
        }
    };
    reactor.block_on(all).unwrap();
    assert_eq!(*order.borrow(), [10, 20, 30]);
}

#[test]
fn another_thread_reaches_a_sleeping_loop() {
    let thread = ReactorThread::start("test-loop", 1).unwrap();
    let (give, take) = std::sync::mpsc::channel();
    for number in 0..100 {
        let give = give.clone();
        assert!(thread.remote().spawn(move |handle| async move {
            handle.yield_now().await;
            give.send(number).unwrap();
        }));
    }
    let mut got: Vec<i32> = take.iter().take(100).collect();
    got.sort_unstable();
    assert_eq!(got, (0..100).collect::<Vec<_>>());
    let remote = thread.remote().clone();
    drop(thread);
    assert!(!remote.run(|_| ()));
}

/// A job that requests itself again each time it runs, and holds what it asks.
fn again(remote: &Arc<Remote>) {
    let next = remote.clone();
    remote.run(move |_| again(&next));
}

#[test]
fn what_a_job_holds_that_a_loop_no_longer_runs_is_let_go_of() {
    let reactor = Reactor::new(1).unwrap();
    let remote = Arc::new(reactor.handle().remote());
    again(&remote);
    reactor.block_on(async {}).unwrap();
    assert_eq!(Arc::strong_count(&remote), 1);
}

/// The cores that the calling thread may use, as the system writes them.
fn cores_of_this_thread() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_loop_stays_on_the_core_that_it_was_given() {
    let all = cores_of_this_thread();
    let last = all.rsplit([',', '-']).next().unwrap();
    for (cores, wanted) in [(vec![last.parse().unwrap()], last), (Vec::new(), &all)] {
        let thread = ReactorThread::start_on("test-core", 1, cores).unwrap();
        let (give, take) = std::sync::mpsc::channel();
        thread
            .remote()
            .run(move |_| give.send(cores_of_this_thread()).unwrap());
        assert_eq!(take.recv().unwrap(), wanted);
    }
    let refused = ReactorThread::start_on("test-core", 1, vec![4095]).err();
    let refused = refused.expect("nobody has so many cores").to_string();
    assert!(refused.contains("core 4095"), "{refused}");
}

#[test]
fn many_connections_wait_until_the_loop_takes_them() {
    let reactor = Reactor::new(1).unwrap();
    let any = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let listener = Listener::bind(reactor.handle(), &any).unwrap();
    let Ok(ListenAddress::Tcp(address)) = listener.address() else {
        panic!("another address")
    };
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let count = most.trim().parse::<usize>().unwrap().min(600);
    let limit = std::time::Duration::from_secs(120);
    // They are not accepted: one for which there is no room would never be connected.
    let waiting: Vec<_> = (0..count)
        .map(|_| TcpStream::connect_timeout(&address, limit).unwrap())
        .collect();
    assert_eq!(waiting.len(), count);
}

#[test]
fn a_peer_that_sends_one_request_after_the_other_is_answered_and_one_that_pauses_too() {
    let reactor = Reactor::new(1).unwrap();
    let any = ListenAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let listener = Listener::bind(reactor.handle(), &any).unwrap();
    let Ok(ListenAddress::Tcp(address)) = listener.address() else {
        panic!("another address")
    };
    let peer = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        for number in 0..500u32 {
            if number % 100 == 99 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            stream.write_all(&number.to_be_bytes()).unwrap();
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(u32::from_be_bytes(answer), number + 1);
        }
    });
    let answered = reactor
        .block_on(async move {
            let stream = listener.accept().await.unwrap();
            let (mut answered, mut request) = (0, [0; 4]);
            while let 4 = stream.read_soon(&mut request).await.unwrap() {
                answered += 1;
                let answer = (u32::from_be_bytes(request) + 1).to_be_bytes();
                let parts = &mut [IoSlice::new(&answer)];
                stream.write_all(parts).await.unwrap();
            }
            answered
        })
        .unwrap();
    peer.join().unwrap();
    assert_eq!(answered, 500, "and then it sees the end");
}

#[test]
fn a_limit_lets_so_many_in_and_wakes_the_next() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let most = reactor
        .block_on(async move {
            let (limit, inside, ended) = (
                Limit::new(2),
                Rc::new(RefCell::new((0, 0))),
                Event::default(),
            );
            let left = Rc::new(std::cell::Cell::new(10));
            for _ in 0..10 {
                let (limit, inside, ended) = (limit.clone(), inside.clone(), ended.clone());
                let (handle2, left) = (handle.clone(), left.clone());
                handle.spawn(async move {
                    let _permit = limit.get().await;
                    let now = inside.borrow().0 + 1;
                    let most = inside.borrow().1.max(now);
                    *inside.borrow_mut() = (now, most);
                    handle2.sleep(1_000_000).await;
                    inside.borrow_mut().0 -= 1;
                    left.set(left.get() - 1);
                    ended.notify();
                });
            }
            while left.get() > 0 {
                ended.wait().await;
            }
            inside.borrow().1
        })
        .unwrap();
    assert_eq!(most, 2);
}

#[test]
fn a_stream_carries_bytes_both_ways_and_its_socket_file_is_removed() {
    let path = std::env::temp_dir().join(format!("convect-reactor-{}.sock", std::process::id()));
    let reactor = Reactor::new(1).unwrap();
    let listener = Listener::bind(reactor.handle(), &ListenAddress::Unix(path.clone())).unwrap();
    let client_path = path.clone();
    let client = std::thread::spawn(move || {
        let mut stream = std::os::unix::net::UnixStream::connect(client_path).unwrap();
        stream.write_all(&vec![7; 1 << 20]).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    });
    let sum = reactor
        .block_on(async move {
            let stream = listener.accept().await.unwrap();
            let mut bytes = vec![0; 1 << 20];
            stream.read_exact(&mut bytes).await.unwrap();
            let (first, second) = bytes.split_at(1000);
            stream
                .write_all(&mut [IoSlice::new(first), IoSlice::new(&[]), IoSlice::new(second)])
                .await
                .unwrap();
            bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        })
        .unwrap();
    assert_eq!(sum, 7 << 20);
    assert_eq!(client.join().unwrap().len(), 1 << 20);
    assert!(!path.exists());
}

#[test]
fn a_peer_that_is_as_fast_as_it_is_served_leaves_others_their_turns() {
    let path = std::env::temp_dir().join(format!("convect-turns-{}.sock", std::process::id()));
    let reactor = Reactor::new(1).unwrap();
    let listener = Listener::bind(reactor.handle(), &ListenAddress::Unix(path.clone())).unwrap();
    let mut peer = UnixStream::connect(path).unwrap();
    peer.write_all(&[7; 64 << 10]).unwrap();
    let handle = reactor.handle().clone();
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    reactor.handle().spawn(async move {
        loop {
            counted.set(counted.get() + 1);
            handle.yield_now().await;
        }
    });
    let seen = reactor.block_on(async move {
        let stream = listener.accept().await.unwrap();
        let begun = turns.get();
        // All of it is there: no call has to wait.
        for _ in 0..1024 {
            stream.read_exact(&mut [0; 32]).await.unwrap();
        }
        for _ in 0..1024 {
            stream.read_soon(&mut [0; 32]).await.unwrap();
        }
        for _ in 0..64 {
            let byte = [IoSlice::new(&[7])];
            stream.write_all(&mut { byte }).await.unwrap();
        }
        turns.get() - begun
    });
    let seen = seen.unwrap();
    assert!(seen >= (2 * 1024 + 64) / 20, "{seen} turns");
}

#[test]
fn a_socket_in_use_or_with_a_long_path_is_refused_with_advice() {
    let reactor = Reactor::new(1).unwrap();
    let path = std::env::temp_dir().join(format!("convect-inuse-{}.sock", std::process::id()));
    let _first = Listener::bind(reactor.handle(), &ListenAddress::Unix(path.clone())).unwrap();
    let again = Listener::bind(reactor.handle(), &ListenAddress::Unix(path))
        .err()
        .unwrap();
    assert!(again.to_string().contains("choose another path"), "{again}");
    let long = std::path::PathBuf::from(format!("/tmp/{}", "x".repeat(120)));
    let error = Listener::bind(reactor.handle(), &ListenAddress::Unix(long))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("choose a shorter one"),
        "{error}"
    );
}

#[test]
fn idle_connections_do_not_keep_a_loop_from_being_reached() {
    let thread = ReactorThread::start("test-idle", 1).unwrap();
    let (give, take) = std::sync::mpsc::channel();
    let waiting = give.clone();
    assert!(thread.remote().spawn(move |handle| async move {
        let (idle, _other_end) = UnixStream::pair().unwrap();
        let wait = |_| handle.ready(idle.as_raw_fd(), Interest::Read);
        let waits: Vec<_> = (0..700).map(wait).collect();
        waiting.send(700).unwrap();
        handle.sleep(60_000_000_000).await;
        drop(waits);
    }));
    let patience = std::time::Duration::from_secs(120);
    assert_eq!(take.recv_timeout(patience), Ok(700));
    assert!(thread.remote().run(move |_| give.send(1).unwrap()));
    assert_eq!(take.recv_timeout(patience), Ok(1));
}

#[test]
fn who_stops_waiting_does_not_stop_another() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let ended = reactor.block_on(async move {
        let (first, mut first_end) = UnixStream::pair().unwrap();
        let (second, mut second_end) = UnixStream::pair().unwrap();
        let wait = handle.ready(first.as_raw_fd(), Interest::Read);
        first_end.write_all(b"x").unwrap();
        // It has ended, and has not been queried yet.
        handle.sleep(20_000_000).await;
        let other = handle.ready(second.as_raw_fd(), Interest::Read);
        handle.sleep(1_000_000).await;
        drop(wait);
        handle.sleep(20_000_000).await;
        second_end.write_all(b"y").unwrap();
        other.await
    });
    ended.unwrap().unwrap();
}

#[test]
fn a_drive_with_one_request_does_not_wait_for_tasks_that_are_always_ready() {
    let reactor = Reactor::new(1).unwrap();
    let (handle, rounds) = (reactor.handle().clone(), Rc::new(Cell::new(0)));
    let (other, counted) = (handle.clone(), rounds.clone());
    handle.spawn(async move {
        loop {
            counted.set(counted.get() + 1);
            other.yield_now().await;
        }
    });
    let handle = reactor.handle().clone();
    let asked = async move {
        let file = File::open("/dev/null").unwrap();
        let file = handle.ring_file(Arc::new(file)).unwrap();
        let mut most = 0;
        for _ in 0..8 {
            let before = rounds.get();
            let (done, ended) = block::oneshot();
            let nothing = opcode::Nop::new().build();
            // SAFETY: it names no memory.
            unsafe { handle.drive_io(&file, nothing, None, 0, done) };
            assert!(ended.await.is_some_and(|(_, result)| result.is_ok()));
            most = most.max(rounds.get() - before);
        }
        most
    };
    let most = reactor.block_on(asked).unwrap();
    assert!(most <= 2, "it waited for {most} rounds");
}

#[test]
fn a_drive_begins_with_much_while_its_task_goes_on() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let path = std::env::temp_dir().join(format!("convect-much-{}", std::process::id()));
    let file = Arc::new(File::create_new(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    let asked = async move {
        let ring_file = handle.ring_file(file.clone()).unwrap();
        let write = |len: usize, at: usize| {
            let buf = handle.dma().zeroed(len);
            let bytes = opcode::Write::new(ring_file.target(), buf.as_raw(), len as u32);
            let (done, ended) = block::oneshot();
            let bytes = bytes.offset(at as u64).build();
            // SAFETY: the buffer goes along.
            unsafe { handle.drive_io(&ring_file, bytes, Some(buf), len as u32, done) };
            ended
        };
        let len_after = |least: u64, patience: Duration| {
            let begun = Instant::now();
            while file.metadata().unwrap().len() < least && begun.elapsed() < patience {
                std::thread::yield_now();
            }
            file.metadata().unwrap().len()
        };
        // All this while the loop gets no turn.
        let little = write(4096, 0);
        let seen = [len_after(1, Duration::from_millis(50))];
        let much = write(LONG, 4096);
        let all = (4096 + LONG) as u64;
        let seen = [seen[0], len_after(all, Duration::from_secs(120))];
        let ended = [little.await, much.await];
        assert!(
            ended
                .iter()
                .all(|one| one.as_ref().is_some_and(|(_, result)| result.is_ok()))
        );
        (seen, all)
    };
    let (seen, all) = reactor.block_on(asked).unwrap();
    assert_eq!(seen, [0, all], "a little waits for more, much does not");
}

#[test]
fn a_task_that_begins_at_once_goes_on_when_it_is_woken() {
    let reactor = Reactor::new(1).unwrap();
    let (handle, event) = (reactor.handle().clone(), Rc::new(Event::default()));
    let step = Rc::new(Cell::new(0));
    let (waits, steps) = (event.clone(), step.clone());
    reactor.handle().spawn_at_once(async move {
        steps.set(1);
        waits.wait().await;
        steps.set(2);
    });
    assert_eq!(step.get(), 1);
    let woken = async move {
        handle.yield_now().await;
        let before = step.get();
        event.notify();
        handle.yield_now().await;
        (before, step.get())
    };
    assert_eq!(reactor.block_on(woken).unwrap(), (1, 2));
}

/// A new event descriptor.
fn event() -> File {
    // SAFETY: a plain system call, and a descriptor without another owner.
    unsafe { File::from_raw_fd(libc::eventfd(0, libc::EFD_NONBLOCK)) }
}

#[test]
fn each_signal_is_told_of_without_its_being_read() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let told = reactor.block_on(async move {
        let event = event();
        let signal = || (&event).write_all(&1u64.to_ne_bytes()).unwrap();
        signal();
        let signals = handle.signals(event.as_raw_fd());
        let mut told = Vec::new();
        for count in [0, 1, 3, 0] {
            (0..count).for_each(|_| signal());
            let next = std::future::poll_fn(|context| signals.poll_next(context));
            told.push(within(&handle, 20_000_000, next).await.is_some());
        }
        told
    });
    assert_eq!(told.unwrap(), [true, true, true, false]);
}

#[test]
fn the_kernel_gives_up_a_descriptor_whose_signals_nobody_waits_for() {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let hung_up = reactor.block_on(async move {
        let (end, other_end) = UnixStream::pair().unwrap();
        let signals = handle.signals(end.as_raw_fd());
        let next = std::future::poll_fn(|context| signals.poll_next(context));
        assert!(within(&handle, 1_000_000, next).await.is_none());
        drop((signals, end));
        let ready = handle.ready(other_end.as_raw_fd(), Interest::Read);
        within(&handle, SECOND_NS, ready).await.is_some()
    });
    assert!(hung_up.unwrap(), "it is still open");
}

/// Rounds of a task that is always ready until another one sees what has come for it.
fn rounds_until_seen(does_much: bool) -> u64 {
    let reactor = Reactor::new(1).unwrap();
    let handle = reactor.handle().clone();
    let (rounds, busy) = (Rc::new(Cell::new(0u64)), handle.clone());
    let counted = rounds.clone();
    handle.spawn(async move {
        loop {
            counted.set(counted.get() + 1);
            match does_much {
                true => busy.yield_after_much().await,
                false => busy.yield_now().await,
            }
        }
    });
    let watched = async move {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut most = 0;
        for _ in 0..100 {
            // From any place in the loop's turn.
            handle.yield_now().await;
            let before = rounds.get();
            theirs.write_all(b"x").unwrap();
            handle
                .ready(ours.as_raw_fd(), Interest::Read)
                .await
                .unwrap();
            (&ours).read_exact(&mut [0]).unwrap();
            most = most.max(rounds.get() - before);
        }
        most
    };
    reactor.block_on(watched).unwrap()
}

#[test]
fn after_much_work_what_has_come_meanwhile_is_seen_before_the_next_round() {
    let (many, few) = (rounds_until_seen(false), rounds_until_seen(true));
    assert!(few <= 3 && few < many, "{few} rounds, else {many}");
}
