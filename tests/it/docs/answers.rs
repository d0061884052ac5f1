//! Every question in docs/answers.md is asked, and every command there and in docs/runs.md is one.

use hindsight_proto::v1::AggregateRequest;
use serde_json::Value;

use super::data_set::given;
use crate::{
    answers::{aggregate, told},
    support::server::on_each,
};

const ANSWERS: &str = include_str!("../../../docs/answers.md");
const RUNS: &str = include_str!("../../../docs/runs.md");
const CLI: &str = include_str!("../../../docs/cli.md");

/// The text of the blocks that begin so, with their lines.
fn blocks<'t>(text: &'t str, kind: &str) -> Vec<(usize, &'t str)> {
    let fence = format!("```{kind}\n");
    let begin = text.match_indices(&fence);
    begin
        .map(|(at, _)| {
            let rest = &text[at + fence.len()..];
            let end = rest.find("\n```").expect("the block ends");
            (text[..at].lines().count() + 1, &rest[..end])
        })
        .collect()
}

fn request(json: &str) -> AggregateRequest {
    let json: Value = serde_json::from_str(json).unwrap();
    let mut request = AggregateRequest {
        parent: "-/results/-".to_owned(),
        ..AggregateRequest::default()
    };
    for (name, value) in json.as_object().unwrap() {
        let text = || value.as_str().unwrap().to_owned();
        let list = || {
            let list = value.as_array().unwrap().iter();
            list.map(|one| one.as_str().unwrap().to_owned()).collect()
        };
        match name.as_str() {
            "filter" => request.filter = text(),
            "group_by" => request.group_by = list(),
            "measures" => request.measures = list(),
            "time_zone" => request.time_zone = text(),
            "having" => request.having = text(),
            "order_by" => request.order_by = text(),
            "limit" => request.limit = i32::try_from(value.as_i64().unwrap()).unwrap(),
            other => panic!("`{other}` is no field"),
        }
    }
    request
}

/// The same with every number as messages hold it.
fn decimal(json: Value) -> Value {
    match json {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(list) => list.into_iter().map(decimal).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, decimal(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

#[tokio::test]
async fn every_question_in_the_document_has_the_answer_it_says() {
    on_each(|server| async move {
        given(&server).await;
        let asks = blocks(ANSWERS, "json ask");
        let answers = blocks(ANSWERS, "json answer");
        assert_eq!(asks.len(), answers.len());
        assert!(asks.len() >= 5);
        let mut wrong = Vec::new();
        for ((line, ask), (_, answer)) in asks.into_iter().zip(answers) {
            let reply = aggregate(&server, request(ask)).await.unwrap();
            let wanted = decimal(serde_json::from_str(answer).unwrap());
            let got = told(&reply);
            if got != wanted {
                wrong.push(format!("line {line}: {got}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    })
    .await;
}

/// The words of a command, as a shell takes them apart.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        let last = words.last_mut().unwrap();
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => last.push(c),
        }
    }
    words
}

#[test]
fn every_command_in_the_documents_is_one() {
    for document in [ANSWERS, RUNS, CLI] {
        let commands = blocks(document, "sh");
        let commands: Vec<_> = commands.iter().flat_map(|block| block.1.lines()).collect();
        assert!(commands.len() >= 3);
        for command in commands {
            let parsed = hindsight::cli::command().try_get_matches_from(words(command));
            assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn every_example_of_commands_about_runs_is_a_command() {
    let root = hindsight::cli::command();
    for name in ["describe", "diff", "why"] {
        let help = root.find_subcommand(name).unwrap().get_after_long_help();
        let help = help.unwrap().to_string();
        let examples = help
            .lines()
            .filter_map(|line| line.strip_prefix("  hindsight "));
        let examples: Vec<_> = examples.collect();
        assert_eq!(examples.len(), 3, "{name}");
        for example in examples {
            let command = words(&format!("hindsight {example}"));
            let parsed = root.clone().try_get_matches_from(command);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }
}
