//! Where the fields of a document stand in its text.

use std::collections::BTreeMap;

/// A place in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
}

/// Where each field of a text is, by its path: the value if it is a scalar, else the name before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The text's name, as in findings.
    pub file: String,
    places: BTreeMap<String, Place>,
}

impl Places {
    pub(super) fn new(file: &str) -> Self {
        Self { file: file.to_owned(), places: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, path: &str, place: Place) {
        self.places.insert(path.to_owned(), place);
    }

    /// Where a field is; if it is not written, where the nearest field around it is.
    pub fn find(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return Some(*place);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// The path of a field, or of an entry of a map, below another one.
pub(super) fn child(path: &str, name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if path.is_empty() {
        name.to_owned()
    } else if !name.is_empty() && name.chars().all(plain) {
        format!("{path}.{name}")
    } else {
        format!("{path}[{name:?}]")
    }
}

/// The path of an item of a list.
pub(super) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_where_what_is_around_it_is() {
        let mut places = Places::new("web.yaml");
        places.insert("spec.callers.routes[0]", Place { line: 3, column: 5 });
        assert_eq!(places.find("spec.callers.routes[0].timeouts.request").unwrap().line, 3);
        assert_eq!(places.find("spec.callers.routes[1]"), None);
        assert_eq!(places.find(""), None);
    }

    #[test]
    fn names_that_are_no_words_are_quoted() {
        assert_eq!(child("", "spec"), "spec");
        assert_eq!(child("spec", "tiers"), "spec.tiers");
        assert_eq!(child("a", "b.c\n"), r#"a["b.c\n"]"#);
        assert_eq!(child("a", ""), r#"a[""]"#);
        assert_eq!(item("a", 2), "a[2]");
    }
}
