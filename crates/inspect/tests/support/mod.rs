//! What the tests share: pools that the engine made, as images in memory that can be damaged.

mod client;
mod image;

pub use client::{Made, Shape, made};
pub use image::{Image, Random};
