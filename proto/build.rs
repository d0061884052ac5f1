//! Compiles the .proto files with a pure-Rust compiler, so that building needs no `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo tells build scripts where to write"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=google");
    println!("cargo:rerun-if-changed=hindsight");
    println!("cargo:rerun-if-changed=tekton");
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_imports(true);
    compiler.include_source_info(true);
    compiler.open_files([
        "tekton/results/v1alpha2/api.proto",
        "tekton/results/v1alpha2/logs.proto",
        "tekton/results/v1alpha3/logs.proto",
        "hindsight/v1/holds.proto",
        "hindsight/v1/ingest.proto",
        "hindsight/v1/logs.proto",
        "hindsight/v1/queries.proto",
        "hindsight/v1/runs.proto",
    ])?;

    // The encoded set keeps the google.api.http options, which the typed one drops.
    let encoded = compiler.encode_file_descriptor_set();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), &encoded)?;

    let typed = prost_types_set(&encoded)?;
    tonic_prost_build::configure()
        .bytes(".tekton.results.v1alpha2.Any")
        .bytes(".tekton.results.v1alpha2.Log.data")
        .bytes(".google.api.HttpBody")
        .btree_map(".")
        .compile_fds(typed)?;
    Ok(())
}

fn prost_types_set(encoded: &[u8]) -> Result<prost_types::FileDescriptorSet, Box<dyn Error>> {
    Ok(prost_types::FileDescriptorSet::decode(encoded)?)
}
