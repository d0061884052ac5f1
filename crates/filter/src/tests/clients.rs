//! Filters that clients of Tekton Results send, and those it documents or tests.

use super::rows::{
    Truth::{No, Unknown, Yes},
    is, result_is,
};
use crate::samples::clients;

#[test]
fn the_command_line_and_dashboards_are_answered() {
    is(Yes, clients::COMMAND_LINE);
    is(Yes, clients::DASHBOARDS);
    is(No, clients::NOT_OF_THE_RUN);
    is(Unknown, clients::UNKNOWN_OF_THE_RUN);
}

#[test]
fn what_tekton_results_tests_and_documents_is_answered() {
    is(Yes, clients::TESTED);
    is(Yes, clients::DOCUMENTED);
    result_is(true, clients::OF_THE_RESULT);
    result_is(false, clients::NOT_OF_THE_RESULT);
}
