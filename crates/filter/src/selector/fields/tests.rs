//! What field selectors mean and what they refuse.

use crate::{Filter, Language, Selection, condition::Ability, model::Resource};

fn selected(text: &str, resource: Resource) -> Result<Filter, String> {
    let selection = Selection {
        fields: text,
        language: Language::Labels,
        ..Selection::default()
    };
    Filter::select(&selection, resource).map_err(|error| error.to_string())
}

fn told(text: &str, resource: Resource) -> String {
    let filter = selected(text, resource).unwrap_or_else(|e| panic!("{text}: {e}"));
    let told = filter.explain(&|_| Ability::Exact);
    told.strip_prefix("engine: ").unwrap().to_owned()
}

#[test]
fn fields_of_kubernetes_are_fields_of_the_payload() {
    let records = |text| told(text, Resource::Records);
    assert_eq!(
        records("metadata.name=build,metadata.namespace==ci"),
        "data.metadata.name = \"build\" and data.metadata.namespace = \"ci\"\nleft over: nothing"
    );
    assert_eq!(
        records(r"parent=ci,data_type=a\,b\=c\\"),
        "parent = \"ci\" and data_type = \"a,b=c\\\\\"\nleft over: nothing"
    );
    assert_eq!(
        records("parent!=ci"),
        "parent is set and not = \"ci\"\nleft over: nothing"
    );
    let rest = "left over: the whole filter, on the payload of each row that the engine returns";
    assert_eq!(
        records("status.conditions[0].reason!=Failed"),
        format!(
            "data.status.conditions[0].reason is not set or data.status.conditions[0].reason is \
             set and not = \"Failed\"\n{rest}"
        )
    );
    assert_eq!(records("spec.retries=3"), format!("every row\n{rest}"));
    assert_eq!(
        told(
            "metadata.namespace=ci,summary.status=FAILURE",
            Resource::Results
        ),
        "parent = \"ci\" and summary.status = 2\nleft over: nothing"
    );
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for (text, why) in [
        (
            "metadata.name",
            "column 1: `metadata.name` is no requirement; want `<field>=<value>` or \
          `<field>!=<value>`",
        ),
        (
            "a=b,",
            "column 5: `` is no requirement; want `<field>=<value>` or `<field>!=<value>`",
        ),
        (
            "a=b, 1x=c",
            "column 6: `1x` is no field; want for example `metadata.name` or \
          `status.phase`",
        ),
        (
            "a..b=c",
            "column 1: `a..b` is no field; want for example `metadata.name` or \
          `status.phase`",
        ),
        ("a=b=c", "column 4: a `=` in a value is written `\\=`"),
        (
            "a=b\\c",
            "column 4: a `\\` stands before `,`, `=` or `\\` only; write it twice",
        ),
        (
            "a!b",
            "column 1: `a!b` is no requirement; want `<field>=<value>` or `<field>!=<value>`",
        ),
    ] {
        assert_eq!(
            selected(text, Resource::Records).unwrap_err(),
            format!("field selector {why}"),
            "{text}"
        );
    }
    assert_eq!(
        selected("metadata.name=x", Resource::Results).unwrap_err(),
        "field selector column 1: `metadata.name` is not a field of results; want `parent`, `uid` or \
         one of `summary`, such as `summary.status`"
    );
}

#[test]
fn everything_that_is_given_must_hold() {
    let selection = Selection {
        filter: "parent == 'ci'",
        labels: "app=shop",
        fields: "kind=TaskRun",
        ..Selection::default()
    };
    let filter = Filter::select(&selection, Resource::Records).unwrap();
    assert_eq!(
        filter.explain(&|_| Ability::Exact),
        "engine: parent = \"ci\" and data.metadata.labels[\"app\"] = \"shop\" and data.kind = \
         \"TaskRun\"\nleft over: nothing"
    );
    // Page tokens are bound to what was asked for in each language.
    let texts = |filter, labels, fields| {
        let selection = Selection {
            filter,
            labels,
            fields,
            ..Selection::default()
        };
        let filter = Filter::select(&selection, Resource::Records).unwrap();
        filter.text().to_owned()
    };
    assert_eq!(texts(" true ", "", ""), "true");
    let different = [
        texts("true", "a=b", ""),
        texts("true", "", "a=b"),
        texts("", "a=b", ""),
        texts("", "", "a=b"),
        texts("", "a=b,c", ""),
        texts("", "", ""),
        texts("true", "", ""),
    ];
    let distinct: std::collections::HashSet<_> = different.iter().collect();
    assert_eq!(distinct.len(), different.len());
}
