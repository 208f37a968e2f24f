//! Who may use the socket: root, the daemon's own user, and members of its group.

use std::os::fd::AsRawFd;
use tokio::net::UnixStream;

/// More supplementary groups than this are not looked at.
const GROUPS_MAX: usize = 1024;

/// Who connected, as the kernel says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// User.
    pub uid: u32,
    /// Main group.
    pub gid: u32,
    /// Other groups.
    pub groups: Vec<u32>,
}

impl Peer {
    /// The process at the other end when it connected.
    pub fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let credentials = stream.peer_cred()?;
        Ok(Self {
            uid: credentials.uid(),
            gid: credentials.gid(),
            groups: groups(stream),
        })
    }

    /// Whether it may use the socket of a daemon that runs as `uid` and `gid`.
    pub fn may_use(&self, uid: u32, gid: u32) -> bool {
        self.uid == 0 || self.uid == uid || self.gid == gid || self.groups.contains(&gid)
    }
}

/// The other groups of the peer; none when the kernel does not say, so that it is refused.
fn groups(stream: &UnixStream) -> Vec<u32> {
    let mut groups = vec![0u32; GROUPS_MAX];
    let mut length = (GROUPS_MAX * size_of::<u32>()) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the vector, which has that many, and
    // tells in `length` how many it wrote.
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

/// The user and group that this process runs as.
pub fn own() -> (u32, u32) {
    // SAFETY: neither call can fail or touches memory.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_the_own_user_and_the_own_group_may_use_the_socket() {
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
