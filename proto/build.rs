//! Compiles the .proto files with a pure-Rust compiler, so that building needs no `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts where to write"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=google");
    println!("cargo:rerun-if-changed=hindsight");
    println!("cargo:rerun-if-changed=kubeflow");
    println!("cargo:rerun-if-changed=ray");
    println!("cargo:rerun-if-changed=tekton");
    let core = described(&[
        "tekton/results/v1alpha2/api.proto",
        "tekton/results/v1alpha2/logs.proto",
        "tekton/results/v1alpha3/logs.proto",
        "hindsight/v1/archive.proto",
        "hindsight/v1/holds.proto",
        "hindsight/v1/ingest.proto",
        "hindsight/v1/logs.proto",
        "hindsight/v1/queries.proto",
        "hindsight/v1/runs.proto",
    ])?;
    let ray = described(&[
        "ray/v1/cluster.proto",
        "ray/v1/config.proto",
        "ray/v1alpha2/cluster.proto",
        "ray/v1alpha2/config.proto",
    ])?;
    let kubeflow = described(&[
        "kubeflow/v2beta1/filter.proto",
        "kubeflow/v2beta1/healthz.proto",
        "kubeflow/v2beta1/pipeline.proto",
    ])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), &core)?;
    fs::write(out.join("ray.bin"), &ray)?;
    fs::write(out.join("kubeflow.bin"), &kubeflow)?;

    let mut typed = FileDescriptorSet::decode(&*core)?;
    for beside in [&ray, &kubeflow] {
        for file in FileDescriptorSet::decode(&**beside)?.file {
            if !typed.file.iter().any(|known| known.name == file.name) {
                typed.file.push(file);
            }
        }
    }
    tonic_prost_build::configure()
        .bytes(".tekton.results.v1alpha2.Any")
        .bytes(".tekton.results.v1alpha2.Log.data")
        .bytes(".google.api.HttpBody")
        .btree_map(".")
        .compile_fds(typed)?;
    Ok(())
}

/// These files and what they import. The encoded set keeps the google.api.http options, which the typed one drops.
fn described(files: &[&str]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true);
    compiler.include_source_info(true);
    compiler.open_files(files)?;
    Ok(compiler.encode_file_descriptor_set())
}
