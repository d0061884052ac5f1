//! The questions, each asked of other runs, times and pipelines every time, and its answer compared with what was
//! written.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use hindsight_client::{Client, Options};
use hindsight_filter::model::Record;
use hindsight_proto::{v1::AggregateRequest, v1alpha2 as pb};

use crate::{
    bodies::{NAMESPACES, PIPELINES, RECORDS, Run, Runs, day, namespace_of, parent, pipeline_of},
    bucket::Bucket,
    corpus::Dice,
    figures::{Figures, Times},
    fresh::Server,
};

const PAGE: usize = 50;
/// Days of a question.
const WINDOW: usize = 30;
const ALL: &str = "-/results/-";

/// What most answers must stay under.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// How many of a thousand, and milliseconds.
    time: (usize, f64),
    bytes: Option<u64>,
}

const GET: Bounds = Bounds {
    time: (500, 50.0),
    bytes: None,
};
const WHOLE_RUN: Bounds = Bounds {
    time: (500, 100.0),
    bytes: None,
};
const FIRST_PAGE: Bounds = Bounds {
    time: (950, 3_000.0),
    bytes: Some(200_000_000),
};
const NONE: Bounds = Bounds {
    time: (950, f64::INFINITY),
    bytes: None,
};

/// Where the server has the files.
#[derive(Debug, Clone, Copy)]
pub enum Files<'b> {
    Directory,
    Bucket(&'b Bucket),
}

impl Files<'_> {
    fn label(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Bucket(_) => "bucket",
        }
    }

    /// Requests and bytes until now; of a directory what the server read of all files, those of the database too.
    fn taken(self, server: &Server) -> (u64, u64) {
        match self {
            Self::Directory => (server.told("io", "syscr:"), server.told("io", "rchar:")),
            Self::Bucket(bucket) => bucket.taken(),
        }
    }
}

pub struct Asked<'a> {
    server: &'a Server,
    client: Client,
    files: Files<'a>,
    runs: &'a Runs,
    figures: &'a mut Figures,
    dice: Dice,
}

impl<'a> Asked<'a> {
    pub fn new(
        server: &'a Server,
        files: Files<'a>,
        runs: &'a Runs,
        figures: &'a mut Figures,
    ) -> Self {
        let options = Options {
            deadline: Duration::from_mins(5),
            ..Options::new(server.url())
        };
        Self {
            server,
            client: Client::new(&options).unwrap(),
            files,
            runs,
            figures,
            dice: Dice::new(11),
        }
    }

    pub async fn all(mut self) {
        let cold = 0..self.runs.of_day(self.runs.cold_days()).start;
        let hot = cold.end..self.runs.count;
        self.gets("a record that is in the database, by its name", &hot)
            .await;
        self.gets("a record by its name", &cold).await;
        self.whole_runs(&cold).await;
        self.newest(hot.len()).await;
        self.of_type("PipelineRuns of a namespace, newest", None)
            .await;
        self.of_type(
            "PipelineRuns of a namespace, older ones",
            Some(self.runs.cold_days()),
        )
        .await;
        self.pipeline_in_a_window().await;
        self.label_of_one_run().await;
        self.sums().await;
        let most = self.server.most_mib() as f64;
        let case = format!("{}: most memory of the server", self.files.label());
        self.figures.value(&case, most, "MiB", None);
    }

    fn any(&mut self, of: &Range<usize>) -> usize {
        of.start + self.dice.below(of.len())
    }

    /// The runs of days of which all are in files, and what a filter says of their times.
    fn window(&mut self) -> (Range<usize>, String) {
        let first = self.dice.below(self.runs.cold_days() - WINDOW + 1);
        let last = first + WINDOW;
        let numbers = self.runs.of_day(first).start..self.runs.of_day(last).start;
        let (from, to) = (day(first), day(last));
        let filter = format!("create_time >= {from} && create_time < {to}");
        (numbers, filter)
    }

    /// Asks, and keeps what it took; gives the answers, which have so many rows.
    async fn timed<Q, A>(
        &mut self,
        (case, rows): (&str, usize),
        bounds: Bounds,
        questions: Vec<Q>,
        ask: impl AsyncFn(&Client, &Q) -> A,
    ) -> Vec<(Q, A)> {
        let (mut times, mut answers) = (Times::default(), Vec::new());
        let (mut requests, mut bytes) = (Vec::new(), Vec::new());
        let mut before = self.files.taken(self.server);
        for question in questions {
            let began = Instant::now();
            let answer = ask(&self.client, &question).await;
            times.add(began.elapsed());
            let after = self.files.taken(self.server);
            requests.push(after.0 - before.0);
            bytes.push(after.1 - before.1);
            before = after;
            answers.push((question, answer));
        }
        let case = format!("{}: {case}", self.files.label());
        self.figures.timed(&case, &times, rows, bounds.time);
        for (what, mut counts, bound) in
            [("requests", requests, None), ("bytes", bytes, bounds.bytes)]
        {
            counts.sort_unstable();
            let (p50, most) = (counts[counts.len() / 2], counts[counts.len() - 1]);
            let name = format!("{case}: {what}, p50");
            self.figures.value(&name, p50 as f64, "", None);
            let met = bound.map(|bound| most <= bound);
            let name = format!("{case}: {what}, most");
            self.figures.value(&name, most as f64, "", met);
        }
        answers
    }

    async fn gets(&mut self, case: &str, of: &Range<usize>) {
        let mut records = Vec::new();
        for _ in 0..200 {
            let (run, record) = (self.any(of), self.dice.below(RECORDS));
            records.push(self.runs.run(run).records.swap_remove(record));
        }
        let ask = async |client: &Client, record: &Record| {
            let request = pb::GetRecordRequest {
                name: record.name.to_string(),
            };
            client.rpc().get_record(request).await.unwrap().into_inner()
        };
        for (wanted, got) in self.timed((case, 1), GET, records, ask).await {
            is_same(&wanted, got);
        }
    }

    async fn whole_runs(&mut self, of: &Range<usize>) {
        let numbers: Vec<usize> = (0..100).map(|_| self.any(of)).collect();
        let runs = numbers.into_iter().map(|number| self.runs.run(number));
        let runs = runs.collect();
        let ask = async |client: &Client, run: &Run| {
            listed(client, &run.result.name.to_string(), "").await
        };
        let case = "a run with all records";
        for (run, got) in self.timed((case, RECORDS), WHOLE_RUN, runs, ask).await {
            assert_eq!(got.len(), RECORDS);
            for (wanted, got) in run.records.iter().rev().zip(got) {
                is_same(wanted, got);
            }
        }
    }

    async fn newest(&mut self, hot: usize) {
        let ask = async |client: &Client, (): &()| listed(client, ALL, "").await;
        let before = self.files.taken(self.server);
        let answers = self.timed(("newest", PAGE), NONE, vec![(); 50], ask).await;
        let wanted = self.runs.newest(0..self.runs.count, PAGE, |_| true, false);
        for ((), got) in answers {
            assert_eq!(names(&got), wanted);
        }
        if hot * RECORDS >= PAGE && matches!(self.files, Files::Bucket(_)) {
            let after = self.files.taken(self.server);
            assert_eq!(after, before, "files were read");
        }
    }

    async fn of_type(&mut self, case: &str, before: Option<usize>) {
        const TYPE: &str = r#"data_type == "tekton.dev/v1.PipelineRun""#;
        let mut questions = Vec::new();
        for _ in 0..40 {
            let namespace = self.dice.below(NAMESPACES);
            let mut question = (namespace, TYPE.to_owned(), self.runs.count);
            if let Some(days) = before {
                let end = 1 + self.dice.below(days);
                question.1 += &format!(" && create_time < {}", day(end));
                question.2 = self.runs.of_day(end).start;
            }
            questions.push(question);
        }
        let ask = async |client: &Client, (namespace, filter, _): &(usize, String, usize)| {
            listed(client, &format!("{}/results/-", parent(*namespace)), filter).await
        };
        for ((namespace, _, end), got) in self.timed((case, PAGE), NONE, questions, ask).await {
            let is_there = |number| namespace_of(number) == namespace;
            assert_eq!(names(&got), self.runs.newest(0..end, PAGE, is_there, true));
        }
    }

    async fn pipeline_in_a_window(&mut self) {
        let mut questions = Vec::new();
        for _ in 0..40 {
            let (numbers, time) = self.window();
            let pipeline = self.dice.below(PIPELINES);
            let label = r#"data.metadata.labels["tekton.dev/pipeline"]"#;
            let filter = format!(r#"{time} && {label} == "pipeline-{pipeline}""#);
            questions.push((numbers, filter, pipeline));
        }
        let ask = async |client: &Client, (_, filter, _): &(Range<usize>, String, usize)| {
            listed(client, ALL, filter).await
        };
        let case = "30 days and the label of a pipeline";
        for ((numbers, _, pipeline), got) in
            self.timed((case, PAGE), FIRST_PAGE, questions, ask).await
        {
            let is_of_it = |number| pipeline_of(number) == pipeline;
            let wanted = self.runs.newest(numbers, PAGE, is_of_it, false);
            assert_eq!(names(&got), wanted);
        }
    }

    /// What few rows pass, so that no page fills early.
    async fn label_of_one_run(&mut self) {
        let mut questions = Vec::new();
        for _ in 0..15 {
            let (numbers, time) = self.window();
            let number = self.any(&numbers);
            let run = self.runs.run(number);
            let label = r#"data.metadata.labels["tekton.dev/pipelineRun"]"#;
            let filter = format!(r#"{time} && {label} == "{}""#, run.name());
            questions.push((run, filter));
        }
        let ask =
            async |client: &Client, (_, filter): &(Run, String)| listed(client, ALL, filter).await;
        let case = "30 days and the label of one run";
        let rows = RECORDS - 1;
        for ((run, _), got) in self.timed((case, rows), FIRST_PAGE, questions, ask).await {
            let tasks = run.records[..RECORDS - 1].iter().rev();
            let wanted: Vec<_> = tasks.map(|record| record.name.to_string()).collect();
            assert_eq!(names(&got), wanted);
        }
    }

    async fn sums(&mut self) {
        let questions = (0..8).map(|_| self.window()).collect();
        let ask = async |client: &Client, (_, filter): &(Range<usize>, String)| {
            let request = AggregateRequest {
                parent: ALL.to_owned(),
                filter: filter.clone(),
                group_by: vec!["day(stored)".to_owned()],
                ..AggregateRequest::default()
            };
            let answer = client.queries().aggregate(request).await.unwrap();
            answer.into_inner()
        };
        let case = "records of 30 days, counted by day";
        for ((numbers, _), sums) in self.timed((case, WINDOW), NONE, questions, ask).await {
            assert_eq!(sums.groups.len(), WINDOW.min(numbers.len()));
            let wanted = numbers.len() * RECORDS;
            assert_eq!(usize::try_from(sums.records).unwrap(), wanted);
        }
    }
}

/// The first page, newest first.
async fn listed(client: &Client, parent: &str, filter: &str) -> Vec<pb::Record> {
    let request = pb::ListRecordsRequest {
        parent: parent.to_owned(),
        filter: filter.to_owned(),
        order_by: "create_time desc".to_owned(),
        page_size: PAGE.try_into().unwrap(),
        ..pb::ListRecordsRequest::default()
    };
    let page = client.rpc().list_records(request).await.unwrap();
    page.into_inner().records
}

fn names(records: &[pb::Record]) -> Vec<String> {
    records.iter().map(|record| record.name.clone()).collect()
}

fn is_same(wanted: &Record, got: pb::Record) {
    assert_eq!(got.name, wanted.name.to_string());
    let data = wanted.data.as_ref().unwrap();
    assert!(got.data.unwrap().value == data.value, "{}", got.name);
}
