//! Traces: every format is read as its origin says, recognised, and refused where it is damaged; synthetic ones repeat.

mod chance;
mod compressed;
mod damage;
mod formats;
mod real;
mod recognition;
mod samples;
mod synthetic;
