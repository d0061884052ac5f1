//! Tests of how a list finds its rows.

use super::*;
use crate::conformance::fixtures::{everything, test};
use crate::sql::{
    list::{self, Part},
    time_window::TimeWindow,
};
use hindsight_filter::{Order, condition::ObjectField};

fn long(query: &ListQuery) -> bool {
    may_take_long(Resource::Records, query)
}

#[test]
fn a_list_takes_no_time_where_it_takes_the_next_rows_of_an_index() {
    let all = everything();
    assert!(!long(&all));
    let updated = Order::by(Column::UpdateTime, true);
    assert!(!long(&ListQuery {
        order: updated,
        ..all.clone()
    }));
    let took = Order::by(Column::Outcome, true);
    let sorted = ListQuery {
        order: took,
        ..all.clone()
    };
    assert!(long(&sorted), "all rows are sorted");
    let typed = ListQuery {
        condition: test(Column::DataType, Is::Present),
        ..all.clone()
    };
    assert!(long(&typed), "others may lie between");
    let scope = "a/results/r".parse().unwrap();
    assert!(!long(&ListQuery { scope, ..sorted }), "one result is small");
    let id = hindsight_filter::condition::Value::Text("x".to_owned());
    let condition = test(Column::RecordId, Is::Equal(id));
    assert!(!long(&ListQuery { condition, ..all }));
}

#[test]
fn more_rows_are_looked_at_where_the_next_ones_held_some_of_the_page() {
    let longer = |column| test(column, Is::Greater(Value::Int(9)));
    let asked = |condition| ListQuery {
        condition,
        ..everything()
    };
    let took = asked(longer(Column::Duration));
    let farther = |dialect, query: &ListQuery, path, found| {
        let prefix = AccessPath::PrefixScan(cost::model(dialect).prefix_labelled);
        farther_prefix_scan(dialect, query, (prefix, path), (found, 50))
    };
    let (postgres, sort) = (Dialect::Postgres, AccessPath::FullSort);
    let far = Some(AccessPath::PrefixScan(16_384));
    assert_eq!(farther(postgres, &took, sort, 10), far);
    assert_eq!(farther(postgres, &took, sort, 9), None);
    assert_eq!(
        farther(postgres, &took, AccessPath::LabelIndex(None), 50),
        None
    );
    assert_eq!(farther(Dialect::Sqlite, &took, sort, 50), None);
    let late = asked(longer(Column::Ended));
    assert_eq!(farther(postgres, &late, sort, 50), None);
}

#[test]
fn no_other_index_leads_to_what_was_stored_late() {
    let query = ListQuery {
        scope: "a/results/-".parse().unwrap(),
        condition: test(Column::Labels, Is::Contains("main".to_owned())),
        ..everything()
    };
    let text = |dialect| {
        let resource = Resource::Records;
        let late = list::list(dialect, resource, &query, Part::With, AccessPath::Late, 9);
        late.unwrap().text().to_owned()
    };
    let sqlite = text(Dialect::Sqlite);
    for says in ["INDEXED BY records_late", "+parent = ", "json_each(labels)"] {
        assert!(sqlite.contains(says), "no `{says}` in {sqlite}");
    }
    let postgres = text(Dialect::Postgres);
    assert!(postgres.contains(" AND parent || '' = "), "{postgres}");
}

#[test]
fn what_is_sorted_is_read_afterwards_and_labels_are_asked_for_once() {
    let has_label = Is::Equal(Value::Text("main".to_owned()));
    let query = ListQuery {
        scope: "a/results/-".parse().unwrap(),
        condition: test(Column::Label("branch".to_owned()), has_label),
        ..everything()
    };
    let paths = [
        IndexCandidate::Parent("a"),
        IndexCandidate::Label("branch", "main"),
    ];
    for path in paths.map(AccessPath::Index) {
        let text = |order| {
            let query = ListQuery {
                order,
                ..query.clone()
            };
            let resource = Resource::Records;
            let list = list::list(Dialect::Sqlite, resource, &query, Part::With, path, 9);
            list.unwrap().text().to_owned()
        };
        let by_end = text(Order::by(Column::Ended, true));
        let (read, sorted) = by_end.split_once("(SELECT row_id AS sorted_row").unwrap();
        assert!(
            read.contains("etag") && !sorted.contains("etag"),
            "{by_end}"
        );
        let by_time = text(Order::newest_first());
        assert!(!by_time.contains("sorted_row"), "{by_time}");
        for statement in [by_end, by_time] {
            assert_eq!(statement.matches("record_labels").count(), 1, "{statement}");
        }
    }
}

#[test]
fn what_an_index_has_in_another_order_is_sorted_before_it_is_read() {
    let begins = Is::StartsWith("a".to_owned());
    let longer = Is::Greater(Value::Int(9));
    let names = test(Column::Object(ObjectField::Name), begins);
    let took = test(Column::Duration, longer);
    for condition in [names, took] {
        let query = ListQuery {
            condition,
            ..everything()
        };
        let one = candidate::candidates(Resource::Records, &query, true)[0];
        let path = AccessPath::Index(one);
        let list = list::list(
            Dialect::Sqlite,
            Resource::Records,
            &query,
            Part::With,
            path,
            9,
        );
        let list = list.unwrap();
        assert!(list.text().contains("sorted_row"), "{}", list.text());
    }
}

#[test]
fn a_reason_leads_to_its_index_wherever_it_is_kept() {
    let failed = Is::Equal(Value::Text("Failed".to_owned()));
    for column in [Column::Reason, Column::Object(ObjectField::Reason)] {
        let query = ListQuery {
            condition: test(column.clone(), failed.clone()),
            ..everything()
        };
        let all = candidate::candidates(Resource::Records, &query, false);
        let [IndexCandidate::Column("records_by_reason", _)] = all.as_slice() else {
            panic!("{column:?}: {all:?}");
        };
    }
}

#[test]
fn as_many_rows_of_an_index_are_looked_at_as_should_hold_the_page() {
    let test = test(Column::Outcome, Is::Equal(Value::Int(2)));
    let query = ListQuery {
        condition: test,
        ..everything()
    };
    let one = candidate::candidates(Resource::Records, &query, false)[0];
    let [_, most] = cost::NEXT_OF.map(|rows| AccessPath::NextOf(one, rows));
    let next = |found, combines| next_after(most, (found, 50), combines);
    assert_eq!(next(20, true), Some(AccessPath::NextOf(one, 2_048)));
    assert_eq!(next(4, false), Some(most));
    assert_eq!(next(0, false), Some(most));
    assert_eq!(next(4, true), None, "indexes are combined");
    assert_eq!(next(0, true), None);
    let other = AccessPath::PrefixScan(9);
    assert_eq!(next_after(other, (0, 50), true), Some(other));
}

#[test]
fn ten_minutes_are_long() {
    let asked = |column, is| {
        let query = ListQuery {
            condition: test(column, is),
            ..everything()
        };
        candidate::asks_long(&query)
    };
    let minutes = |minutes: i64| Value::Int(minutes * 60_000_000);
    for column in [Column::Duration, Column::ObjectDuration] {
        assert!(asked(column.clone(), Is::Greater(minutes(10))));
        assert!(asked(column.clone(), Is::AtLeast(minutes(10))));
        assert!(!asked(column.clone(), Is::Greater(minutes(9))));
        assert!(!asked(column, Is::Less(minutes(20))));
    }
    assert!(!asked(Column::Ended, Is::Greater(minutes(10))));
}

#[test]
fn values_are_known_to_a_plan_where_they_may_choose_between_indexes() {
    let label = |key: usize| {
        let value = Value::Text("b".to_owned());
        test(Column::Label(key.to_string()), Is::Equal(value))
    };
    let since = || test(Column::CreateTime, Is::Greater(Value::Int(9)));
    let window = AccessPath::LabelIndex(Some(TimeWindow::new(0, 9)));
    let prefix = AccessPath::PrefixScan(64);
    for (tests, path, once) in [
        (vec![label(0)], AccessPath::Late, true),
        (vec![label(0)], window, true),
        (vec![label(0), since()], window, false),
        (vec![label(0), since()], prefix, true),
        ((0..200).map(label).collect(), prefix, false),
    ] {
        let wanted = ListQuery {
            condition: Condition::And(tests),
            ..everything()
        };
        let (dialect, records) = (Dialect::Postgres, Resource::Records);
        let list = list::list(dialect, records, &wanted, Part::With, path, 9).unwrap();
        let text = list.text();
        assert_eq!(text.contains("(SELECT $"), once, "{text}");
    }
}

#[test]
fn a_page_of_next_rows_is_cut_before_it_is_sorted() {
    let wanted = ListQuery {
        condition: test(Column::DataType, Is::Present),
        ..everything()
    };
    for path in [AccessPath::PrefixScan(64), AccessPath::Late] {
        let (dialect, records) = (Dialect::Postgres, Resource::Records);
        let list = list::list(dialect, records, &wanted, Part::With, path, 9).unwrap();
        let (_, after) = list
            .text()
            .split_once(" WHERE 1 = 1 AND data_type")
            .unwrap();
        assert!(after.contains("FETCH FIRST (SELECT $"), "{}", list.text());
    }
}
