//! The wire numbers that clients of `tekton.results.v1alpha2` were built with.

use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::FILE_DESCRIPTOR_SET;

const NUMBERS: &str = "
Result: name=1 id=2 created_time=3 annotations=4 etag=5 updated_time=6 uid=7 create_time=8 update_time=9 summary=10
Record: name=1 id=2 data=3 etag=4 created_time=5 updated_time=6 uid=7 create_time=8 update_time=9
Any: type=1 value=2
RecordSummary: record=1 type=2 start_time=3 end_time=4 status=5 annotations=6
CreateResultRequest: parent=1 result=2
UpdateResultRequest: name=1 result=2 etag=3
GetResultRequest: name=1
DeleteResultRequest: name=1
ListResultsRequest: parent=1 filter=2 page_size=3 page_token=4 order_by=5
ListResultsResponse: results=1 next_page_token=2
CreateRecordRequest: parent=1 record=2
UpdateRecordRequest: record=1 update_mask=2 etag=3
GetRecordRequest: name=1
DeleteRecordRequest: name=1
ListRecordsRequest: parent=1 filter=2 page_size=3 page_token=4 order_by=5
ListRecordsResponse: records=1 next_page_token=2
RecordListSummaryRequest: parent=1 filter=2 group_by=3 order_by=4 summary=5
RecordListSummary: summary=1
";

#[test]
fn every_message_has_the_numbers_that_clients_know() {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let files = set
        .file
        .iter()
        .filter(|file| file.package() == "tekton.results.v1alpha2");
    let mut messages: Vec<String> = files
        .flat_map(|file| &file.message_type)
        .map(|message| {
            let mut fields: Vec<_> = message
                .field
                .iter()
                .map(|f| (f.number(), f.name()))
                .collect();
            fields.sort_unstable();
            let fields: Vec<_> = fields
                .iter()
                .map(|(n, name)| format!("{name}={n}"))
                .collect();
            format!("{}: {}", message.name(), fields.join(" "))
        })
        .collect();
    messages.sort_unstable();
    let mut wanted: Vec<_> = NUMBERS.trim().lines().map(str::to_owned).collect();
    wanted.sort_unstable();
    assert_eq!(messages, wanted);
}

#[test]
fn the_service_has_its_eleven_methods() {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    let service = set
        .file
        .iter()
        .flat_map(|file| &file.service)
        .find(|s| s.name() == "Results");
    let mut methods: Vec<_> = service.unwrap().method.iter().map(|m| m.name()).collect();
    methods.sort_unstable();
    assert_eq!(
        methods,
        [
            "CreateRecord",
            "CreateResult",
            "DeleteRecord",
            "DeleteResult",
            "GetRecord",
            "GetRecordListSummary",
            "GetResult",
            "ListRecords",
            "ListResults",
            "UpdateRecord",
            "UpdateResult",
        ]
    );
}
