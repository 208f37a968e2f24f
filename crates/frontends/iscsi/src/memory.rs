//! Memory that a session's commands and answers take: accounted for by its volume, its host's address and the daemon.
//!
//! What a command reads, and what it may send when it is asked to, waits in its session until there is memory, while
//! everything else goes on; what comes unasked waits in the socket. Who does not take or send what others wait for is
//! disconnected ([`reactor::Account::patiently`]).

use reactor::{Account, Budget, Handle, PeerAddress, SECOND_NS, within};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// A connection waits so long for memory before it is given up.
const WAIT_NS: u64 = 20 * SECOND_NS;
/// What the hosts of one address may take that have discovery sessions alone, in bytes.
const DISCOVERY: usize = 16 << 20;

/// The budget of an address, which all of its sessions share for as long as there are some. The first of them says how
/// much it is.
fn of_address(address: IpAddr, most: usize) -> Budget {
    static BUDGETS: Mutex<BTreeMap<PeerAddress, Budget>> = Mutex::new(BTreeMap::new());
    let mut budgets = BUDGETS.lock().unwrap_or_else(PoisonError::into_inner);
    budgets.retain(|_, budget| budget.is_shared());
    let known = budgets.entry(PeerAddress::of(address));
    known.or_insert_with(|| Budget::new(most)).clone()
}

/// The account of a session of a host to a volume with this budget; to none for discovery. An address may take as much
/// as a volume.
pub(crate) fn account(address: IpAddr, volume: Option<&Budget>) -> Rc<Account> {
    let most = volume.map_or(DISCOVERY, Budget::most);
    let own = of_address(address, most);
    Rc::new(Account::new(volume.cloned().into_iter().chain([own])))
}

/// Memory that was taken; given back when dropped.
pub(crate) struct Taken {
    account: Rc<Account>,
    bytes: usize,
}

impl Taken {
    /// Takes memory, and waits for it while the budgets are used up.
    ///
    /// # Errors
    /// `TimedOut` when it has not come in time.
    pub(crate) async fn take(
        handle: &Handle,
        account: &Rc<Account>,
        bytes: usize,
    ) -> Result<Option<Self>> {
        if bytes == 0 {
            return Ok(None);
        }
        if !account.try_take(bytes) {
            // It is others who are waited for, not the peer.
            let taken = within(handle, WAIT_NS, account.take(bytes)).await;
            taken.ok_or(ErrorKind::TimedOut)?;
        }
        let account = account.clone();
        Ok(Some(Self { account, bytes }))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}

/// What a request has brought, with its memory.
#[derive(Default)]
pub(crate) struct Brought {
    pub bytes: Vec<u8>,
    _taken: Option<Taken>,
}

impl Brought {
    pub(crate) fn new(bytes: Vec<u8>, taken: Option<Taken>) -> Self {
        Self {
            bytes,
            _taken: taken,
        }
    }
}

impl Deref for Brought {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
