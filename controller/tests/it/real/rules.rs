//! What the API server refuses to create: by the definition of the kind on a real one, by the words of the
//! webhook on a simulated one.

use serde_json::{Value, json};

use super::{
    changes,
    stage::{Stage, step},
};

/// A spec that is refused: what the definition says about it, and what the webhook.
pub(super) struct Refused {
    spec: Value,
    pub(super) definition: &'static str,
    webhook: &'static str,
}

fn refused(steps: Value, definition: &'static str, webhook: &'static str) -> Refused {
    Refused {
        spec: json!({"steps": steps}),
        definition,
        webhook,
    }
}

/// A step with another Job.
fn with(field: &str, value: Value) -> Value {
    let mut step = step(&[]);
    step["jobTemplate"]["spec"][field] = value;
    step
}

fn external(reference: Value) -> Value {
    json!({"a": {"externalRef": reference}})
}

const ONE_OF_TWO: &str = "want exactly one of jobTemplate and externalRef";
const NAMES: &str = "names of steps are at most 63 of a-z, 0-9 and -";
const KINDS: &str = "want a Workflow of hindsight.dev/v1alpha1 or a Job of batch/v1";

pub(super) fn specs() -> Vec<Refused> {
    let mut both = step(&[]);
    both["externalRef"] = json!({"kind": "Workflow", "name": "other"});
    let many: serde_json::Map<_, _> = (0..501).map(|n| (format!("s{n}"), step(&[]))).collect();
    let deadline = |seconds: i64| Refused {
        spec: json!({"activeDeadlineSeconds": seconds}),
        definition: "should be greater than or equal to 1",
        webhook: "is not a deadline; want 1 or more",
    };
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    vec![
        refused(
            json!({"a": {}}),
            ONE_OF_TWO,
            "neither jobTemplate nor externalRef is set",
        ),
        refused(
            json!({"a": both}),
            ONE_OF_TWO,
            "jobTemplate and externalRef are both set",
        ),
        refused(
            json!({"a": step(&["a"])}),
            "depends on itself",
            "step \"a\": depends on itself",
        ),
        refused(
            json!({"a": step(&["x"])}),
            "depends on one that does not exist",
            "step \"a\": depends on \"x\", which is not a step",
        ),
        refused(
            json!({"a": step(&[]), "b": step(&["a", "a"])}),
            "Duplicate value: \"a\"",
            "step \"b\": depends on \"a\" twice",
        ),
        refused(json!({"A_b": step(&[])}), NAMES, "not a name of a step"),
        refused(json!({"a-": step(&[])}), NAMES, "not a name of a step"),
        refused(
            json!({"a".repeat(64): step(&[])}),
            NAMES,
            "not a name of a step",
        ),
        refused(
            json!(many),
            "must have at most 500 items",
            "501 steps are too many",
        ),
        deadline(0),
        deadline(-1),
        refused(
            json!({"a": with("selector", json!({"matchLabels": {"a": "b"}}))}),
            "the selector of a Job is generated",
            "jobTemplate.spec.selector is set; it is generated",
        ),
        refused(
            json!({"a": with("manualSelector", json!(true))}),
            "the selector of a Job is generated; want no manualSelector",
            "jobTemplate.spec.manualSelector is true",
        ),
        refused(external(json!({"kind": "Pod", "name": "p"})), KINDS, KINDS),
        refused(
            external(
                json!({"kind": "Workflow", "apiVersion": "argoproj.io/v1alpha1", "name": "p"}),
            ),
            KINDS,
            KINDS,
        ),
        refused(
            external(json!({"kind": "Workflow"})),
            "name: Required value",
            "externalRef.name is missing",
        ),
        Refused {
            spec: json!({"selector": selector}),
            definition: "Unsupported value: \"Near\"",
            webhook: "\"Near\" is not an operator",
        },
    ]
}

pub(super) async fn wf_02_to_wf_11_what_is_not_valid_is_refused(stage: Stage) {
    for Refused {
        spec,
        definition,
        webhook,
    } in specs()
    {
        let status = stage.try_create("refused", spec).await.unwrap_err();
        let (code, expected) = match stage.is_simulated() {
            true => (400, webhook),
            false => (422, definition),
        };
        assert!(
            status.message.contains(expected),
            "{expected}: {}",
            status.message
        );
        assert_eq!(status.code, code, "{expected}");
    }
    // WF-07: of no meaning, and allowed, also in a circle.
    let other =
        json!({"externalRef": {"kind": "Workflow", "name": "other"}, "dependencies": ["after"]});
    stage
        .create(
            "circle",
            json!({"steps": {"other": other, "after": step(&["other"])}}),
        )
        .await;
}

/// Every rule that is written in the definition is one by which a spec or a change is refused.
pub(super) async fn every_rule_of_the_definition_is_tried(_stage: Stage) {
    let mut tried: Vec<&str> = specs().iter().map(|spec| spec.definition).collect();
    tried.extend(changes::SAID);
    let definition = hindsight_workflow::crd::definition();
    let mut waiting = vec![&definition["spec"]["versions"][0]["schema"]];
    let mut rules = 0;
    while let Some(node) = waiting.pop() {
        if let Some(own) = node.get("x-kubernetes-validations") {
            for rule in own.as_array().unwrap() {
                let message = rule["message"].as_str().unwrap();
                assert!(tried.iter().any(|said| message.contains(said)), "{message}");
                rules += 1;
            }
        }
        waiting.extend(
            node.as_object()
                .into_iter()
                .flat_map(serde_json::Map::values),
        );
    }
    assert_eq!(rules, 11);
}
