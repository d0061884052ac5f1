//! What each form prints of the same runs.

use hindsight_filter::words::Now;
use jiff::tz::TimeZone;

use super::*;
use crate::cli::runs::{row, times::TimeForm};

fn time(text: &str) -> Option<prost_types::Timestamp> {
    let time: jiff::Timestamp = text.parse().unwrap();
    Some(prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    })
}

fn run(name: &str, outcome: &str, reason: &str) -> RunRow {
    RunRow {
        record: format!("shop/results/r/records/{name}"),
        r#type: "tekton.dev/v1.PipelineRun".to_owned(),
        engine: "tekton".to_owned(),
        kind: "PipelineRun".to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        pipeline: "release".to_owned(),
        outcome: outcome.to_owned(),
        reason: reason.to_owned(),
        created: time("2026-03-02T14:02:07Z"),
        start_time: time("2026-03-02T14:02:11Z"),
        end_time: time("2026-03-02T14:09:12.25Z"),
        queue_seconds: Some(4.0),
        duration_seconds: Some(421.25),
        labels: [("team".to_owned(), "a,b".to_owned())].into(),
        create_time: time("2026-03-02T14:10:00Z"),
        update_time: time("2026-03-02T14:10:00Z"),
        ..RunRow::default()
    }
}

fn runs() -> Vec<RunRow> {
    let nightly = RunRow {
        start_time: time("2026-03-01T01:00:00Z"),
        pipeline: "nightly-of-all-the-shops-in-the-world".to_owned(),
        ..run(
            "nightly-7-with-a-very-long-name-x7k2p",
            "TIMEOUT",
            "PipelineRunTimeout",
        )
    };
    let waiting = RunRow {
        namespace: String::new(),
        start_time: None,
        end_time: None,
        duration_seconds: None,
        queue_seconds: None,
        ..run("release-43", "UNKNOWN", "")
    };
    vec![run("release-42", "FAILURE", "Failed"), nightly, waiting]
}

struct Case {
    form: Form,
    columns: Option<&'static str>,
    width: Option<usize>,
    colour: bool,
    time: Option<TimeForm>,
}

const PIPE: Case = Case {
    form: Form::Table,
    columns: None,
    width: None,
    colour: false,
    time: None,
};

/// What is printed of these runs, page by page.
fn printed(case: &Case, pages: Vec<Vec<RunRow>>) -> String {
    let now = Now {
        time: "2026-03-02T17:02:11Z".parse().unwrap(),
        zone: TimeZone::UTC,
    };
    let screen = Screen {
        width: case.width,
        colour: case.colour,
        unicode: case.width.is_some(),
    };
    let times = Times::new(now, case.time, case.width.is_some());
    let columns = row::columns(case.columns, case.form == Form::Wide).unwrap();
    let mut out = Vec::new();
    let mut printer = Printer::to(&mut out, case.form, columns, screen, times);
    for page in pages {
        printer.page(page).unwrap();
    }
    printer.end().unwrap();
    drop(printer);
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn prints(case: &Case, wanted: &str) {
    assert_eq!(printed(case, vec![runs()]), wanted);
}

#[test]
fn a_table_fits_a_terminal_of_80_cells() {
    let narrow = Case {
        width: Some(80),
        ..PIPE
    };
    prints(
        &narrow,
        "\
STATUS     RUN              KIND         PIPELINE         REASON  STARTED  TOOK
✗ failed   shop/release-42  PipelineRun  release          -       3h ago   7m01s
◷ timeout  shop/ni…e-x7k2p  PipelineRun  nightly…e-world  -       40h ago  7m01s
◌ waiting  release-43       PipelineRun  release          -       -        -
",
    );
    let chosen = Case {
        time: Some(TimeForm::Local),
        columns: Some("status,name,started,reason"),
        ..narrow
    };
    prints(
        &chosen,
        "\
STATUS     NAME                                   STARTED              REASON
✗ failed   release-42                             14:02:11             -
◷ timeout  nightly-7-with-a-very-long-name-x7k2p  2026-03-01 01:00:00  -
◌ waiting  release-43                             -                    -
",
    );
    // Without the status, the reason says it.
    let chosen = Case {
        columns: Some("name,reason"),
        ..narrow
    };
    prints(
        &chosen,
        "\
NAME                                   REASON
release-42                             Failed
nightly-7-with-a-very-long-name-x7k2p  PipelineRunTimeout
release-43                             -
",
    );
}

#[test]
fn times_are_told_in_full_where_names_are_short() {
    let case = Case {
        width: Some(80),
        ..PIPE
    };
    let short = vec![vec![run("r-1", "SUCCESS", "Ok")]];
    let wanted = "\
STATUS       RUN       KIND         PIPELINE  REASON  STARTED            TOOK
✓ succeeded  shop/r-1  PipelineRun  release   Ok      14:02:11 (3h ago)  7m01s
";
    assert_eq!(printed(&case, short), wanted);
}

#[test]
fn a_table_shows_all_on_a_terminal_of_200_cells() {
    let wide = Case {
        columns: Some("status,run,pipeline,reason,started,took,queue"),
        width: Some(200),
        ..PIPE
    };
    let wanted = "\
STATUS     RUN                                         PIPELINE                               REASON  STARTED                        TOOK   QUEUE
✗ failed   shop/release-42                             release                                -       14:02:11 (3h ago)              7m01s  4.0s
◷ timeout  shop/nightly-7-with-a-very-long-name-x7k2p  nightly-of-all-the-shops-in-the-world  -       2026-03-01 01:00:00 (40h ago)  7m01s  4.0s
◌ waiting  release-43                                  release                                -       -                              -      -
";
    prints(&wide, wanted);
    // Rows of later pages stand below those of the first.
    let [header, rest @ ..] = &wanted.lines().collect::<Vec<_>>()[..] else {
        panic!("there is a header")
    };
    let twice = printed(&wide, vec![runs(), runs()]);
    let lines: Vec<_> = [*header]
        .into_iter()
        .chain(rest.iter().chain(rest).copied())
        .collect();
    assert_eq!(twice.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn colours_are_beside_shapes_and_words() {
    let coloured = Case {
        columns: Some("status,took,label:team"),
        width: Some(80),
        colour: true,
        ..PIPE
    };
    prints(
        &coloured,
        "STATUS     TOOK   team\n\
         \u{1b}[31m✗ failed\u{1b}[0m   7m01s  a,b\n\
         \u{1b}[31m◷ timeout\u{1b}[0m  7m01s  a,b\n\
         ◌ waiting  -      a,b\n",
    );
    let forced = Case {
        columns: Some("status"),
        width: None,
        ..coloured
    };
    let wanted = "status\n\u{1b}[31mfailed\u{1b}[0m\n\u{1b}[31mtimeout\u{1b}[0m\nwaiting\n";
    prints(&forced, wanted);
}

#[test]
fn a_pipe_gets_whole_values_between_tabs() {
    prints(
        &PIPE,
        "status\trun\tkind\tpipeline\treason\tstarted\ttook\n\
         failed\tshop/release-42\tPipelineRun\trelease\tFailed\t2026-03-02T14:02:11Z\t421.25\n\
         timeout\tshop/nightly-7-with-a-very-long-name-x7k2p\tPipelineRun\t\
         nightly-of-all-the-shops-in-the-world\tPipelineRunTimeout\t2026-03-01T01:00:00Z\t421.25\n\
         waiting\trelease-43\tPipelineRun\trelease\t\t\t\n",
    );
    let csv = Case {
        form: Form::Csv,
        columns: Some("name,took,label:team,started"),
        ..PIPE
    };
    prints(
        &csv,
        "name,took,label:team,started\n\
         release-42,421.25,\"a,b\",2026-03-02T14:02:11Z\n\
         nightly-7-with-a-very-long-name-x7k2p,421.25,\"a,b\",2026-03-01T01:00:00Z\n\
         release-43,,\"a,b\",\n",
    );
    let header = "status\trun\tkind\tpipeline\treason\tstarted\ttook\n";
    assert_eq!(printed(&PIPE, vec![]), header);
}

#[test]
fn documents_have_the_words_of_tables() {
    let form = |form| Case { form, ..PIPE };
    let one = || vec![vec![run("release-42", "FAILURE", "Failed")], vec![]];
    let wanted = "{\"status\":\"failed\",\"outcome\":\"FAILURE\",\"reason\":\"Failed\",\"message\":null,\"signature\":null,\"attempt\":null,\
                  \"namespace\":\"shop\",\"name\":\"release-42\",\"kind\":\"PipelineRun\",\
                  \"engine\":\"tekton\",\"pipeline\":\"release\",\"parentRun\":null,\
                  \"cluster\":null,\"clusterName\":null,\
                  \"created\":\"2026-03-02T14:02:07Z\",\"startTime\":\"2026-03-02T14:02:11Z\",\
                  \"endTime\":\"2026-03-02T14:09:12.25Z\",\"queueSeconds\":4.0,\
                  \"durationSeconds\":421.25,\"labels\":{\"team\":\"a,b\"},\
                  \"uid\":\"uid-release-42\",\"record\":\"shop/results/r/records/release-42\",\
                  \"type\":\"tekton.dev/v1.PipelineRun\",\"createTime\":\"2026-03-02T14:10:00Z\",\
                  \"updateTime\":\"2026-03-02T14:10:00Z\"}";
    let lines = printed(&form(Form::Jsonl), one());
    assert_eq!(lines, format!("{wanted}\n"));
    let json = printed(&form(Form::Json), one());
    assert_eq!(json, format!("{{\"items\":[{wanted}]}}\n"));
    let twice = printed(&form(Form::Json), vec![runs(), runs()]);
    let twice: serde_json::Value = serde_json::from_str(&twice).unwrap();
    assert_eq!(twice["items"].as_array().unwrap().len(), 6);
    assert_eq!(printed(&form(Form::Json), vec![]), "{\"items\":[]}\n");
    let names = printed(&form(Form::Name), one());
    assert_eq!(names, "shop/results/r/records/release-42\n");
    let yaml = printed(&form(Form::Yaml), one());
    assert!(
        yaml.starts_with("items:\n") && yaml.contains("status: failed\n"),
        "{yaml}"
    );
}

/// What may be stored in any text of a run.
const HOSTILE: [&str; 10] = [
    "\u{1b}[2J\u{1b}[31mred",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://example.com\u{1b}\\link",
    "\u{9b}31m\u{90}q\u{9c}",
    "a\0b\u{8}\u{7f}",
    "line\nbreak\r\ttab\u{b}\u{c}",
    "\u{202e}txt.exe\u{2066}\u{200f}",
    "\u{2028}\u{2029}\u{85}",
    "\",\"status\":\"succeeded",
    "- yaml: {a}\n---\n# x",
];

#[test]
fn no_text_steers_a_terminal() {
    let hostile = |text: &str| {
        let text = text.to_owned();
        RunRow {
            record: text.clone(),
            r#type: text.clone(),
            kind: text.clone(),
            namespace: text.clone(),
            name: text.clone(),
            uid: text.clone(),
            pipeline: text.clone(),
            parent_run: text.clone(),
            cluster: text.clone(),
            cluster_name: text.clone(),
            outcome: text.clone(),
            reason: text.clone(),
            message: text.clone(),
            signature: text.clone(),
            labels: [(text.clone(), text.clone())].into(),
            engine: text,
            ..RunRow::default()
        }
    };
    let all = "status,run,namespace,name,kind,engine,pipeline,parent,cluster,reason,outcome,uid,\
               record,type,message,signature,label:a\u{1b}[2J";
    for form in [
        Form::Table,
        Form::Wide,
        Form::Name,
        Form::Json,
        Form::Jsonl,
        Form::Csv,
        Form::Yaml,
    ] {
        for width in [None, Some(80)] {
            let case = Case {
                form,
                columns: Some(all),
                width,
                ..PIPE
            };
            for text in HOSTILE {
                let out = printed(&case, vec![vec![hostile(text)]]);
                let steers =
                    |c: char| c != '\n' && output::steers(c) && !(c == '\t' && width.is_none());
                assert!(!out.contains(steers), "{form:?} {text:?}: {out:?}");
                let lines = match form {
                    Form::Table | Form::Wide | Form::Csv => 2,
                    Form::Yaml => continue,
                    _ => 1,
                };
                assert_eq!(out.lines().count(), lines, "{form:?} {text:?}: {out:?}");
                if form == Form::Jsonl {
                    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
                    assert_eq!(
                        (&told["name"], &told["status"]),
                        (&text.into(), &"unknown".into())
                    );
                }
            }
        }
    }
}
