use bytes::Bytes;

use super::*;
use crate::sources::model::{EndpointKey, Place, Position, SavedEndpoint, SavedEntry};

fn saved(index: u64) -> Saved {
    let key = |address: &str| EndpointKey {
        service: "web".into(),
        address: address.parse().unwrap(),
        port: 80,
        port_name: "http".into(),
    };
    let endpoint =
        |address: &str| SavedEndpoint { key: key(address), index: 7, body: Bytes::from_static(b"b") };
    Saved {
        position: Position { incarnation: "i1+1".to_owned(), index },
        places: vec![Place { path: "/d/web".into(), service: "web".into(), created: 1, changed: 2 }],
        entries: vec![SavedEntry {
            path: "/d/web/a".into(),
            place: "/d/web".into(),
            service: "web".into(),
            rank: 3,
            index: 4,
            claimed: vec![key("::1"), key("10.0.0.1")],
        }],
        endpoints: vec![endpoint("10.0.0.1"), endpoint("10.0.0.2"), endpoint("::1")],
        services: vec!["api".into(), "web".into()],
        names: vec![("h.example".into(), vec!["10.0.0.1".parse().unwrap()])],
    }
}

fn index(disk: &Disk) -> Option<u64> {
    disk.read().0.map(|saved| saved.position.index)
}

#[test]
fn what_was_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(&folder.path().join("sources"), "my.zk", "eu");
    assert_eq!(disk.read(), (None, Record::default()));
    disk.write_snapshot(&saved(9)).unwrap();
    let record: Record = serde_json::from_str(r#"{"next_id": 5, "holds": [], "left": []}"#).unwrap();
    disk.write_holds(&record).unwrap();
    assert_eq!(disk.read(), (Some(saved(9)), record));
    let another = Disk::new(&folder.path().join("sources"), "my.zk", "us");
    assert_eq!(another.read().0, None, "it is another mesh's");
}

#[test]
fn bad_files_are_set_aside_and_the_state_before_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path(), "zk", "");
    disk.write_snapshot(&saved(10)).unwrap();
    disk.write_snapshot(&saved(20)).unwrap();
    let file = fs::read(folder.path().join("zk.snapshot")).unwrap();
    for at in 0..file.len() {
        assert!(format::decode(&file[..at], "").is_err(), "cut at byte {at}");
        let mut damaged = file.clone();
        damaged[at] ^= 0x40;
        assert!(format::decode(&damaged, "").is_err(), "byte {at} damaged");
    }
    fs::write(folder.path().join("zk.snapshot"), &file[..file.len() / 2]).unwrap();
    fs::write(folder.path().join("zk.holds"), "{").unwrap();
    assert_eq!(index(&disk), Some(10));
    assert!(folder.path().join("zk.snapshot.bad").exists());
    assert!(folder.path().join("zk.holds.bad").exists());
}
