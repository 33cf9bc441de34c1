//! Reading the folder.

use tower_common::view::XdsResource;
use tower_proto::envoy::envoy::{
    extensions::transport_sockets::tls::v3::{Secret, secret},
    service::runtime::v3::Runtime,
};

use super::*;

const SECRETS: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: files
  tls_certificate:
    certificate_chain: {filename: /etc/tls/tls.crt}
    private_key: {filename: /etc/tls/tls.key}
    watched_directory: {path: /etc/tls}
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: inline
  tls_certificate:
    certificate_chain: {inline_string: chain}
    private_key: {inline_string: hush}
"#;

const RUNTIME: &str = r#"
resources:
- "@type": type.googleapis.com/envoy.service.runtime.v3.Runtime
  name: limits
  layer: {overload: 0.5, feature: {enabled: true}}
- "@type": type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig
  name: router
  typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
"#;

fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Folder) {
    let temporary = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(temporary.path().join(name), text).unwrap();
    }
    let mut folder = Folder { path: temporary.path().to_owned(), ..Folder::default() };
    folder.read();
    (temporary, folder)
}

fn names(layer: &Layer) -> Vec<&str> {
    layer.keys().map(|name| &**name).collect()
}

#[test]
fn secrets_with_a_key_in_them_are_for_the_socket_only() {
    let (_files, folder) = folder(&[("secrets.yaml", SECRETS)]);
    assert_eq!(names(&folder.statics.secrets), ["files"]);
    assert_eq!(names(&folder.statics.socket_secrets), ["files", "inline"]);
    let read = &folder.files.values().next().unwrap().good[0];
    let secret: Secret = format::decode(read);
    let Some(secret::Type::TlsCertificate(certificate)) = secret.r#type else { panic!("{secret:?}") };
    assert_eq!(certificate.watched_directory.unwrap().path, "/etc/tls");
}

#[test]
fn what_is_secret_is_in_no_message() {
    let (_files, folder) = folder(&[("a.yaml", SECRETS), ("b.yaml", SECRETS)]);
    assert!(!format!("{folder:?}").contains("hush"));
    for bad in [SECRETS.replace("chain}", "chain"), SECRETS.replace("inline_string: hush", "hush: hush")] {
        let message = format::read(&format!("{bad}# PRIVATE KEY")).unwrap_err();
        assert!(!message.contains("hush"), "{message}");
    }
}

#[test]
fn layers_and_extensions_are_read() {
    let (_files, folder) = folder(&[("runtime.yaml", RUNTIME)]);
    assert_eq!(names(&folder.statics.runtimes), ["limits"]);
    assert_eq!(names(&folder.statics.extensions), ["router"]);
    let layer: Runtime = format::decode(&folder.files.values().next().unwrap().good[0]);
    assert_eq!(layer.layer.unwrap().fields.len(), 2);
}

#[test]
fn a_file_that_turns_bad_keeps_its_last_good_state_and_is_named() {
    let (files, mut folder) = folder(&[("a.yaml", RUNTIME)]);
    let path = files.path().join("a.yaml");
    let cases = [
        ("resources: [", "a.yaml: "),
        ("resources: [{name: x}]", "@type"),
        (&RUNTIME.replace("layer:", "layers:"), "layers"),
        (&RUNTIME.replace("name: limits", "name: ''"), "rtds has no name"),
        (&RUNTIME.replace("Router}", "Router, value: '?'}"), "no base64"),
        (&SECRETS.replace("tls_certificate", "other"), "other"),
    ];
    for (text, word) in cases {
        fs::write(&path, text).unwrap();
        folder.read();
        assert!(
            folder.problems.iter().any(|problem| problem.contains(word)),
            "{word}: {:?}",
            folder.problems
        );
        assert_eq!(names(&folder.statics.runtimes), ["limits"]);
    }
    fs::remove_file(&path).unwrap();
    folder.read();
    assert!(folder.problems.is_empty() && folder.statics.runtimes.is_empty());
}

/// envoyproxy/envoy#3987: the same name twice.
#[test]
fn b21_of_a_name_in_two_files_the_first_counts() {
    let other = RUNTIME.replace("0.5", "0.9");
    let (files, mut folder) = folder(&[("b.yaml", &other), ("a.yaml", RUNTIME)]);
    let first = folder.statics.runtimes["limits"].version;
    assert_eq!(folder.problems.len(), 2, "the layer and the extension: {:?}", folder.problems);
    folder.read();
    assert_eq!(folder.problems.len(), 2, "they stay as long as it is so");
    fs::remove_file(files.path().join("a.yaml")).unwrap();
    folder.read();
    assert!(folder.statics.runtimes["limits"].version != first && folder.problems.is_empty());
}

#[test]
fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
    let (files, mut folder) = folder(&[("a.yaml", RUNTIME)]);
    drop(files);
    folder.read();
    assert!(folder.problems[0].contains("cannot be read"));
    assert_eq!(names(&folder.statics.runtimes), ["limits"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_served_follows_both() {
    let (files, _) = folder(&[("a.yaml", RUNTIME)]);
    let (composed, receiver) = watch::channel(Composition::default());
    let (mut served, _problems) = merged(files.path(), receiver);
    assert_eq!(names(&served.borrow_and_update().runtimes), ["limits"]);
    composed.send(Composition { complete: true, ..Composition::default() }).unwrap();
    served.changed().await.unwrap();
    assert!(served.borrow_and_update().complete && served.borrow().extensions.contains_key("router"));
    fs::write(files.path().join("b.yaml"), SECRETS).unwrap();
    served.changed().await.unwrap();
    assert_eq!(names(&served.borrow_and_update().secrets), ["files"]);
    drop(composed);
    assert!(served.changed().await.is_err(), "streams end when nothing is composed any more");
}

#[test]
fn of_a_secret_that_a_release_has_as_well_the_file_counts() {
    let (_files, folder) = folder(&[("secrets.yaml", SECRETS)]);
    let of_release = |name: &str| XdsResource::from_body(name.into(), "a release".to_owned().into());
    let secrets = ["files", "inline", "inbound/web"].map(of_release);
    let secrets: Layer = Arc::new(secrets.map(|secret| (secret.name.clone(), secret)).into());
    let composition =
        Composition { socket_secrets: secrets.clone(), secrets: secrets.clone(), ..Composition::default() };
    let served = folder.statics.add_to(&composition);
    assert_eq!(names(&served.secrets), ["files", "inbound/web"], "the key is not to be seen by TCP");
    assert_eq!(names(&served.socket_secrets), ["files", "inbound/web", "inline"]);
    assert_eq!(served.secrets["files"], folder.statics.secrets["files"]);
    assert_eq!(served.socket_secrets["inbound/web"], secrets["inbound/web"]);
    let problems = folder.problems(&composition);
    assert_eq!(problems.len(), 2);
    assert!(problems[0].contains("\"files\" is in a release as well; the file counts"), "{problems:?}");
    assert!(folder.problems(&Composition::default()).is_empty());
}
