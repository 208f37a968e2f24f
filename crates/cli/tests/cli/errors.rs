//! Exit codes, and errors as JSON.

use crate::scripted::{Ended, Scripted, convect};
use api::v1::{Problem, ProblemCode};
use cli::{Failure, exit_codes};
use serde_json::{Value, json};
use std::path::Path;

const VOLUMES: &str = "GET /v1/volumes/tank/v";

/// The error on the standard error output, which is one line.
fn error(said: &Ended) -> Value {
    assert_eq!(said.error.lines().count(), 1, "{said:?}");
    assert_eq!(said.out, "", "{said:?}");
    serde_json::from_str(&said.error).unwrap()
}

/// One failure of each kind that has a message.
fn failures() -> Vec<Failure> {
    let refusals = ProblemCode::ALL.map(|code| Failure::Refused(Problem::new(code, "why")));
    let others = [
        Failure::Usage("why".to_owned()),
        Failure::Unreachable("why".to_owned()),
        Failure::Failed("why".to_owned()),
        Failure::NotLooked("why".to_owned()),
        Failure::Left("why".to_owned()),
    ];
    refusals.into_iter().chain(others).collect()
}

#[test]
fn refusals_have_exit_codes_by_kind() {
    for (code, status, exit) in [
        ("not_found", 404, 3),
        ("exists", 409, 4),
        ("busy", 409, 5),
        ("too_many", 429, 5),
        ("refused", 409, 6),
        ("forbidden", 403, 6),
        ("unauthenticated", 401, 6),
        ("no_space", 409, 1),
        ("invalid", 422, 1),
        ("internal", 500, 1),
    ] {
        let problem = json!({ "code": code, "message": "this is why" });
        let daemon = Scripted::new().on(VOLUMES, status, &problem.to_string());
        let said = daemon.convect("volume show tank/v");
        assert_eq!(
            (said.code, said.error.as_str()),
            (exit, "error: this is why\n")
        );
        let said = daemon.convect("volume show tank/v --json");
        assert_eq!((said.code, error(&said)), (exit, problem));
    }
}

#[test]
fn every_failure_with_json_is_an_object_with_code_and_message() {
    let said = convect("--json --socket /nonexistent/s pool list");
    let told = error(&said);
    assert_eq!((said.code, &told["code"]), (7, &json!("unreachable")));
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with("no daemon responds"), "{message}");

    let said = convect("volume create tank/v --json");
    let message = "the following required arguments were not provided: --size <SIZE>";
    let expected = json!({ "code": "usage", "message": message });
    assert_eq!((said.code, error(&said)), (2, expected));
    let said = convect("volume create v --size 1G --json");
    assert_eq!((said.code, &error(&said)["code"]), (2, &json!("usage")));
    let said = convect("pool --json");
    assert_eq!((said.code, &error(&said)["code"]), (2, &json!("usage")));

    let daemon = Scripted::new();
    let said = daemon.convect("--json pool destroy tank");
    assert_eq!((said.code, &error(&said)["code"]), (6, &json!("refused")));
    assert_eq!(daemon.asked(), []);

    let said = convect("--json --help");
    assert_eq!(said.code, 0);
    assert!(said.out.contains("Usage: convect"), "{said:?}");
}

#[test]
fn every_exit_code_and_every_error_code_is_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/access.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("## Exit codes and errors\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let row = |code: u8| {
        let begin = format!("| {code} |");
        let row = section.lines().find(|line| line.starts_with(&begin));
        row.unwrap_or_else(|| panic!("exit code {code} is not documented"))
    };
    for (code, _) in exit_codes("").iter().chain(exit_codes("dump")) {
        row(*code);
    }
    for failure in failures() {
        let told = failure.to_json().unwrap();
        let name = format!("`{}`", told["code"].as_str().unwrap());
        assert!(row(failure.code()).contains(&name), "{name}");
        assert_eq!(told["message"], "why");
        let listed = ["", "dump"].map(|path| {
            exit_codes(path)
                .iter()
                .any(|(code, _)| *code == failure.code())
        });
        assert!(listed.contains(&true), "{name}");
    }
}
