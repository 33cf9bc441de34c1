//! Appending, and finding out whether it was done.
//!
//! A `multi` that got no answer may have been done, may be done yet, or may never be. Doing it again is safe: it
//! replaces one version of the head, and creates one command id, so at most one of both attempts is done. When
//! the server says that the head is another one, the command id tells whose.

use std::time::Duration;

use prost::Message;
use tokio::time::{Instant, sleep};
use tower_proto::v1;
use zookeeper_client::{Client, CreateMode, Error, MultiWriteError, MultiWriteResult};

use super::{
    HEAD, ZooKeeper, is_answer, parent,
    requests::{Failure, answer},
    shared::Known,
};
use crate::event_log::{
    AppendError,
    entry::{Link, Sealed},
    paths,
};

/// How long it is tried to find out what became of an entry.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What one attempt found out.
enum Outcome {
    /// The last entry has this index.
    Appended(u64),
    /// The head is another one than was thought, and was read again.
    Outdated,
}

impl ZooKeeper {
    /// Appends all of these after `after`, or none.
    pub(in crate::event_log) async fn append(
        &self,
        after: Link,
        entries: Vec<Sealed>,
    ) -> Result<u64, AppendError> {
        let Some(last) = entries.last() else { return Ok(after.index) };
        let end = Instant::now() + PATIENCE;
        let mut doubt: Option<String> = None;
        loop {
            if let Some(why) = self.shared.refused() {
                return Err(doubt.map_or(AppendError::Refused(why), AppendError::Unknown));
            }
            match self.attempt(&after, &entries, doubt.is_some()).await {
                Ok(Outcome::Appended(index)) => return Ok(index),
                Ok(Outcome::Outdated) => {
                    // In this order: once the head is another one, no attempt that is still on its way can be
                    // done any more, so what is not there then never will be.
                    let head = self.known().head.index;
                    match self.index_of(&last.command_id).await {
                        Ok(Some(index)) => return Ok(index),
                        Ok(None) if head != after.index => return Err(AppendError::Conflict { head }),
                        Ok(None) if Instant::now() >= end => {
                            let why = "its znodes come and go".to_owned();
                            return Err(doubt.map_or(AppendError::Unavailable(why), AppendError::Unknown));
                        }
                        Ok(None) => {}
                        Err(failure) => self.note(failure, &mut doubt, end)?,
                    }
                }
                Err(failure) => self.note(failure, &mut doubt, end)?,
            }
            if doubt.is_some() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Whether to try again after a failure, and what is in doubt from then on.
    fn note(&self, failure: Failure, doubt: &mut Option<String>, end: Instant) -> Result<(), AppendError> {
        let late = Instant::now() >= end;
        match (failure, doubt.clone()) {
            (_, Some(why)) if late || self.shared.refused().is_some() => Err(AppendError::Unknown(why)),
            (Failure::Answer(why), None) if self.shared.refused().is_some() => Err(AppendError::Refused(why)),
            (Failure::NotMade(why) | Failure::Answer(why), None) => Err(AppendError::Unavailable(why)),
            (Failure::Doubt(why), None) => {
                *doubt = Some(why);
                Ok(())
            }
            (_, Some(_)) => Ok(()),
        }
    }

    async fn attempt(&self, after: &Link, entries: &[Sealed], again: bool) -> Result<Outcome, Failure> {
        let known = self.known();
        if again || known.head.index != after.index {
            self.read_head().await?;
            let known = self.known();
            if known.head.index != after.index {
                return Ok(Outcome::Outdated);
            }
        }
        let known = self.known();
        if known.head.hash != after.previous() {
            let problem = format!("entry {} is another one than the one that was read", after.index);
            return Err(Failure::Answer(self.shared.refuse(problem)));
        }
        let Some(last) = entries.last() else { return Ok(Outcome::Appended(after.index)) };
        let head = v1::LogHead { index: last.index, hash: last.link().previous(), ..known.head.clone() };
        let written = self.write(&head, known.version, entries).await?;
        match written {
            Ok(version) => {
                self.probe.at("appended");
                // What this refuses is no matter of this entry, and is logged.
                let _ = self.shared.learn(Known { head, version });
                Ok(Outcome::Appended(last.index))
            }
            Err((0, Error::BadVersion)) => {
                self.read_head().await?;
                Ok(Outcome::Outdated)
            }
            Err((0, Error::NoNode)) => {
                Err(Failure::Answer(self.shared.refuse(format!("{} is gone", self.path(HEAD)))))
            }
            Err((at, Error::NoNode)) => {
                self.shared.make(&parent(&self.created(entries, at))).await?;
                Ok(Outcome::Outdated)
            }
            Err((at, Error::NodeExists)) if at % 2 == 1 => {
                let path = self.created(entries, at);
                let problem = format!("{path} is there, and is none of this log: somebody has written it");
                Err(Failure::Answer(self.shared.refuse(problem)))
            }
            Err((_, Error::NodeExists)) => Ok(Outcome::Outdated),
            Err((at, error)) => Err(answer(&self.created(entries, at), &error)),
        }
    }

    /// What an operation of the `multi` touches: the head, then each entry and its command id.
    fn created(&self, entries: &[Sealed], at: usize) -> String {
        match at.checked_sub(1).and_then(|at| Some((entries.get(at / 2)?, at % 2))) {
            None => self.path(HEAD),
            Some((entry, 0)) => self.path(&paths::entry(entry.index)),
            Some((entry, _)) => self.path(&paths::id(&entry.command_id)),
        }
    }

    /// The `multi`. Tells the version of the new head, or which operation was refused and why.
    async fn write(
        &self,
        head: &v1::LogHead,
        version: i32,
        entries: &[Sealed],
    ) -> Result<Result<i32, (usize, Error)>, Failure> {
        let data = head.encode_to_vec();
        let options = self.shared.options(CreateMode::Persistent);
        let root = self.path(HEAD);
        let creates: Vec<(String, Vec<u8>)> = entries
            .iter()
            .flat_map(|entry| {
                let index = entry.index.to_string().into_bytes();
                [
                    (self.path(&paths::entry(entry.index)), entry.bytes.to_vec()),
                    (self.path(&paths::id(&entry.command_id)), index),
                ]
            })
            .collect();
        self.probe.at("append");
        let request = async |client: Client| {
            let mut writer = client.new_multi_writer();
            writer.add_set_data(&root, &data, Some(version))?;
            for (path, data) in &creates {
                writer.add_create(path, data, &options)?;
            }
            match writer.commit().await {
                Ok(results) => match results.first() {
                    Some(MultiWriteResult::SetData { stat }) => Ok(Ok(stat.version)),
                    _ => Err(Error::UnexpectedError("no answer to this question".to_owned())),
                },
                Err(MultiWriteError::OperationFailed { index, source }) if is_answer(&source) => {
                    Ok(Err((index, source)))
                }
                Err(MultiWriteError::OperationFailed { source, .. }) => Err(source),
                Err(MultiWriteError::RequestFailed { source }) => Err(source),
            }
        };
        match self.shared.request(request).await? {
            Ok(written) => Ok(written),
            Err(error) => Err(Failure::Answer(error.to_string())),
        }
    }

    /// Reads the head, as the ensemble knows it now.
    pub(in crate::event_log) async fn read_head(&self) -> Result<(), Failure> {
        self.shared.sync().await?;
        let path = self.path(HEAD);
        let Some((data, version)) = self.shared.data_and_version(&path).await? else {
            return Err(Failure::Answer(self.shared.refuse(format!("{path} is gone"))));
        };
        let head = v1::LogHead::decode(&data[..])
            .map_err(|error| Failure::Answer(self.shared.refuse(format!("{path} is damaged: {error}"))))?;
        self.shared.learn(Known { head, version }).map_err(Failure::Answer)
    }
}
