//! Rewrites the committed OpenAPI document: `cargo run -p convect-api --example openapi`.

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api/openapi.json");
    std::fs::write(path, api::document_json())
}
