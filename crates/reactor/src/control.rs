//! How a thread that is no loop waits for loops and starts long work.
//!
//! In a simulation there is one thread: a wait on it runs the loops meanwhile, and long work
//! is kept until the simulation runs it. [`simulate`] installs that for the calling thread.

use crate::may_wait;
use futures_channel::oneshot::{Canceled, Receiver};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Work that may take long.
pub type Work = Box<dyn FnOnce() + Send>;

#[derive(Clone)]
struct Simulated {
    step: Rc<dyn Fn() -> bool>,
    work: Rc<RefCell<VecDeque<Work>>>,
    random: Rc<Cell<u64>>,
}

thread_local! {
    static SIMULATED: RefCell<Option<Simulated>> = const { RefCell::new(None) };
}

fn simulated() -> Option<Simulated> {
    SIMULATED.with_borrow(Option::clone)
}

/// The calling thread is a simulation's until this is dropped.
#[must_use]
pub struct Simulation(());

impl Drop for Simulation {
    fn drop(&mut self) {
        SIMULATED.with_borrow_mut(|known| *known = None);
    }
}

impl Simulation {
    /// The next piece of long work that was started, if any.
    pub fn take_work(&self) -> Option<Work> {
        take_work()
    }
}

/// The next piece of long work that was started in the calling thread's simulation, if any: for who runs it while
/// another one waits.
pub fn take_work() -> Option<Work> {
    simulated()?.work.borrow_mut().pop_front()
}

/// Makes the calling thread a simulation's. `step` lets its loops go on a little; it returns false
/// when nothing can ever happen any longer. `seed` begins the sequence of [`entropy`].
pub fn simulate(seed: u64, step: impl Fn() -> bool + 'static) -> Simulation {
    let simulated = Simulated {
        step: Rc::new(step),
        work: Rc::default(),
        random: Rc::new(Cell::new(seed)),
    };
    SIMULATED.with_borrow_mut(|known| *known = Some(simulated));
    Simulation(())
}

/// Whether the calling thread is a simulation's.
pub fn is_simulated() -> bool {
    SIMULATED.with_borrow(Option::is_some)
}

/// Waits for what a loop sends.
///
/// # Errors
/// When it never will: the sender is gone, or a simulation has come to rest.
pub fn receive<T>(take: Receiver<T>) -> Result<T, Canceled> {
    wait(take).unwrap_or(Err(Canceled))
}

/// Waits for a future that others make ready; nothing when a simulation has come to rest before.
pub fn wait<T>(future: impl Future<Output = T>) -> Option<T> {
    may_wait();
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Waiting(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return Some(answer),
            Poll::Pending if pause() => {}
            Poll::Pending => return None,
        }
    }
}

/// A thread that waits in [`wait`].
struct Waiting(Thread);

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Until the calling thread is woken, perhaps without reason, or the simulation has made a step; false when it has
/// come to rest.
fn pause() -> bool {
    match simulated() {
        Some(simulated) => (simulated.step)(),
        None => {
            std::thread::park();
            true
        }
    }
}

/// Lets a simulation's loops go on a little; false when they are at rest, or when the calling
/// thread is no simulation's.
pub fn step() -> bool {
    simulated().is_some_and(|simulated| (simulated.step)())
}

/// Starts long work: on a thread called `name`, or when the simulation comes to it.
///
/// # Errors
/// When the system has no thread left.
pub fn start(name: String, work: Work) -> io::Result<()> {
    match simulated() {
        Some(simulated) => simulated.work.borrow_mut().push_back(work),
        None => drop(std::thread::Builder::new().name(name).spawn(work)?),
    }
    Ok(())
}

/// 128 unpredictable bits, for unique names; in a simulation they follow from
/// its seed.
///
/// # Errors
/// When the system gives none.
pub fn entropy() -> io::Result<u128> {
    let mut bytes = [0; 16];
    match simulated() {
        Some(simulated) => {
            let next = simulated.random.get().wrapping_add(1);
            simulated.random.set(next);
            let half = |salt| u128::from(crate::executor::mix(next ^ salt));
            bytes = (half(0) << 64 | half(u64::MAX)).to_le_bytes();
        }
        None => random(&mut bytes)?,
    }
    Ok(u128::from_le_bytes(bytes))
}

/// Fills `bytes` from the kernel's random number generator (getrandom(2)). It opens no file and never waits, so that it
/// may be called on a loop and with all descriptors in use.
fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the kernel writes at most as many bytes as the slice has.
        let got =
            unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), libc::GRND_NONBLOCK) };
        match usize::try_from(got) {
            Ok(got) => filled += got,
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::WouldBlock,
                        "the system has no random numbers yet, since it has just started: try again in a minute",
                    ));
                }
                error => return Err(error),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_channel::oneshot::channel;
    use std::cell::Cell;
    use std::fs::File;

    #[test]
    fn random_bytes_fill_slices_of_any_length_and_need_no_descriptor() {
        let mut bytes = [0; 1000];
        random(&mut bytes).unwrap();
        assert!(
            bytes
                .chunks(100)
                .all(|part| part.iter().any(|byte| *byte != 0))
        );
        random(&mut []).unwrap();
        // Only one thread of a process of its own could be without descriptors: the limit is that of the process.
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the struct lives through the calls. A child of `fork` calls what is safe after it alone, and ends.
        let child = unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
            limit.rlim_cur = 0;
            libc::fork()
        };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
                let good = entropy().is_ok() && File::open("/dev/null").is_err();
                libc::_exit(i32::from(!good));
            }
        }
        let mut status = 0;
        // SAFETY: the number lives through the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "it needed a descriptor");
    }

    #[test]
    fn a_simulation_goes_on_while_something_is_waited_for() {
        let (give, take) = channel();
        let steps = Rc::new(Cell::new(0));
        let (counted, give) = (steps.clone(), RefCell::new(Some(give)));
        let simulation = simulate(1, move || {
            counted.set(counted.get() + 1);
            if counted.get() == 3 {
                let _ = give.take().map(|give| give.send(7));
            }
            counted.get() < 10
        });
        assert_eq!((receive(take), steps.get()), (Ok(7), 3));
        let (_kept, never) = channel::<()>();
        assert_eq!(receive(never), Err(Canceled), "it comes to rest");
        start("work".into(), Box::new(|| ())).unwrap();
        assert!(simulation.take_work().is_some() && simulation.take_work().is_none());
        assert_ne!(entropy().unwrap(), entropy().unwrap());
        drop(simulation);
        assert!(!is_simulated() && !step());
    }
}
