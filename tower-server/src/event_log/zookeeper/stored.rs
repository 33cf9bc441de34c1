//! Bytes of any size under a path: in its znode, or in chunks below it. The znode comes first and says how many
//! there will be, the chunks follow in order; so the bytes are whole when the last chunk is there. What is read
//! is compared with its hash by whoever asks.

use bytes::{Bytes, BytesMut};
use prost::Message;
use tower_proto::v1;

use super::ZooKeeper;
use crate::event_log::error::BackendError;

/// Up to here they are in the znode itself.
const MAX_INLINE_BYTES: usize = 64 << 10;

/// A request has at most a megabyte.
const CHUNK_BYTES: usize = 512 << 10;

/// So many chunks are read in a request.
const CHUNKS: usize = 8;

impl ZooKeeper {
    /// Writes what is not there yet. Under one path there are always the same bytes.
    pub(in crate::event_log) async fn put(&self, path: String, bytes: Bytes) -> Result<(), BackendError> {
        let at = self.path(&path);
        if bytes.len() <= MAX_INLINE_BYTES {
            if self.shared.data(&at).await?.is_some() {
                return Ok(());
            }
            let stored = v1::StoredBytes { inline: bytes, ..Default::default() };
            self.probe.at("bytes");
            return Ok(self.shared.create(&at, stored.encode_to_vec()).await?);
        }
        let announced = v1::StoredBytes {
            length: bytes.len() as u64,
            chunk: u32::try_from(CHUNK_BYTES).unwrap_or(u32::MAX),
            ..Default::default()
        };
        let count = bytes.len().div_ceil(CHUNK_BYTES);
        let there = match self.shared.data(&at).await? {
            Some(data) if data == announced.encode_to_vec() => self.shared.children(&at).await?,
            Some(_) => return Err(BackendError::Failed(format!("{at} is there, and is something else"))),
            None => {
                self.probe.at("announcement of chunks");
                self.shared.create(&at, announced.encode_to_vec()).await?;
                Vec::new()
            }
        };
        for number in 0..count {
            let name = chunk(number);
            if there.binary_search(&name).is_err() {
                let end = bytes.len().min((number + 1) * CHUNK_BYTES);
                self.probe.at("chunk");
                let data = bytes[number * CHUNK_BYTES..end].to_vec();
                self.shared.create(&format!("{at}/{name}"), data).await?;
            }
        }
        Ok(())
    }

    /// At most so many bytes, if they are there: fewer than there should be, if some are missing.
    pub(in crate::event_log) async fn get(
        &self,
        path: String,
        limit: usize,
    ) -> Result<Option<Bytes>, BackendError> {
        let at = self.path(&path);
        let mut data = self.shared.data(&at).await?;
        if data.is_none() {
            // A server that lags may not have what an entry refers to.
            self.shared.sync().await?;
            data = self.shared.data(&at).await?;
        }
        let Some(data) = data else { return Ok(None) };
        let stored = v1::StoredBytes::decode(Bytes::from(data))
            .map_err(|error| BackendError::Failed(format!("{at} is damaged: {error}")))?;
        if stored.length == 0 {
            return Ok(Some(stored.inline));
        }
        let length = usize::try_from(stored.length).ok().filter(|length| *length <= limit);
        let size = usize::try_from(stored.chunk).ok().filter(|size| (1..=CHUNK_BYTES).contains(size));
        let (Some(length), Some(size)) = (length, size) else {
            let v1::StoredBytes { length, chunk, .. } = stored;
            let problem = format!("{at} announces {length} bytes in chunks of {chunk}; {limit} are allowed");
            return Err(BackendError::Failed(problem));
        };
        let paths: Vec<String> =
            (0..length.div_ceil(size)).map(|number| format!("{at}/{}", chunk(number))).collect();
        let mut bytes = BytesMut::with_capacity(length);
        for batch in paths.chunks(CHUNKS) {
            for data in self.shared.read(batch).await?.into_iter().flatten() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(Some(bytes.freeze()))
    }

    pub(in crate::event_log) async fn list(&self, folder: String) -> Result<Vec<String>, BackendError> {
        Ok(self.shared.children(&self.path(&folder)).await?)
    }

    pub(in crate::event_log) async fn delete(&self, path: String) -> Result<(), BackendError> {
        let at = self.path(&path);
        for name in self.shared.children(&at).await? {
            self.probe.at("deletion of a chunk");
            self.shared.delete(&format!("{at}/{name}")).await?;
        }
        self.probe.at("deletion of bytes");
        Ok(self.shared.delete(&at).await?)
    }
}

/// The name of a chunk. In the order of names chunks are in their own.
fn chunk(number: usize) -> String {
    format!("{number:05}")
}
