//! What can be changed of a pool on the command line.

use clap::Args;

/// `pool set`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct PoolSet {
    /// The pool
    pub name: String,
    /// Promotion budget: most bytes a day that promotion may write to the fast tier, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub promotion_budget: Option<String>,
}
