//! Which znode is a service's directory, which a member, and what its path says.
//!
//! A layout is a path with placeholders, such as `/discovery/{az}/{service}/prod`: a znode whose path
//! matches it is a service's directory, the children of that are members. Each placeholder but `{service}`
//! is a label of the endpoints below it.

use std::{collections::BTreeSet, fmt};

/// The placeholder that names the service.
const SERVICE: &str = "service";

/// Where services and members are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: String,
    below: Vec<Segment>,
}

/// One segment of a layout, below its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// This name.
    Literal(String),
    /// Any name: the service's.
    Service,
    /// Any name: the value of this label.
    Label(String),
}

/// Why a path is not a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::sources) enum LayoutError {
    /// No `{service}`.
    #[error("no segment is {{service}}, so nothing says which service a member belongs to")]
    NoService,
    /// The same placeholder twice.
    #[error("{{{0}}} stands there twice")]
    Twice(String),
    /// A placeholder's name is not one.
    #[error("{{{0}}} is not a placeholder: its name is made of a-z, A-Z, 0-9, '_', '-'")]
    BadName(String),
    /// The first segment is a placeholder.
    #[error(
        "the first segment must be a fixed name: the root of an ensemble has no identity that would show a wrong or restored one"
    )]
    NoRoot,
}

/// What a path is, by the layout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Spot<'a> {
    /// The root, or between it and the directories of services.
    Above,
    /// The directory of a service.
    Place(Facts<'a>),
    /// A child of one. Whether it is a member is up to the format.
    Member {
        /// The path of the service's directory.
        place: &'a str,
        /// The last segment.
        name: &'a str,
        /// What the directory's path says.
        facts: Facts<'a>,
    },
    /// Not in the layout.
    Elsewhere,
}

/// What a path says of the endpoints below it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Facts<'a> {
    pub(super) service: &'a str,
    pub(super) labels: Vec<(&'a str, &'a str)>,
}

impl Layout {
    /// From the segments of a path: a name, or as an `Err` the name of a placeholder.
    pub(in crate::sources) fn new(segments: Vec<Result<String, String>>) -> Result<Self, LayoutError> {
        let mut root = String::new();
        let mut below = Vec::new();
        let mut seen = BTreeSet::new();
        for segment in segments {
            match segment {
                Ok(name) if below.is_empty() => root = format!("{root}/{name}"),
                Ok(name) => below.push(Segment::Literal(name)),
                Err(name) => {
                    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                    if name.is_empty() || !name.chars().all(allowed) {
                        return Err(LayoutError::BadName(name));
                    }
                    if !seen.insert(name.clone()) {
                        return Err(LayoutError::Twice(name));
                    }
                    below.push(if name == SERVICE { Segment::Service } else { Segment::Label(name) });
                }
            }
        }
        if !seen.contains(SERVICE) {
            return Err(LayoutError::NoService);
        }
        if root.is_empty() {
            return Err(LayoutError::NoRoot);
        }
        Ok(Self { root, below })
    }

    /// The longest path that all the others have in common: what is watched.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// The segments below the root.
    pub(super) fn below(&self) -> &[Segment] {
        &self.below
    }

    /// What a path is.
    pub(super) fn locate<'a>(&'a self, path: &'a str) -> Spot<'a> {
        let rest = match path.strip_prefix(self.root.as_str()) {
            Some("") => return Spot::Above,
            Some(rest) => match rest.strip_prefix('/') {
                Some(rest) => rest,
                None => return Spot::Elsewhere,
            },
            None => return Spot::Elsewhere,
        };
        let mut facts = Facts { service: "", labels: Vec::new() };
        let mut pattern = self.below.iter();
        let mut names = rest.split('/');
        for name in names.by_ref() {
            match pattern.next() {
                Some(Segment::Literal(literal)) if literal == name => {}
                Some(Segment::Literal(_)) => return Spot::Elsewhere,
                Some(Segment::Service) => facts.service = name,
                Some(Segment::Label(label)) => facts.labels.push((label, name)),
                None => {
                    let place = &path[..path.len() - name.len() - 1];
                    let deeper = names.next().is_some();
                    return if deeper { Spot::Elsewhere } else { Spot::Member { place, name, facts } };
                }
            }
        }
        if pattern.next().is_some() { Spot::Above } else { Spot::Place(facts) }
    }

    /// The znodes to read when something happened at `path`: itself, if it is in the layout, or else its
    /// parent, if that is above the members, because its position moves.
    pub(super) fn concerned<'a>(&self, path: &'a str) -> Option<&'a str> {
        if !matches!(self.locate(path), Spot::Elsewhere) {
            return Some(path);
        }
        let parent = parent(path)?;
        matches!(self.locate(parent), Spot::Above | Spot::Place(_)).then_some(parent)
    }
}

/// The path of the parent; none of a top-level znode.
pub(super) fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.root)?;
        for segment in &self.below {
            match segment {
                Segment::Literal(name) => write!(f, "/{name}")?,
                Segment::Service => write!(f, "/{{{SERVICE}}}")?,
                Segment::Label(name) => write!(f, "/{{{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(path: &str) -> Result<Layout, LayoutError> {
        let segment = |text: &str| match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Err(name.to_owned()),
            None => Ok(text.to_owned()),
        };
        Layout::new(path[1..].split('/').map(segment).collect())
    }

    #[test]
    fn the_root_is_the_longest_fixed_prefix() {
        for (path, root) in [
            ("/discovery/{service}/prod", "/discovery"),
            ("/a/b/{service}", "/a/b"),
            ("/a/{az}/{service}", "/a"),
        ] {
            let layout = layout(path).unwrap();
            assert_eq!(layout.root(), root);
            assert_eq!(layout.to_string(), path);
        }
    }

    #[test]
    fn paths_are_found_in_the_layout() {
        let layout = layout("/d/{az}/x/{service}/prod").unwrap();
        let facts = || Facts { service: "web", labels: vec![("az", "a")] };
        for (path, spot) in [
            ("/d", Spot::Above),
            ("/d/a", Spot::Above),
            ("/d/a/x", Spot::Above),
            ("/d/a/x/web", Spot::Above),
            ("/d/a/x/web/prod", Spot::Place(facts())),
            ("/d/a/x/web/prod/m", Spot::Member { place: "/d/a/x/web/prod", name: "m", facts: facts() }),
            ("/d/a/x/web/prod/m/n", Spot::Elsewhere),
            ("/d/a/y", Spot::Elsewhere),
            ("/d/a/x/web/test", Spot::Elsewhere),
            ("/dd/a", Spot::Elsewhere),
            ("/", Spot::Elsewhere),
            ("", Spot::Elsewhere),
        ] {
            assert_eq!(layout.locate(path), spot, "{path}");
        }
    }

    #[test]
    fn an_event_off_the_layout_concerns_its_parent_at_most() {
        let layout = layout("/d/{service}/prod").unwrap();
        for (path, concerned) in [
            ("/d/web/prod/m", Some("/d/web/prod/m")),
            ("/d/web/test", Some("/d/web")),
            ("/d/web/test/m", None),
            ("/d/web/prod/m/lock", None),
            ("/other", None),
        ] {
            assert_eq!(layout.concerned(path), concerned, "{path}");
        }
    }

    #[test]
    fn unusable_layouts_are_refused() {
        assert_eq!(layout("/d/{az}"), Err(LayoutError::NoService));
        assert_eq!(layout("/d/{service}/{service}"), Err(LayoutError::Twice("service".to_owned())));
        assert_eq!(layout("/d/{service}/{}"), Err(LayoutError::BadName(String::new())));
        assert_eq!(layout("/d/{service}/{a b}"), Err(LayoutError::BadName("a b".to_owned())));
        assert_eq!(layout("/{service}"), Err(LayoutError::NoRoot));
    }
}
