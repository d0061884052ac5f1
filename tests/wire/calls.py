"""Every method, by a client that shares no code with the server."""

import sys

import grpc
from google.protobuf import field_mask_pb2
from tekton.results.v1alpha2 import api_pb2 as api, api_pb2_grpc, resources_pb2 as resources

channel = grpc.insecure_channel(sys.argv[1])
stub = api_pb2_grpc.ResultsStub(channel)
failures = []
done = 0


def check(what, seen, expected):
    global done
    done += 1
    if seen != expected:
        failures.append(f"{what}: {seen} instead of {expected}")


def call(method, request, expected="OK", metadata=None):
    """The reply, if there is one; the code is checked."""
    try:
        reply, code = getattr(stub, method)(request, metadata=metadata, timeout=30), "OK"
    except grpc.RpcError as error:
        reply, code = None, error.code().name
        check(f"{method} {metadata} has a text", bool(error.details()), True)
    check(f"{method} {metadata}", code, expected)
    return reply


def result(name):
    return resources.Result(name=name, annotations={"a": "b"})


def record(name, value=b"{}"):
    return resources.Record(name=name, data=resources.Any(type="t", value=value))


for number, metadata in enumerate([None, (("fields", "name"),), (("fields", "name,etag,records.name"),)]):
    r = f"ci/results/r{number}"
    made = call("CreateResult", api.CreateResultRequest(parent="ci", result=result(r)), metadata=metadata)
    check(f"{metadata} name", made.name, r)
    check(f"{metadata} uid is left out", made.uid == "", metadata is not None)
    call("CreateResult", api.CreateResultRequest(parent="ci", result=result(r)), "ALREADY_EXISTS", metadata)
    call("CreateResult", api.CreateResultRequest(parent="dev", result=result(r)), "INVALID_ARGUMENT", metadata)
    call("GetResult", api.GetResultRequest(name=r), metadata=metadata)
    call("GetResult", api.GetResultRequest(name="ci/results/none"), "NOT_FOUND", metadata)
    call("UpdateResult", api.UpdateResultRequest(name=r, result=result(r)), metadata=metadata)
    stale = api.UpdateResultRequest(name=r, result=result(r), etag="stale")
    call("UpdateResult", stale, "FAILED_PRECONDITION", metadata)
    call("ListResults", api.ListResultsRequest(parent="ci"), metadata=metadata)
    call("ListResults", api.ListResultsRequest(parent="ci", filter="("), "INVALID_ARGUMENT", metadata)

    a = f"{r}/records/a"
    call("CreateRecord", api.CreateRecordRequest(parent=r, record=record(a)), metadata=metadata)
    orphan = api.CreateRecordRequest(parent="ci/results/none", record=record("ci/results/none/records/a"))
    call("CreateRecord", orphan, "NOT_FOUND", metadata)
    got = call("GetRecord", api.GetRecordRequest(name=a), metadata=metadata)
    check(f"{metadata} value", got.data.value, b"{}" if metadata is None else b"")
    call("GetRecord", api.GetRecordRequest(name="?"), "INVALID_ARGUMENT", metadata)
    mask = field_mask_pb2.FieldMask(paths=["data.value"])
    call("UpdateRecord", api.UpdateRecordRequest(record=record(a, b"[]"), update_mask=mask), metadata=metadata)
    mask = field_mask_pb2.FieldMask(paths=["colour"])
    call("UpdateRecord", api.UpdateRecordRequest(record=record(a), update_mask=mask), "INVALID_ARGUMENT", metadata)
    listed = call("ListRecords", api.ListRecordsRequest(parent=f"{r}"), metadata=metadata)
    records = [] if metadata == (("fields", "name"),) else [a]
    check(f"{metadata} records", [one.name for one in listed.records], records)
    call("ListRecords", api.ListRecordsRequest(parent=r, page_size=-1), "INVALID_ARGUMENT", metadata)
    # Every field of the request by its number.
    counted = api.RecordListSummaryRequest(
        parent=r, summary="total", filter='data_type == "t"', group_by="namespace", order_by="total desc"
    )
    summary = call("GetRecordListSummary", counted)
    check("groups", [dict(group) for group in summary.summary], [{"group_value": None, "total": 1}])
    wrong = api.RecordListSummaryRequest(parent=r, summary="colour")
    call("GetRecordListSummary", wrong, "INVALID_ARGUMENT", metadata)
    call("DeleteRecord", api.DeleteRecordRequest(name=a), metadata=metadata)
    call("DeleteRecord", api.DeleteRecordRequest(name=a), "NOT_FOUND", metadata)
    call("DeleteResult", api.DeleteResultRequest(name=r), metadata=metadata)
    call("DeleteResult", api.DeleteResultRequest(name=r), "NOT_FOUND", metadata)

for line in failures:
    print(line, file=sys.stderr)
print(f"{done} checks, {len(failures)} failed")
sys.exit(1 if failures else 0)
