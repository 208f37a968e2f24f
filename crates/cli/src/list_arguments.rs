//! Arguments that all commands share that print a list.

use clap::Args;

/// Options of every list: columns, header, numbers, order.
#[derive(Args, Clone, Debug, Default)]
pub struct ListOptions {
    /// Columns, in this order, or all; an unknown one prints the known ones
    #[arg(
        short = 'o',
        long,
        value_name = "COLUMN,...",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    pub columns: Vec<String>,
    /// Omit header and notes and separate columns by tabs, for scripts
    #[arg(short = 'H', long, help_heading = "Output")]
    pub no_header: bool,
    /// Print exact numbers: bytes, seconds since 1970, nothing rounded
    #[arg(short = 'p', long, help_heading = "Output")]
    pub exact: bool,
    /// Sort by a column; descending with a minus before it
    #[arg(
        long,
        value_name = "[-]COLUMN",
        allow_hyphen_values = true,
        help_heading = "Output"
    )]
    pub sort: Option<String>,
}

impl ListOptions {
    /// Whether any option is given.
    pub fn is_any(&self) -> bool {
        !self.columns.is_empty() || self.no_header || self.exact || self.sort.is_some()
    }
}

/// Arguments of a list that can be limited to some names.
#[derive(Args, Clone, Debug, Default)]
pub struct NamedList {
    /// Names or patterns like 'vm*'; a name of a pool or volume includes what is in it [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// How to print it.
    #[command(flatten)]
    pub options: ListOptions,
}
