//! Compiles `tower/v1/*.proto` with protox, so that no protoc is needed.

use std::error::Error;

const FILES: &[&str] = &[
    "tower/v1/resource.proto",
    "tower/v1/release.proto",
    "tower/v1/sync.proto",
    "tower/v1/log.proto",
    "tower/v1/registry.proto",
    "tower/v1/checkpoint.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    tonic_prost_build::configure()
        // Bodies stay slices of the message that brought them.
        .bytes(".")
        // Maps are sorted, so equal values have equal bytes.
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
