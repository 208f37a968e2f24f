//! Common parts of HTML reports.

use std::fmt::Write as _;

/// How they look, in light and in dark.
pub const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em}\
h1{font-size:1.6em}h2{font-size:1.15em;margin-top:2em}h3{font-size:1em}\
svg{width:100%;height:auto}svg text{font:13px system-ui,sans-serif;fill:currentColor}\
.axis{stroke:currentColor;stroke-opacity:.35}\
table{border-collapse:collapse;width:100%;margin:1em 0;font-variant-numeric:tabular-nums}\
th,td{padding:.3em .6em;text-align:right;border-bottom:1px solid #8884}\
th:first-child,td:first-child{text-align:left}\
pre{white-space:pre-wrap}\
.key{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 1em;vertical-align:-.1em}\
small{opacity:.75}";

/// Text that is nothing but text.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A table; nothing without rows.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = "<table><tr>".to_owned();
    for head in head {
        let _ = write!(html, "<th>{}</th>", escape(head));
    }
    html += "</tr>\n";
    for row in rows {
        html += "<tr>";
        for cell in row {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html += "</tr>\n";
    }
    html + "</table>\n"
}
