//! Content negotiation of the metrics format.

use super::Format;

/// Quality of a format in one element of an `Accept` header, in thousandths.
fn wanted(part: &str, kind: &str, versions: &[&str]) -> Option<u16> {
    let mut words = part.split(';').map(str::trim);
    if !words.next()?.eq_ignore_ascii_case(kind) {
        return None;
    }
    let mut wanted = 1000;
    for word in words {
        match word.split_once('=') {
            Some(("q", share)) => wanted = (share.parse::<f32>().ok()? * 1000.0) as u16,
            Some(("version", version)) if !versions.contains(&version) => return None,
            _ => {}
        }
    }
    Some(wanted)
}

impl Format {
    /// The negotiated format. OpenMetrics must be named explicitly: clients that accept anything
    /// are people, or programs that prefer the older format.
    pub fn accepted(header: &str) -> Self {
        let most = |kind, versions: &[&str]| {
            let parts = header.split(',');
            parts.filter_map(|part| wanted(part, kind, versions)).max()
        };
        let newer = most("application/openmetrics-text", &["1.0.0"]).unwrap_or(0);
        let older = most("text/plain", &["0.0.4"]).unwrap_or(0);
        if newer > 0 && newer >= older {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_requires_an_explicit_preference() {
        use Format::{OpenMetrics, Prometheus};
        for (header, format) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/plain", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            (
                "Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
                OpenMetrics,
            ),
            ("application/openmetrics-text;version=0.0.1", Prometheus),
            ("application/openmetrics-text;version=2.0.0,*/*", Prometheus),
            ("application/openmetrics-text;q=0", Prometheus),
            ("application/openmetrics-text;q=none", Prometheus),
            (
                "text/plain;version=0.0.4,application/openmetrics-text;q=0.5",
                Prometheus,
            ),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                 version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
        ] {
            assert_eq!(Format::accepted(header), format, "{header}");
        }
    }
}
