//! What the interface keeps to.

use api::v1::{EventCode, PoolCreate, Problem, ProblemCode, VolumeCreate};
use api::{Method, ROUTES};
use std::collections::BTreeSet;

#[test]
fn the_committed_document_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == api::document_json(),
        "docs/api/openapi.json is not what the code says: \
         run `cargo run -p convect-api --example openapi` and commit it"
    );
}

#[test]
fn every_shape_that_is_named_is_in_the_document() {
    let text = api::document_json();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let known = document["components"]["schemas"].as_object().unwrap();
    let named: BTreeSet<&str> = text
        .split("#/components/schemas/")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    for name in named {
        assert!(known.contains_key(name), "{name} is named and not there");
    }
}

#[test]
fn every_operation_has_its_own_address_and_row() {
    let mut seen = BTreeSet::new();
    for route in ROUTES {
        assert!(
            seen.insert((route.method.as_str(), route.path)),
            "{} twice",
            route.path
        );
        assert_eq!(route.operation.route().path, route.path);
        assert_eq!(route.operation.route().method, route.method);
    }
}

#[test]
fn reading_takes_no_body_and_204_gives_none() {
    for route in ROUTES {
        let bodiless = matches!(route.method, Method::Get | Method::Delete);
        assert!(!(bodiless && route.has_request()), "{}", route.path);
        assert_eq!(route.status == 204, !route.has_answer(), "{}", route.path);
    }
}

#[test]
fn problems_travel_with_the_status_that_fits() {
    for (code, name, status) in [
        (ProblemCode::NotFound, "not_found", 404),
        (ProblemCode::Exists, "exists", 409),
        (ProblemCode::Busy, "busy", 409),
        (ProblemCode::Invalid, "invalid", 422),
        (ProblemCode::NoSpace, "no_space", 409),
        (ProblemCode::Io, "io", 500),
    ] {
        assert_eq!(code.status(), status, "{name}");
        let text = serde_json::to_string(&Problem::new(code, "why")).unwrap();
        assert_eq!(text, format!(r#"{{"code":"{name}","message":"why"}}"#));
    }
    assert!(ProblemCode::ALL.iter().all(|code| code.status() >= 400));
}

#[test]
fn a_request_may_leave_out_what_has_a_default_and_nothing_else() {
    let volume: VolumeCreate =
        serde_json::from_str(r#"{"pool":"p","name":"v","size":1048576}"#).unwrap();
    assert_eq!((volume.lba_size, volume.thick), (512, false));
    assert!(serde_json::from_str::<VolumeCreate>(r#"{"pool":"p","name":"v"}"#).is_err());
    let unknown = r#"{"name":"p","vdrives":[],"polcy":"fast_first"}"#;
    let error = serde_json::from_str::<PoolCreate>(unknown).unwrap_err();
    assert!(error.to_string().contains("polcy"), "{error}");
}

#[test]
fn every_code_of_events_has_its_name_and_its_section() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.md");
    let document = std::fs::read_to_string(path).unwrap();
    let sections: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    let names: Vec<&str> = EventCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(sections, names, "the sections of docs/events.md");
    let interface: serde_json::Value = serde_json::from_str(&api::document_json()).unwrap();
    let told = &interface["components"]["schemas"]["EventCode"]["enum"];
    assert_eq!(*told, serde_json::json!(names));
    for code in EventCode::ALL {
        let text = serde_json::to_string(code).unwrap();
        assert_eq!(text, format!("\"{}\"", code.as_str()));
        assert!(document.contains(&format!(
            "| [`{}`](#{0}) | {}",
            code.as_str(),
            code.severity().as_str()
        )));
    }
}

#[test]
fn a_secret_is_not_shown_and_travels_as_its_text() {
    let secret = api::Secret::new("between us");
    assert_eq!(
        format!("{secret:?} {:#?}", Some(&secret)),
        "*** Some(\n    ***,\n)"
    );
    let text = serde_json::to_string(&secret).unwrap();
    assert_eq!(text, "\"between us\"");
    assert_eq!(serde_json::from_str::<api::Secret>(&text).unwrap(), secret);
}

#[test]
fn debug_shows_neither_a_webhook_url_nor_its_secret_and_json_has_both() {
    let json = r#"{"name":"a","to":{"kind":"webhook","url":"https://a.example/token","secret":"between us"}}"#;
    let create: api::v1::TargetCreate = serde_json::from_str(json).unwrap();
    let shown = format!("{create:?}");
    assert!(
        !shown.contains("token") && !shown.contains("between us"),
        "{shown}"
    );
    let api::v1::TargetTo::Webhook { url, .. } = &create.to else {
        panic!("{shown}");
    };
    assert_eq!(url.expose(), "https://a.example/token");
    let again = serde_json::to_string(&create).unwrap();
    assert!(
        again.contains(r#""url":"https://a.example/token""#),
        "{again}"
    );
}
