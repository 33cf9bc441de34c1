//! Documents from files.

use std::{fs, io::Read, path::Path};

use tower_common::{
    api::MAX_DOCUMENT_BYTES,
    document::{self, Owner},
};

use crate::failure::{Exit, Failure};

/// A document that has been read, and not yet understood.
pub(super) struct File {
    /// What it is called.
    pub(super) name: String,
    /// What is in it.
    pub(super) text: String,
}

/// Reads a file, or standard input if it is called `-`.
pub(super) fn read(path: &Path) -> Result<File, Failure> {
    let (name, source): (_, Box<dyn Read>) = if path == "-" {
        ("stdin".to_owned(), Box::new(std::io::stdin()))
    } else {
        let file =
            fs::File::open(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        (path.display().to_string(), Box::new(file))
    };
    let mut bytes = Vec::new();
    source
        .take(MAX_DOCUMENT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(Failure::new(Exit::Invalid, format!("{name}: larger than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::new(Exit::Invalid, format!("{name}: not UTF-8: {error}")))?;
    Ok(File { name, text })
}

/// The service that a document is about.
pub(super) fn service_of(file: &File) -> Result<String, Failure> {
    let parsed = document::parse(&file.name, &file.text, Owner::Service).map_err(|findings| {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Invalid, lines.join("\n"))
    })?;
    Ok(parsed.document.metadata.name)
}
