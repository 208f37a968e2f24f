//! The pool of the storm, its volumes and their policies.

use super::arguments::Storm;
use super::desktop::{self, Boot, Desktop};
use super::postgres::{self, Postgres};
use crate::chance::Chance;
use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::load::{Arrivals, Blocks, Content, Disk, Pace, Pattern, Rate, fill};
use crate::screen::{self, Progress};
use crate::tenants::{Closed, Drives, Open, Session, Shape, Stage, Tenant};
use std::path::Path;
use std::sync::Arc;
use units::format_bytes;

/// Names of the tenants, as they stand in tables.
pub const DATABASE: &str = "database";
pub const DESKTOPS: &str = "desktops";
pub const MAIL: &str = "mail";
pub const BACKUP: &str = "backup";
/// The policy of level 1 that is created for the run, and that of the desktops.
const FLOOR: &str = "floor";
const DESKTOP: &str = "desktop";
/// Guarantee of each desktop: the load of a working one, within the latency of the built-in policy of level 3.
const DESKTOP_FIGURES: [&str; 4] = ["--min-iops", "15", "--max-latency", "40ms"];
/// Maximum latency of policy 1, in milliseconds.
pub const FLOOR_MS: u64 = 10;
/// Requests of the mail server, and of the backup, that can be outstanding.
const MAIL_DEPTH: u16 = 128;
const BACKUP_DEPTH: u16 = 8;
/// Origin of the clones.
const GOLDEN: &str = "golden";
const SNAPSHOT: &str = "gold";

/// Threads of the clients: the database has its own, so that no others' completions are queued before its own.
const DATABASE_THREAD: usize = 0;
const SERVERS_THREAD: usize = 1;
const DESKTOPS_THREAD: usize = 2;

/// Everything that the phases need.
pub struct Scene {
    /// A real database, where there is one; it ends before the daemon.
    pub postgres: Option<Postgres>,
    /// The pool.
    pub stage: Stage,
    with: Storm,
    boot: Arc<Boot>,
    database: Disk,
    mail: Disk,
    archive: Disk,
    desktops: Vec<Disk>,
    content: Vec<u8>,
}

fn blocks(text: &str) -> Result<Blocks> {
    text.parse().map_err(Failure::new)
}

impl Scene {
    /// Creates the pool and all volumes.
    ///
    /// # Errors
    /// When something is refused.
    pub fn new(convect: &Path, with: &Storm) -> Result<Self> {
        let boot = Arc::new(Boot::new(with.image, with.boot_bytes())?);
        crate::machine::raise_descriptors()?;
        let volumes = with.image + with.database + with.mail + with.archive;
        let own = u64::from(with.desktops) * desktop::OWN_BYTES;
        let drives = Drives {
            fast: with.fast,
            slow: volumes + own,
        };
        let mut stage = Stage::new(convect, "storm", drives, &with.behind)?;
        let made = Volumes::new(&stage, with);
        let Volumes {
            database,
            mail,
            archive,
            desktops,
        } = stage.explain(made)?;
        let postgres = match with.postgres {
            true => Some(Postgres::start(&stage)?),
            false => None,
        };
        Ok(Self {
            postgres,
            stage,
            with: with.clone(),
            boot,
            database,
            mail,
            archive,
            desktops,
            content: Stage::content(256 << 10),
        })
    }

    fn session(
        &self,
        disk: &Disk,
        depth: u16,
        blocks: &Blocks,
        source: Box<dyn crate::tenants::Source>,
    ) -> Result<Session> {
        Session::connect(disk, depth, blocks, &self.content, source)
    }

    /// The database: 8 KiB anywhere, 70 % reads, as many outstanding as it is allowed.
    pub fn database(&self) -> Result<Tenant> {
        let blocks = blocks("8k")?;
        let shape = Shape {
            read_percent: 70,
            aim: Pattern::Random.aim(0..self.with.database, 8192, 1),
            blocks: blocks.clone(),
        };
        let source = Closed {
            shape,
            chance: Chance::new(1),
        };
        Ok(Tenant {
            name: DATABASE.to_owned(),
            thread: DATABASE_THREAD,
            sessions: vec![self.session(
                &self.database,
                self.with.depth,
                &blocks,
                Box::new(source),
            )?],
        })
    }

    /// Everybody else: the mail server (32 KiB, 53 % reads, at a rate), the backup (256 KiB one after the other), and the
    /// desktops.
    pub fn others(&self) -> Result<Vec<Tenant>> {
        Ok(vec![self.mail()?, self.backup()?, self.all_desktops()?])
    }

    fn mail(&self) -> Result<Tenant> {
        let blocks = blocks("32k")?;
        let rate = Rate {
            per_second: f64::from(self.with.mail_rate),
            arrivals: Arrivals::Poisson,
        };
        let source = Open {
            shape: Shape {
                read_percent: 53,
                aim: Pattern::Random.aim(0..self.with.mail, 4096, 1),
                blocks: blocks.clone(),
            },
            chance: Chance::new(2),
            pace: Pace::new(rate, 0, 1),
        };
        Ok(Tenant {
            name: MAIL.to_owned(),
            thread: SERVERS_THREAD,
            sessions: vec![self.session(&self.mail, MAIL_DEPTH, &blocks, Box::new(source))?],
        })
    }

    fn backup(&self) -> Result<Tenant> {
        let blocks = blocks("256k")?;
        let source = Closed {
            shape: Shape {
                read_percent: 100,
                aim: Pattern::Sequential.aim(0..self.with.archive, 256 << 10, 1),
                blocks: blocks.clone(),
            },
            chance: Chance::new(3),
        };
        let session = self.session(&self.archive, BACKUP_DEPTH, &blocks, Box::new(source))?;
        Ok(Tenant {
            name: BACKUP.to_owned(),
            thread: SERVERS_THREAD,
            sessions: vec![session],
        })
    }

    fn all_desktops(&self) -> Result<Tenant> {
        let mut sessions = Vec::new();
        for (number, disk) in (1..).zip(&self.desktops) {
            let source = Desktop::new(&self.boot, number);
            let blocks = self.boot.blocks();
            sessions.push(self.session(disk, desktop::DEPTH, blocks, Box::new(source))?);
        }
        Ok(Tenant {
            name: DESKTOPS.to_owned(),
            thread: DESKTOPS_THREAD,
            sessions,
        })
    }

    /// Gives everybody a policy: the database one of level 1 with this minimum of operations per second.
    ///
    /// # Errors
    /// When one is refused.
    pub fn give_policies(&self, floor_iops: u64) -> Result<()> {
        let (iops, latency) = (floor_iops.to_string(), format!("{FLOOR_MS}ms"));
        let floor = ["--min-iops", &iops, "--max-latency", &latency];
        self.stage.policy(FLOOR, 1, &floor)?;
        self.stage.policy(DESKTOP, 3, &DESKTOP_FIGURES)?;
        for (volume, policy) in [(DATABASE, FLOOR), (MAIL, "2"), (BACKUP, "5")] {
            self.stage.give(volume, policy)?;
        }
        if self.postgres.is_some() {
            self.stage.give(postgres::VOLUME, FLOOR)?;
        }
        for number in 1..=self.with.desktops {
            interrupt::check()?;
            self.stage.give(&desktop_name(number), DESKTOP)?;
        }
        Ok(())
    }
}

fn desktop_name(number: u32) -> String {
    format!("desktop-{number:04}")
}

/// The disks of all tenants.
struct Volumes {
    database: Disk,
    mail: Disk,
    archive: Disk,
    desktops: Vec<Disk>,
}

impl Volumes {
    fn new(stage: &Stage, with: &Storm) -> Result<Self> {
        // What is backed up is on the slow tier, as most of what is old does; the others are in use.
        println!("  volumes: {} to back up", format_bytes(with.archive));
        let archive = stage.filled_guest(BACKUP, with.archive)?;
        stage.cool()?;
        println!(
            "  volumes: a database of {}, mail of {}, a golden image of {}",
            format_bytes(with.database),
            format_bytes(with.mail),
            format_bytes(with.image)
        );
        let database = stage.filled_guest(DATABASE, with.database)?;
        let mail = stage.filled_guest(MAIL, with.mail)?;
        stage.volume(GOLDEN, with.image)?;
        let golden = stage.export_nbd(GOLDEN)?;
        fill(&golden, with.image, Content::Random)?;
        let snapshot = format!("{}/{GOLDEN}@{SNAPSHOT}", crate::tenants::POOL);
        stage.daemon.run(&["snapshot", "create", &snapshot])?;
        Ok(Self {
            database,
            mail,
            archive,
            desktops: clones(stage, with.desktops)?,
        })
    }
}

/// Makes the desktops' volumes and exports them.
fn clones(stage: &Stage, count: u32) -> Result<Vec<Disk>> {
    let mut progress = Progress::new();
    let mut disks = Vec::new();
    for number in 1..=count {
        interrupt::check()?;
        let name = desktop_name(number);
        stage.clone_of(&format!("{GOLDEN}/{SNAPSHOT}"), &name)?;
        disks.push(stage.export_nbd(&name)?);
        if progress.is_due() {
            let bar = screen::bar(f64::from(number) / f64::from(count), 30);
            progress.draw(&format!("  cloning the image {bar} {number}"));
        }
    }
    progress.clear();
    println!("  {count} clones of it, each exported by NBD");
    Ok(disks)
}
