//! Values of rows as filters know them, and what columns keep of their payloads.

use std::collections::{BTreeMap, HashMap};

use hindsight_filter::{
    columns::{ObjectColumns, RunColumns},
    condition::{Column as Field, Condition, Value},
    model::Tier,
};

use super::{Reader, needed, of_groups};
use crate::{
    Error, Place, Source,
    columns::{OBJECT_FIELDS, outcome_number, text_leaf, time_leaf},
};

type Values = Vec<Option<Value>>;

impl<S: Source> Reader<S> {
    /// The rows of these that pass a condition, part after part.
    pub(super) fn passing(
        &self,
        group: usize,
        rows: Vec<usize>,
        condition: &Condition,
    ) -> Result<Vec<usize>, Error> {
        if let Condition::And(parts) = condition {
            return parts.iter().try_fold(rows, |rows, part| {
                if rows.is_empty() {
                    return Ok(rows);
                }
                self.passing(group, rows, part)
            });
        }
        let mut fields = HashMap::new();
        self.gather(group, &rows, condition, &mut fields)?;
        let passes = |at: usize| passes(condition, &|field| fields.get(field)?[at].clone());
        let kept = rows.iter().enumerate().filter(|(at, _)| passes(*at));
        Ok(kept.map(|(_, row)| *row).collect())
    }

    fn gather(
        &self,
        group: usize,
        rows: &[usize],
        condition: &Condition,
        fields: &mut HashMap<Field, Values>,
    ) -> Result<(), Error> {
        match condition {
            Condition::All | Condition::Nothing => Ok(()),
            Condition::And(parts) | Condition::Or(parts) => parts
                .iter()
                .try_for_each(|part| self.gather(group, rows, part, fields)),
            Condition::Test(test) => {
                if !fields.contains_key(&test.column) {
                    let values = self.values_of(group, rows, &test.column)?;
                    fields.insert(test.column.clone(), values);
                }
                Ok(())
            }
        }
    }

    /// What these rows have of a field, in the order of the file. It fails if that cannot be read.
    pub fn values(&self, places: &[Place], field: &Field) -> Result<Values, Error> {
        let mut values = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            values.extend(self.values_of(group, &rows, field)?);
        }
        Ok(values)
    }

    /// The numbers that these rows had in their store, in the order of the file. It fails if one has none.
    pub fn numbers(&self, places: &[Place]) -> Result<Vec<i64>, Error> {
        let mut numbers = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            for number in self.column("row_number").ints(group, &rows)? {
                numbers.push(needed("row_number", number)?);
            }
        }
        Ok(numbers)
    }

    /// The ids of the results of these rows, in the order of the file. It fails if they cannot be read.
    pub fn result_ids(&self, places: &[Place]) -> Result<Vec<String>, Error> {
        let mut ids = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            for id in self.column("result_id").texts(group, &rows)? {
                ids.push(needed("result_id", id)?);
            }
        }
        Ok(ids)
    }

    /// How many bytes the payloads of these rows have, in the order of the file. It fails if that cannot be read.
    pub fn sizes(&self, places: &[Place]) -> Result<Vec<u64>, Error> {
        let mut sizes = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            let of_rows = self.column("payload_size").ints(group, &rows)?;
            let size = |size: Option<i64>| size.map_or(0, |size| u64::try_from(size).unwrap_or(0));
            sizes.extend(of_rows.into_iter().map(size));
        }
        Ok(sizes)
    }

    /// What columns keep of the payloads of these rows, in the order of the file. It fails if that cannot be read.
    pub fn objects(&self, places: &[Place]) -> Result<Vec<ObjectColumns>, Error> {
        let mut objects = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            objects.extend(self.objects_of(group, &rows)?);
        }
        Ok(objects)
    }

    fn values_of(&self, group: usize, rows: &[usize], field: &Field) -> Result<Values, Error> {
        self.want(group)?;
        if let Some(leaf) = text_leaf(field) {
            let texts = self.column(leaf).texts(group, rows)?.into_iter();
            return Ok(texts.map(|text| text.map(Value::Text)).collect());
        }
        if let Some(leaf) = time_leaf(field) {
            let times = self.column(leaf).times(group, rows)?.into_iter();
            return Ok(times.map(|time| time.map(Value::Time)).collect());
        }
        match field {
            Field::Tier => Ok(vec![
                Some(Value::Text(Tier::Cold.as_str().to_owned()));
                rows.len()
            ]),
            Field::Duration => {
                let took = self.column("duration_us").ints(group, rows)?.into_iter();
                Ok(took.map(|us| us.map(Value::Int)).collect())
            }
            Field::Outcome => {
                let names = self.column("outcome").texts(group, rows)?.into_iter();
                let number = |name: Option<String>| Some(Value::Int(outcome_number(&name?)));
                Ok(names.map(number).collect())
            }
            Field::ObjectDuration => {
                let start = self.column("object_start_time").times(group, rows)?;
                let end = self.column("object_completion_time").times(group, rows)?;
                let took = end.into_iter().zip(start).map(|(end, start)| {
                    let took = end?.as_microsecond() - start?.as_microsecond();
                    Some(Value::Int(took))
                });
                Ok(took.collect())
            }
            Field::RecordName => {
                let mut ids = self.column("record_id").texts(group, rows)?.into_iter();
                let mut results = self.column("result_id").texts(group, rows)?.into_iter();
                let parents = self.column("parent").texts(group, rows)?.into_iter();
                let names = parents.map(|parent| {
                    let (result, id) = (results.next().flatten()?, ids.next().flatten()?);
                    let name = format!("{}/results/{result}/records/{id}", parent?);
                    Some(Value::Text(name))
                });
                Ok(names.collect())
            }
            Field::Label(key) => {
                let labels = self.maps("labels", group, rows)?.into_iter();
                let label = labels.map(|mut labels| labels.remove(key).map(Value::Text));
                Ok(label.collect())
            }
            Field::Labels => {
                let labels = self.maps("labels", group, rows)?;
                let odd = self.column("odd_labels").ints(group, rows)?;
                let objects = labels.into_iter().zip(odd).map(labelled);
                let texts = objects.map(|object| object.searched_labels().map(Value::Text));
                Ok(texts.collect())
            }
            _ => Ok(vec![None; rows.len()]),
        }
    }

    fn objects_of(&self, group: usize, rows: &[usize]) -> Result<Vec<ObjectColumns>, Error> {
        self.want(group)?;
        let labels = self.maps("labels", group, rows)?.into_iter();
        let odd = self.column("odd_labels").ints(group, rows)?;
        let mut objects: Vec<ObjectColumns> = labels.zip(odd).map(labelled).collect();
        for (field, _) in OBJECT_FIELDS {
            let values = self.values_of(group, rows, &Field::Object(field))?;
            for (object, value) in objects.iter_mut().zip(values) {
                if let Some(value) = value {
                    object.insert(field, value);
                }
            }
        }
        let texts = |leaf| self.column(leaf).texts(group, rows);
        let (outcomes, signatures) = (texts("outcome")?, texts("signature")?);
        let messages = texts("message")?;
        let attempts = self.column("attempt").ints(group, rows)?;
        let began = self.column("start_time").ints(group, rows)?;
        let ended = self.column("end_time").ints(group, rows)?;
        let rest = outcomes.into_iter().zip(signatures).zip(messages);
        for (at, (object, ((outcome, signature), message))) in
            objects.iter_mut().zip(rest).enumerate()
        {
            object.run = RunColumns {
                outcome: outcome.as_deref().map(outcome_number),
                began: began[at],
                ended: ended[at],
            };
            object.signature = signature;
            object.message = message;
            object.attempt = attempts[at];
        }
        Ok(objects)
    }
}

fn labelled((labels, odd): (BTreeMap<String, String>, Option<i64>)) -> ObjectColumns {
    let mut object = ObjectColumns::default();
    object.labels = labels;
    object.has_odd_labels = odd.is_some();
    object
}

/// Whether a row passes, of whose payload nothing else than columns is known.
fn passes(condition: &Condition, value: &dyn Fn(&Field) -> Option<Value>) -> bool {
    match condition {
        Condition::And(parts) => parts.iter().all(|part| passes(part, value)),
        Condition::Or(parts) => parts.iter().any(|part| passes(part, value)),
        Condition::Test(test) if matches!(test.column, Field::Indexed(_)) => true,
        other => other.passes(value),
    }
}
