//! The daemon, its pool, the victims' volumes and the attackers'.

use super::doors::Doors;
use super::stage::Places;
use super::victims::Victim;
use crate::daemon::Daemon;
use crate::failure::{Failure, Result, While};
use crate::iscsi::Lun;
use crate::load::Disk;
use crate::nbd::Place;
use crate::scratch::Scratch;
use api::v1::TokenMade;
use remote::{Address, Server, Trust};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

const POOL: &str = "hostile";
const MIB: u64 = 1 << 20;
/// Sizes of the drives, in bytes. They are files, in memory where there is some, so that what is stored does not count
/// as the daemon's memory.
const FAST: u64 = 1 << 30;
const SLOW: u64 = 2 << 30;
/// Free space that a scene needs: its files have holes.
const SPACE: u64 = 2 << 30;
/// Size of a victim's volume, all of which is its own.
pub const VICTIM: u64 = 16 * MIB;
/// How much an attacker may store.
const QUOTA: u64 = 128 * MIB;
/// The smallest caches possible: they fill by any use, which is not due to an attacker.
const CACHES: &str = "ram_tier = \"16M\"\nmap_cache = \"16M\"\n";
/// Connections that the attackers' NBD export takes.
const NBD_CONNECTIONS: &str = "256";

/// A daemon with victims and what attackers may do their worst to.
pub struct Scene {
    /// The daemon.
    pub daemon: Daemon,
    /// Whose loads run all the time.
    pub victims: Vec<Victim>,
    /// For attackers.
    pub places: Places,
    /// For those who come meanwhile.
    pub doors: Doors,
    /// The daemon ends before the folder goes.
    _scratch: Scratch,
}

/// An address of the loopback that is free now.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn token(daemon: &Daemon, name: &str, role: &str) -> Result<String> {
    let made = daemon.run(&["token", "create", name, "--role", role])?;
    let made: TokenMade = serde_json::from_slice(&made).during(|| "the token".to_owned())?;
    Ok(made.secret.expose().to_owned())
}

/// Makes volumes and exports of them, each under the volume's name.
struct Maker<'a> {
    daemon: &'a Daemon,
    scratch: &'a Scratch,
    /// Of all iSCSI exports.
    portal: SocketAddr,
}

impl Maker<'_> {
    fn export(&self, name: &str, bytes: u64, limit: [&str; 2], kind: &[&str]) -> Result<()> {
        let (volume, size) = (format!("{POOL}/{name}"), bytes.to_string());
        let create = ["volume", "create", &volume, "--size", &size];
        self.daemon.run(&[&create[..], &limit].concat())?;
        let create = ["export", "create", name, &volume];
        self.daemon.run(&[&create[..], kind].concat()).map(|_| ())
    }

    fn socket(&self, name: &str) -> String {
        self.scratch
            .join(&format!("{name}.sock"))
            .display()
            .to_string()
    }

    fn lun(&self, name: &str) -> Lun {
        Lun {
            portal: self.portal,
            target: format!("iqn.2026-11.io.convect:{name}"),
            number: 0,
        }
    }

    fn iscsi(&self, name: &str, bytes: u64, limit: [&str; 2]) -> Result<Lun> {
        let portal = self.portal.to_string();
        self.export(name, bytes, limit, &["iscsi", "--portal", &portal])?;
        Ok(self.lun(name))
    }

    fn vhost(&self, name: &str, bytes: u64, limit: [&str; 2]) -> Result<String> {
        let path = self.socket(name);
        self.export(name, bytes, limit, &["vhost-user-blk", "--path", &path])?;
        Ok(path)
    }

    fn victims(&self) -> Result<Vec<Victim>> {
        let size = VICTIM.to_string();
        let own = ["--reservation", size.as_str()];
        let vhost = self.vhost("vhost", VICTIM, own)?;
        let socket = self.socket("nbd");
        let listen = format!("unix:{socket}");
        self.export("nbd", VICTIM, own, &["nbd", "--listen", &listen])?;
        let place = Place {
            export: "nbd".to_owned(),
            socket: socket.into(),
        };
        let lun = self.iscsi("iscsi", VICTIM, own)?;
        let disks = [
            ("vhost-user-blk", Disk::VhostUserBlk(vhost.into())),
            ("nbd", Disk::Nbd(place)),
            ("iscsi", Disk::Iscsi(lun)),
        ];
        disks
            .into_iter()
            .map(|(name, disk)| Victim::new(name, disk, VICTIM))
            .collect()
    }
}

impl Scene {
    /// Starts all of it, and fills the victims' volumes.
    ///
    /// # Errors
    /// When something of it is refused.
    pub fn new(convect: &Path) -> Result<Self> {
        let scratch = Scratch::below(Path::new("/dev/shm"), "hostile", SPACE);
        let scratch = scratch.or_else(|_| Scratch::new("hostile", SPACE))?;
        let (tls, metrics) = (free_address()?, free_address()?);
        let config = format!("listen = \"{tls}\"\nmetrics = \"{metrics}\"\n{CACHES}");
        let daemon = Daemon::start(convect, scratch.path(), &config)?;
        let drive =
            |name: &str, size: u64| format!("file:{}?size={size}", scratch.join(name).display());
        let (fast, slow) = (drive("fast.img", FAST), drive("slow.img", SLOW));
        let create = ["pool", "create", POOL, "fast", &fast, "slow", &slow];
        let policy = ["--policy", "fast-first", "--accept-unmirrored"];
        daemon.run(&[&create[..], &policy].concat())?;
        let maker = Maker {
            daemon: &daemon,
            scratch: &scratch,
            portal: free_address()?,
        };
        let victims = maker.victims()?;
        let quota = QUOTA.to_string();
        let limit = ["--quota", quota.as_str()];
        let (nbd, nbd_export, nbd_bytes) = (free_address()?, "nbd-attacked", 4096 * MIB);
        let listen = format!("tcp:{nbd}");
        let kind = [
            "nbd",
            "--listen",
            &listen,
            "--max-connections",
            NBD_CONNECTIONS,
        ];
        maker.export(nbd_export, nbd_bytes, limit, &kind)?;
        let address = Address::parse(&format!("https://{tls}"));
        let address = address.during(|| "the daemon's address".to_owned())?;
        let pin = remote::fingerprint(&address).during(|| "the certificate".to_owned())?;
        let places = Places {
            control: daemon.socket(),
            tls,
            pin: pin.clone(),
            token: token(&daemon, "attacker", "viewer")?,
            metrics,
            nbd,
            nbd_export: nbd_export.to_owned(),
            nbd_bytes,
            lun: maker.iscsi("iscsi-attacked", 5 << 40, limit)?,
            vhost: maker.vhost("vhost-attacked", 1024 * MIB, limit)?.into(),
        };
        let known = token(&daemon, "newcomer", "viewer")?;
        let server = Server::new(address, &Trust::Pin(pin), known)
            .map_err(|error| Failure::new(format!("the daemon cannot be asked by TLS: {error}")))?;
        let doors = Doors {
            nbd: Place {
                export: "nbd".to_owned(),
                socket: scratch.join("nbd.sock"),
            },
            lun: maker.lun("iscsi"),
            control: daemon.socket(),
            metrics,
            server,
        };
        Ok(Self {
            daemon,
            victims,
            places,
            doors,
            _scratch: scratch,
        })
    }
}
