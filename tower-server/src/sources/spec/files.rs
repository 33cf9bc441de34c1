//! `file:///etc/tower/endpoints`: a folder of endpoint lists.

use std::path::PathBuf;

use super::{
    Fault,
    url::{self, Parts},
};

/// A folder of endpoint lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesSpec {
    /// The folder, an absolute path.
    pub folder: PathBuf,
}

impl FilesSpec {
    pub(super) fn interpret(parts: &Parts<'_>) -> Result<Self, Fault> {
        if !parts.authority.is_empty() {
            // Of what comes before an '@' it is better not to speak.
            let shown = parts.authority.rsplit('@').next().unwrap_or_default();
            let problem =
                format!("{shown:?} stands where a host would; an absolute path is written file:///PATH",);
            return Err(Fault::new("path", problem));
        }
        let path = parts.path.strip_suffix('/').unwrap_or(parts.path);
        let mut folder = PathBuf::from("/");
        for segment in url::segments(path)? {
            folder.push(url::decode_segment(segment)?);
        }
        Ok(Self { folder })
    }

    /// What makes it a source of its own.
    pub(super) fn identity(&self) -> String {
        format!("file://{}", self.folder.display())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SourceKind, parse};
    use super::*;

    #[test]
    fn folders_are_absolute() {
        let folder = |value: &str| match parse(value).expect(value).kind {
            SourceKind::Files(spec) => spec.folder,
            SourceKind::ZooKeeper(spec) => panic!("{spec:?}"),
        };
        assert_eq!(folder("file:///etc/tower/endpoints"), PathBuf::from("/etc/tower/endpoints"));
        assert_eq!(folder("file:///my%20files/?optional=true"), PathBuf::from("/my files"));
        for (value, problem) in [
            ("file://etc/tower", "\"etc\" stands where a host would"),
            ("file://etc", "\"etc\" stands where a host would"),
            ("file:///", "missing"),
            ("file://", "missing"),
            ("file:///a//b", "a segment is empty"),
            ("file:///a/../b", "\"..\" cannot be a segment"),
            ("file:///a%2fb", "\"a%2fb\" cannot be a segment"),
        ] {
            let error = parse(value).unwrap_err();
            assert_eq!(error.part, "path");
            assert!(error.problem.contains(problem), "{error}");
        }
    }
}
