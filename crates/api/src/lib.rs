//! The HTTP interface of the daemon as types, one module a version, and the table of its routes.
//!
//! Responsible for: every name, shape and status that crosses the socket, and the OpenAPI
//! document that is generated from them.
//! Leaves out: serving them (`daemon`) and asking for them (`cli`).

mod conditions;
mod openapi;
mod routes;
mod secret;
pub mod v1;

pub use conditions::Tagged;
pub use openapi::{document, document_json};
pub use routes::{Least, Method, Operation, Query, ROUTES, Route, Shape};
pub use secret::Secret;
