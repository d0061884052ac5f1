"""What the kfp SDK does with pipelines, against a server at the first argument; files go to the second."""

import sys

import kfp
from kfp import dsl
from kfp.compiler import Compiler

address, folder = sys.argv[1:]
package = f"{folder}/hello.yaml"


@dsl.container_component
def say(text: str):
    return dsl.ContainerSpec(image="python:3.11", command=["echo", text])


@dsl.pipeline(name="hello")
def hello(text: str = "hello"):
    say(text=text)


def refused(call, status):
    try:
        call()
    except Exception as error:  # The SDK has several kinds.
        assert getattr(error, "status", None) == status, error
        return str(getattr(error, "body", error))
    raise AssertionError("it was not refused")


Compiler().compile(hello, package)
client = kfp.Client(host=address)
assert client.get_pipeline_id("hello") is None
assert client.list_pipelines().pipelines in (None, [])

pipeline = client.upload_pipeline(package, description="says hello")
assert (pipeline.name, pipeline.description) == ("hello", "says hello"), pipeline
assert client.get_pipeline_id("hello") == pipeline.pipeline_id
assert client.get_pipeline(pipeline.pipeline_id).display_name == "hello"
second = client.upload_pipeline_version(package, "v2", pipeline_id=pipeline.pipeline_id)
third = client.upload_pipeline_version(package, "v3", pipeline_name="hello")
assert refused(lambda: client.upload_pipeline(package), 409)
assert refused(lambda: client.upload_pipeline_version(package, "v2", pipeline_name="hello"), 409)

versions = client.list_pipeline_versions(pipeline.pipeline_id, page_size=2, sort_by="created_at desc")
assert versions.total_size == 3 and len(versions.pipeline_versions) == 2, versions
rest = client.list_pipeline_versions(
    pipeline.pipeline_id, page_size=2, sort_by="created_at desc", page_token=versions.next_page_token
)
ids = {version.pipeline_version_id for version in versions.pipeline_versions + rest.pipeline_versions}
assert {second.pipeline_version_id, third.pipeline_version_id} < ids and len(ids) == 3
shown = client.get_pipeline_version(pipeline.pipeline_id, second.pipeline_version_id)
assert shown.pipeline_spec["pipelineInfo"]["name"] == "hello", shown
assert shown.pipeline_spec["root"]["dag"]["tasks"]["say"]

assert "cascade" in refused(lambda: client.delete_pipeline(pipeline.pipeline_id), 400)
for version in ids:
    client.delete_pipeline_version(pipeline.pipeline_id, version)
client.delete_pipeline(pipeline.pipeline_id)
refused(lambda: client.get_pipeline(pipeline.pipeline_id), 404)
assert "runs" in refused(lambda: client.create_run_from_pipeline_package(package), 501)
print("sdk: ok")
