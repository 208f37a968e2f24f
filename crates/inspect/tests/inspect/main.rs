//! Pools that the engine made, looked at and mended from their drives alone.

mod check;
mod damage;
mod evidence;
mod identity;
mod rescue;
mod support;
