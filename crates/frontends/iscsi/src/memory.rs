//! Memory of a session's commands and responses, charged to budgets of its volume, the host's
//! address and the daemon.
//!
//! Commands wait in their session for memory of their read data and solicited data, while other
//! requests proceed; unsolicited data waits in the socket. Peers that make no progress while others
//! wait for memory are disconnected ([`reactor::Account::patiently`]).

use reactor::{Account, Budget, Handle, PeerAddress, SECOND_NS, within};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Result};
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// Time limit of a connection waiting for memory.
const WAIT_NS: u64 = 20 * SECOND_NS;
/// Budget of an address with discovery sessions only, in bytes.
const DISCOVERY: usize = 16 << 20;

/// Budget of an address, shared by all of its sessions while there are any. The first session
/// determines its size.
fn of_address(address: IpAddr, most: usize) -> Budget {
    static BUDGETS: Mutex<BTreeMap<PeerAddress, Budget>> = Mutex::new(BTreeMap::new());
    let mut budgets = BUDGETS.lock().unwrap_or_else(PoisonError::into_inner);
    budgets.retain(|_, budget| budget.is_shared());
    let known = budgets.entry(PeerAddress::of(address));
    known.or_insert_with(|| Budget::new(most)).clone()
}

/// The account of a session to a volume with this budget, or of a discovery session. An address has
/// the same limit as a volume.
pub(crate) fn account(address: IpAddr, volume: Option<&Budget>) -> Rc<Account> {
    let most = volume.map_or(DISCOVERY, Budget::most);
    let own = of_address(address, most);
    Rc::new(Account::new(volume.cloned().into_iter().chain([own])))
}

/// Charged memory, released when dropped.
pub(crate) struct Taken {
    account: Rc<Account>,
    bytes: usize,
}

impl Taken {
    /// Charges memory, waiting while the budgets are exhausted.
    ///
    /// # Errors
    /// `TimedOut` when the time limit is exceeded.
    pub(crate) async fn take(
        handle: &Handle,
        account: &Rc<Account>,
        bytes: usize,
    ) -> Result<Option<Self>> {
        if bytes == 0 {
            return Ok(None);
        }
        if !account.try_take(bytes) {
            // Without pressing the peer: others hold the memory.
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

/// Data of a request with its charged memory.
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
