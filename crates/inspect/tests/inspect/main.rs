//! Pools that the engine made, examined and repaired from their drives alone.

mod check;
mod damage;
mod evidence;
mod identity;
mod rescue;
mod support;
