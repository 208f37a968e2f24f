//! Arguments of `convect pool set`.

use clap::Args;

/// Arguments of `convect pool set`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
pub struct PoolSet {
    /// The pool
    pub name: String,
    /// Promotion budget: maximum bytes per day that promotion may write to the fast tier, or none
    #[arg(long, value_name = "SIZE|none", group = "what")]
    pub promotion_budget: Option<String>,
}
