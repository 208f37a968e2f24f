//! What policies of quality of service promise beside the storm, each by one command: floors that do not fit, the price of
//! a policy for who is alone, fairness by cost, changes under load, background work, a full fast tier, many volumes.
//!
//! Everything is a ratio of figures of one run. A run prints a table, and says of each bar whether it is met.
//! Leaves out: driving the load (`tenants`), and instructions a request, which are counted elsewhere (`convect-bench`).

mod alone;
mod arguments;
mod background;
mod fairness;
mod filling;
mod infeasible;
mod live;
mod many;
mod run;
mod scene;

pub use arguments::Promises;
pub use run::run;
