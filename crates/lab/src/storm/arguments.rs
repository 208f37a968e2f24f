//! Arguments of `storm`.

use crate::arguments::{Behind, size};
use clap::Args;
use std::path::PathBuf;

/// Bytes that a desktop reads to boot for each second of a phase, where nothing else is said: 225 MiB in five minutes.
const BOOT_BYTES_PER_S: u64 = 768 << 10;

/// `storm`.
#[derive(Args, Debug, Clone)]
pub struct Storm {
    /// Desktops: clones of one golden image, each with an NBD session
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub desktops: u32,
    /// Seconds of each storm; the database alone is measured for a third of that
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=3600))]
    pub seconds: u64,
    /// How much a desktop reads to boot, instead of 768 KiB for each second of a storm
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub boot: Option<u64>,
    /// Size of the golden image
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub image: u64,
    /// Size of the database's volume
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub database: u64,
    /// Requests that the database has outstanding
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub depth: u16,
    /// Size of the mail server's volume
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    pub mail: u64,
    /// Requests a second of the mail server
    #[arg(long, value_name = "RATE", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub mail_rate: u32,
    /// Size of the volume that the backup reads
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub archive: u64,
    /// Size of the fast drive
    #[arg(long, value_name = "SIZE", default_value = "8G", value_parser = size)]
    pub fast: u64,
    /// Also a real PostgreSQL under pgbench, alone and in each storm in place of the database's load; for root alone
    #[arg(long)]
    pub postgres: bool,
    /// Where the HTML report is written
    #[arg(long, value_name = "FILE", default_value = "convect-storm.html")]
    pub report: PathBuf,
    /// Write everything that was measured to this file, too
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Where modelled disks are.
    #[command(flatten)]
    pub behind: Behind,
}

impl Storm {
    /// Bytes that a desktop reads to boot.
    pub fn boot_bytes(&self) -> u64 {
        self.boot.unwrap_or(BOOT_BYTES_PER_S * self.seconds)
    }
}
