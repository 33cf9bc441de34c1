use tower_proto::v1;

use super::{
    inner::{INLINE, MAX_INLINE_BYTES},
    store::Store,
    *,
};
use crate::event_log::{EventLog, MAX_ENTRY_BYTES, ReadError, Target};

async fn open(data_dir: &Path) -> Result<EventLog, OpenError> {
    EventLog::open(&Target::Embedded, data_dir, Options::default()).await
}

fn entry(id: &str, reason: &str) -> v1::LogEntry {
    v1::LogEntry { command_id: id.to_owned(), reason: reason.to_owned(), ..Default::default() }
}

#[tokio::test]
async fn it_is_open_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await.unwrap();
    let error = open(dir.path()).await.err().unwrap();
    assert!(matches!(&error, OpenError::Locked { path } if path.ends_with("/log")), "{error}");
    drop(log);
    open(dir.path()).await.unwrap();
}

#[tokio::test]
async fn entries_of_any_size_are_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await.unwrap();
    for (at, size) in
        [(0, 10), (1, MAX_INLINE_BYTES - 200), (2, MAX_INLINE_BYTES), (3, MAX_ENTRY_BYTES - 200)]
    {
        log.append(at, entry(&format!("c{at}"), &"x".repeat(size)), &[]).await.unwrap();
    }
    let before = log.read(1, 10).await.unwrap();
    let incarnation = log.incarnation().to_owned();
    drop(log);
    let log = open(dir.path()).await.unwrap();
    assert_eq!(log.incarnation(), incarnation);
    assert_eq!(log.read(1, 10).await.unwrap(), before);
    assert_eq!(before.len(), 4);
}

#[tokio::test]
async fn a_command_id_that_a_crash_left_out_is_made_up_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await.unwrap();
    log.append(0, entry("a", ""), &[]).await.unwrap();
    let sealed = Sealed::new(entry("b", ""), &log.link(1).await.unwrap().unwrap());
    drop(log);
    let store = Store::open(&dir.path().join("log/sled")).unwrap();
    store.set_entry(2, &[&[INLINE], &sealed.bytes[..]].concat()).unwrap();
    store.sync().unwrap();
    drop(store);
    let log = open(dir.path()).await.unwrap();
    assert_eq!(log.append(2, entry("b", ""), &[]).await, Ok(2));
    assert_eq!(log.append(2, entry("c", ""), &[]).await, Ok(3));
}

#[tokio::test]
async fn damage_is_named_and_what_is_before_it_stands() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await.unwrap();
    for at in 0..4 {
        log.append(at, entry(&at.to_string(), ""), &[]).await.unwrap();
    }
    drop(log);
    let store = Store::open(&dir.path().join("log/sled")).unwrap();
    store.set_entry(3, b"\x00\xff\xff").unwrap();
    store.sync().unwrap();
    drop(store);
    let log = open(dir.path()).await.unwrap();
    assert_eq!(log.read(1, 10).await.unwrap().len(), 2);
    let error = log.read(3, 10).await.unwrap_err();
    assert!(
        matches!(&error, ReadError::Entry { index: 3, path, .. } if path.ends_with("/log, entry 3")),
        "{error}"
    );
    assert_eq!(log.append(2, entry("new", ""), &[]).await, Err(AppendError::Conflict { head: 4 }));
}
