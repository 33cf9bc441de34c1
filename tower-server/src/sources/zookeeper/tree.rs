//! Reading what is registered: all of it, level by level, or what changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zookeeper_client::Stat;

use super::{
    interpret::{self, MAX_DIRECTORIES},
    layout::{Layout, Segment, Spot, parent},
    reader::{Found, ReadError, Reader, Znode},
};
use crate::sources::{
    format::Format,
    model::{Change, Load, MAX_MEMBERS},
};

/// So many znodes are read in one go, with all above them.
const ZNODES_AT_ONCE: usize = 250;

/// What is read, and how.
pub(super) struct Tree<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) layout: &'a Layout,
    pub(super) format: Format,
}

/// What came of reading some znodes again.
pub(super) enum Reread {
    Changes {
        changes: Vec<Change>,
        /// The highest position seen.
        index: u64,
    },
    /// The root is gone, or another one: only a complete reading can tell what to make of that.
    AnotherTree,
}

impl Tree<'_> {
    /// Everything.
    pub(super) async fn load(&self) -> Result<Load, ReadError> {
        let root = self.layout.root();
        // A follower may lag behind what another one has shown us already.
        self.reader.sync(root).await?;
        let mut load = Load::default();
        let stat = match self.reader.data(&[root]).await?.pop() {
            Some(Found::There(Znode { stat, .. })) => stat,
            Some(Found::Denied) => return Err(ReadError::Denied { path: root.to_owned() }),
            Some(Found::Missing) | None => {
                load.warning = Some(format!("root {root} is gone, or was never made"));
                return Ok(load);
            }
        };
        load.incarnation = Some(interpret::incarnation(&stat));
        load.index = interpret::position(&stat);
        let mut level = vec![(root.to_owned(), stat)];
        for segment in self.layout.below() {
            level = self.descend(&level, segment, &mut load).await?;
        }
        let members = self.places(level, &mut load).await?;
        self.members(&members, &mut load).await?;
        Ok(load)
    }

    /// The directories one level down, with their stats.
    async fn descend(
        &self,
        level: &[(String, Stat)],
        segment: &Segment,
        load: &mut Load,
    ) -> Result<Vec<(String, Stat)>, ReadError> {
        let paths: Vec<String> = match segment {
            Segment::Literal(name) => level.iter().map(|(path, _)| format!("{path}/{name}")).collect(),
            Segment::Service | Segment::Label(_) => {
                let listed = self.list(level, MAX_DIRECTORIES, load).await?;
                listed
                    .iter()
                    .flat_map(|(path, _, children)| children.iter().map(move |name| format!("{path}/{name}")))
                    .collect()
            }
        };
        let read = self.reader.data(&borrowed(&paths)).await?;
        let parents_have_children = level.iter().any(|(_, stat)| stat.num_children > 0);
        let mut next = Vec::with_capacity(paths.len());
        for (path, found) in paths.into_iter().zip(read) {
            match found {
                Found::There(Znode { stat, .. }) => {
                    load.index = load.index.max(interpret::position(&stat));
                    next.push((path, stat));
                }
                Found::Denied => {
                    load.partial = true;
                    load.kept.push(interpret::denied(&path));
                }
                // It was never there, or it went since its parent was read.
                Found::Missing => load.partial |= parents_have_children,
            }
        }
        Ok(next)
    }

    /// The children of directories that may be listed, with a stat of the same moment.
    async fn list(
        &self,
        level: &[(String, Stat)],
        limit: usize,
        load: &mut Load,
    ) -> Result<Vec<(String, Stat, Vec<String>)>, ReadError> {
        let mut allowed = Vec::with_capacity(level.len());
        for (path, stat) in level {
            match interpret::check_children(path, stat, limit) {
                Ok(()) => allowed.push(path.as_str()),
                Err(problem) => load.kept.push(problem),
            }
        }
        let mut listed = Vec::with_capacity(allowed.len());
        for (path, found) in allowed.iter().zip(self.reader.children(&allowed).await?) {
            match found {
                Found::There((stat, children)) => {
                    load.index = load.index.max(interpret::position(&stat));
                    listed.push(((*path).to_owned(), stat, children));
                }
                Found::Denied => {
                    load.partial = true;
                    load.kept.push(interpret::denied(path));
                }
                // It went since it was listed itself. The event of that is on its way.
                Found::Missing => load.partial = true,
            }
        }
        Ok(listed)
    }

    /// Notes the directories of services, and returns the paths of their members.
    async fn places(&self, level: Vec<(String, Stat)>, load: &mut Load) -> Result<Vec<String>, ReadError> {
        let mut members = Vec::new();
        for (path, stat, children) in self.list(&level, MAX_MEMBERS, load).await? {
            let Spot::Place(facts) = self.layout.locate(&path) else { continue };
            match interpret::place(&path, &facts, &stat) {
                Ok(place) => load.places.push(place),
                Err(problem) => {
                    load.kept.push(problem);
                    continue;
                }
            }
            let names = children.iter().filter(|name| self.format.is_member(name));
            members.extend(names.map(|name| format!("{path}/{name}")));
        }
        Ok(members)
    }

    async fn members(&self, paths: &[String], load: &mut Load) -> Result<(), ReadError> {
        for (path, found) in paths.iter().zip(self.reader.data(&borrowed(paths)).await?) {
            match found {
                Found::There(znode) => {
                    // Its position counts, whatever its contents are worth.
                    load.index = load.index.max(interpret::zxid(znode.stat.mzxid));
                    match self.member(path, &znode) {
                        Some(Change::Entry(entry)) => load.entries.push(entry),
                        Some(Change::Kept(problem)) => load.kept.push(problem),
                        Some(Change::Place(_) | Change::Gone { .. }) | None => {}
                    }
                }
                Found::Denied => {
                    load.partial = true;
                    load.kept.push(interpret::denied(path));
                }
                Found::Missing => load.partial = true,
            }
        }
        Ok(())
    }

    fn member(&self, path: &str, znode: &Znode) -> Option<Change> {
        let Spot::Member { place, name, facts } = self.layout.locate(path) else { return None };
        let entry = interpret::member(self.format, path, (place, name, &facts), &znode.data, &znode.stat);
        Some(entry.map_or_else(Change::Kept, Change::Entry))
    }

    /// What is at these paths now, if the tree is still the one of this incarnation.
    pub(super) async fn reread(
        &self,
        paths: &BTreeSet<String>,
        incarnation: &str,
    ) -> Result<Reread, ReadError> {
        let wanted: Vec<&str> = paths
            .iter()
            .map(String::as_str)
            .filter(|path| match self.layout.locate(path) {
                Spot::Member { name, .. } => self.format.is_member(name),
                Spot::Above | Spot::Place(_) => true,
                Spot::Elsewhere => false,
            })
            .collect();
        let (mut changes, mut index) = (Vec::with_capacity(wanted.len()), 0);
        for some in wanted.chunks(ZNODES_AT_ONCE) {
            // What is above is read in the same request: the position of a parent is one at which a child
            // that is not there any more was certainly gone, and the root tells whose children these are.
            let batch: Vec<&str> = some
                .iter()
                .flat_map(|path| self.with_ancestors(path))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect();
            let read = self.reader.data(&batch).await?;
            let known: BTreeMap<&str, &Stat> = batch
                .iter()
                .zip(&read)
                .filter_map(|(path, found)| match found {
                    Found::There(znode) => Some((*path, &znode.stat)),
                    Found::Missing | Found::Denied => None,
                })
                .collect();
            let root = known.get(self.layout.root());
            if root.is_none_or(|root| interpret::incarnation(root) != incarnation) {
                return Ok(Reread::AnotherTree);
            }
            for (path, found) in batch.iter().zip(&read) {
                let (change, seen) = self.change(path, found, &known);
                changes.extend(change);
                index = index.max(seen);
            }
        }
        Ok(Reread::Changes { changes, index })
    }

    fn change(
        &self,
        path: &str,
        found: &Found<Znode>,
        known: &BTreeMap<&str, &Stat>,
    ) -> (Option<Change>, u64) {
        match (found, self.layout.locate(path)) {
            (Found::Denied, _) => (Some(Change::Kept(interpret::denied(path))), 0),
            (Found::There(znode), Spot::Member { .. }) => {
                (self.member(path, znode), interpret::zxid(znode.stat.mzxid))
            }
            (Found::There(znode), Spot::Place(facts)) => {
                let place = interpret::place(path, &facts, &znode.stat);
                (Some(place.map_or_else(Change::Kept, Change::Place)), interpret::position(&znode.stat))
            }
            (Found::There(znode), Spot::Above | Spot::Elsewhere) => (None, interpret::position(&znode.stat)),
            (Found::Missing, _) => {
                let above = self.with_ancestors(path).skip(1).find_map(|path| known.get(path));
                let index = above.map_or(0, |stat| interpret::zxid(stat.pzxid));
                (Some(Change::Gone { path: Arc::from(path), index }), 0)
            }
        }
    }

    /// The path, its parent, and so on to the root.
    fn with_ancestors<'p>(&self, path: &'p str) -> impl Iterator<Item = &'p str> {
        let root = self.layout.root().len();
        std::iter::successors(Some(path), move |path| parent(path).filter(|parent| parent.len() >= root))
    }
}

fn borrowed(paths: &[String]) -> Vec<&str> {
    paths.iter().map(String::as_str).collect()
}
