//! `proto/envoy.binpb` is what the proto files of `envoy-types` say, without comments and options; the constraints of values
//! (protoc-gen-validate) stay.
//!
//! When that crate has moved on, `TOWER_BLESS=1 cargo test --workspace -- descriptors` writes it anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, FieldDescriptorProto, FieldOptions,
    FileDescriptorProto, MessageOptions, OneofOptions, UninterpretedOption,
};
use protox::{
    Compiler,
    file::{File, FileResolver, GoogleFileResolver},
};

/// Where imports are looked for, in the folder of the crate.
const ROOTS: [&str; 8] = [
    "data-plane-api",
    "xds",
    "protoc-gen-validate",
    "googleapis",
    "cel-spec/proto",
    "opentelemetry-proto",
    "client_model",
    "ratelimit",
];

/// What is wanted: what a cluster, a listener, a route or a secret may be made of. Imports come along.
const WANTED: [&str; 3] = ["envoy/config/", "envoy/extensions/", "envoy/type/"];

/// What a file may import without bringing it.
const WELL_KNOWN: [&str; 8] = [
    "google/protobuf/any.proto",
    "google/protobuf/descriptor.proto",
    "google/protobuf/duration.proto",
    "google/protobuf/empty.proto",
    "google/protobuf/field_mask.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "google/protobuf/wrappers.proto",
];

#[test]
fn descriptors_are_those_of_the_messages() {
    let current = descriptors(&sources());
    if env::var_os("TOWER_BLESS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("envoy.binpb");
        fs::write(file, current).expect("it can be written");
    } else {
        assert!(tower_proto::ENVOY_DESCRIPTORS == current, "stale: see the top of this file");
    }
}

/// The folder with the proto files of `envoy-types`.
fn sources() -> PathBuf {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().expect("it runs");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    // Packages for other platforms need not be there.
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", host];
    let metadata: serde_json::Value = serde_json::from_str(&run(&cargo, &arguments)).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|package| package["name"] == "envoy-types").expect("the crate");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    manifest.with_file_name("proto")
}

fn descriptors(sources: &Path) -> Vec<u8> {
    let mut files = BTreeMap::new();
    for root in ROOTS {
        let root = sources.join(root);
        for path in proto_files(&root) {
            let name = path.strip_prefix(&root).expect("in the folder").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("a text");
            let file = File::from_source(&name, &text).expect("a proto file");
            files.insert(name, file.file_descriptor_proto().clone());
        }
    }
    for name in WELL_KNOWN {
        let file = GoogleFileResolver::new().open_file(name).expect("a well-known file");
        files.insert(name.to_owned(), file.file_descriptor_proto().clone());
    }
    let mut types = BTreeSet::new();
    for file in files.values_mut() {
        strip(file);
        declare(&mut types, file.package(), &file.message_type, &file.enum_type);
    }
    for file in files.values_mut() {
        let package = file.package().to_owned();
        for message in &mut file.message_type {
            resolve(&types, &package, message);
        }
        // What options are made of.
        for field in &mut file.extension {
            resolve_field(&types, &package, field);
        }
    }
    let wanted =
        |name: &&String| WANTED.iter().any(|prefix| name.starts_with(prefix)) && name.contains("/v3/");
    let wanted: Vec<_> = files.keys().filter(wanted).cloned().collect();
    // Options of our own kind are read by compiling.
    let mut compiler = Compiler::with_file_resolver(Parsed(files));
    compiler.include_imports(true);
    for name in wanted {
        compiler.open_file(&name).expect("it compiles");
    }
    compiler.encode_file_descriptor_set()
}

/// Files that are parsed already.
struct Parsed(BTreeMap<String, FileDescriptorProto>);

impl FileResolver for Parsed {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let file = self.0.get(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        Ok(File::from_file_descriptor_proto(file.clone()))
    }
}

fn proto_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(proto_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "proto") {
            found.push(path);
        }
    }
    found
}

/// Takes away what does not matter to the form of messages, but the constraints of their values.
fn strip(file: &mut FileDescriptorProto) {
    file.options = None;
    file.source_code_info = None;
    file.service.clear();
    file.message_type.iter_mut().for_each(strip_message);
    file.enum_type.iter_mut().for_each(strip_enum);
}

fn strip_message(message: &mut DescriptorProto) {
    if let Some(options) = message.options.take() {
        let options = MessageOptions {
            map_entry: options.map_entry,
            uninterpreted_option: constraints(options.uninterpreted_option),
            ..Default::default()
        };
        message.options = Some(options).filter(|options| *options != MessageOptions::default());
    }
    for field in &mut message.field {
        if let Some(options) = field.options.take() {
            let uninterpreted_option = constraints(options.uninterpreted_option);
            field.options = (!uninterpreted_option.is_empty())
                .then(|| FieldOptions { uninterpreted_option, ..Default::default() });
        }
    }
    for oneof in &mut message.oneof_decl {
        if let Some(options) = oneof.options.take() {
            let uninterpreted_option = constraints(options.uninterpreted_option);
            oneof.options =
                (!uninterpreted_option.is_empty()).then_some(OneofOptions { uninterpreted_option });
        }
    }
    message.nested_type.iter_mut().for_each(strip_message);
    message.enum_type.iter_mut().for_each(strip_enum);
}

fn constraints(options: Vec<UninterpretedOption>) -> Vec<UninterpretedOption> {
    let is_constraint = |option: &UninterpretedOption| {
        option.name[0].name_part.trim_start_matches('.').starts_with("validate.")
    };
    options.into_iter().filter(is_constraint).collect()
}

fn strip_enum(of: &mut EnumDescriptorProto) {
    let options = of.options.take().unwrap_or_default();
    let named =
        |name: &str| options.uninterpreted_option.iter().any(|option| option.name[0].name_part == name);
    if named("allow_alias") {
        of.options = Some(EnumOptions { allow_alias: Some(true), ..Default::default() });
    }
    for value in &mut of.value {
        value.options = None;
    }
}

fn declare(
    types: &mut BTreeSet<String>,
    scope: &str,
    messages: &[DescriptorProto],
    enums: &[EnumDescriptorProto],
) {
    for of in enums {
        types.insert(format!("{scope}.{}", of.name()));
    }
    for message in messages {
        let name = format!("{scope}.{}", message.name());
        declare(types, &name, &message.nested_type, &message.enum_type);
        types.insert(name);
    }
}

/// Writes types in full. protox takes the first part of a name in the innermost scope that has one like it,
/// even if that is only a package; protoc goes on outwards until all of the name is found.
fn resolve(types: &BTreeSet<String>, scope: &str, message: &mut DescriptorProto) {
    let scope = format!("{scope}.{}", message.name());
    for field in &mut message.field {
        resolve_field(types, &scope, field);
    }
    for nested in &mut message.nested_type {
        resolve(types, &scope, nested);
    }
}

fn resolve_field(types: &BTreeSet<String>, scope: &str, field: &mut FieldDescriptorProto) {
    let Some(name) = field.type_name.as_mut().filter(|name| !name.starts_with('.')) else { return };
    let mut scopes = std::iter::successors(Some(scope), |scope| {
        (!scope.is_empty()).then(|| scope.rsplit_once('.').map_or("", |(outer, _)| outer))
    });
    let full = scopes.find_map(|scope| {
        let full = if scope.is_empty() { name.clone() } else { format!("{scope}.{name}") };
        types.contains(&full).then_some(full)
    });
    let full = full.unwrap_or_else(|| panic!("{scope}: {name} is not declared"));
    *name = format!(".{full}");
}
