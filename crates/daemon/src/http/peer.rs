//! Access to the Unix socket: root, the daemon's user, and members of its group.

use std::os::fd::AsRawFd;
use tokio::net::UnixStream;

/// Maximum number of supplementary groups examined.
const GROUPS_MAX: usize = 1024;

/// Credentials of a peer, as reported by the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// User.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

impl Peer {
    /// Credentials of the process that connected.
    pub fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let credentials = stream.peer_cred()?;
        Ok(Self {
            uid: credentials.uid(),
            gid: credentials.gid(),
            groups: groups(stream),
        })
    }

    /// Whether the peer may use the socket of a daemon running as `uid` and `gid`.
    pub fn may_use(&self, uid: u32, gid: u32) -> bool {
        self.uid == 0 || self.uid == uid || self.gid == gid || self.groups.contains(&gid)
    }
}

/// Supplementary groups of the peer; none if the kernel does not report them, so that the peer is
/// refused.
fn groups(stream: &UnixStream) -> Vec<u32> {
    let mut groups = vec![0u32; GROUPS_MAX];
    let mut length = (GROUPS_MAX * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the vector, which is that long, and
    // stores the number written in `length`.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let count = if result == 0 {
        length as usize / size_of::<u32>()
    } else {
        0
    };
    groups.truncate(count);
    groups
}

/// User and group of this process.
pub fn own() -> (u32, u32) {
    // SAFETY: neither call can fail or accesses memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_access_is_limited_to_root_user_and_group() {
        let peer = |uid, gid, groups: &[u32]| Peer {
            uid,
            gid,
            groups: groups.to_vec(),
        };
        for (peer, may) in [
            (peer(0, 7, &[]), true),
            (peer(100, 7, &[]), true),
            (peer(5, 200, &[]), true),
            (peer(5, 7, &[6, 200]), true),
            (peer(5, 7, &[6]), false),
            (peer(200, 100, &[]), false),
        ] {
            assert_eq!(peer.may_use(100, 200), may, "{peer:?}");
        }
    }
}
