//! HTTP API of the daemon: its types, one module per version, and the table of its routes.
//!
//! Responsible for: every name, type and status code of the API, and the OpenAPI document that is
//! generated from them. Leaves out: the server (`daemon`) and the client (`cli`).

mod conditions;
mod openapi;
mod routes;
mod secret;
pub mod v1;

pub use conditions::Tagged;
pub use openapi::{document, document_json};
pub use routes::{Least, Method, Operation, Query, ROUTES, Route, Shape};
pub use secret::Secret;
