//! The web page: its embedded files and their HTTP headers.

use crate::access::sha256_hex;
use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! built {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../web/dist/",
            $name
        ))
    };
}

/// The files, as built by `npm run build` in `web`.
const FILES: &[File] = &[
    File {
        path: "/",
        kind: "text/html; charset=utf-8",
        bytes: built!("index.html"),
    },
    File {
        path: "/assets/page.js",
        kind: "text/javascript; charset=utf-8",
        bytes: built!("assets/page.js"),
    },
    File {
        path: "/assets/page.css",
        kind: "text/css; charset=utf-8",
        bytes: built!("assets/page.css"),
    },
    File {
        path: "/icon.svg",
        kind: "image/svg+xml",
        bytes: built!("icon.svg"),
    },
];

/// Headers of every response over TLS: no third-party content, no framing by other sites.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
];

fn answer(file: &File, tag: &str, asked: &HeaderMap) -> Response {
    let head = [
        (header::CONTENT_TYPE, file.kind),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, tag),
    ];
    match asked.get(header::IF_NONE_MATCH) {
        Some(known) if known.as_bytes() == tag.as_bytes() => {
            (StatusCode::NOT_MODIFIED, head).into_response()
        }
        _ => (head, file.bytes).into_response(),
    }
}

/// Adds the page to a router.
pub fn with_page(router: Router) -> Router {
    FILES.iter().fold(router, |router, file| {
        let tag = format!("\"{}\"", &sha256_hex(&[file.bytes])[..32]);
        let handler = move |asked: HeaderMap| async move { answer(file, &tag, &asked) };
        router.route(file.path, get(handler))
    })
}

/// Adds the security headers of TLS responses. API responses are not cacheable.
pub async fn harden(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}
