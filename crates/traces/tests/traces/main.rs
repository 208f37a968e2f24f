//! Every format is read as its origin says, recognised, and refused where it is damaged.

mod chance;
mod compressed;
mod damage;
mod formats;
mod real;
mod recognition;
mod samples;
