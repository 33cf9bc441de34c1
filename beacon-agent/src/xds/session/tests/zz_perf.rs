use crate::xds::{
    delta::Delta,
    kind::ResourceType,
    protocol::{Limits, Protocol},
    session::Session,
    sotw::Sotw,
    testing::{
        script::node,
        wire::{Memory, Say, Wire},
    },
};
use prost::Message;
use std::{sync::Arc, time::Duration};
use tower_common::{
    clock,
    view::{self, Composition, Layer, XdsResource},
};
use tower_proto::v1;
fn eps(n: &str, k: u32) -> XdsResource {
    let e: Vec<_> = (0..10)
        .map(|i| v1::Endpoint {
            address: format!("10.0.{}.{i}", k % 250),
            port: 80 + k,
            ..Default::default()
        })
        .collect();
    view::assignment::assignment(n, e.iter())
}
fn run<P: Wire>() {
    let mut c = Composition { complete: true, ..Default::default() };
    let set = |l: &mut Layer, r: XdsResource| {
        Arc::make_mut(l).insert(r.name.clone(), r);
    };
    let names: Vec<String> = (0..1000).map(|i| format!("service-{i:04}")).collect();
    for n in &names {
        set(&mut c.clusters, view::cluster::default_cluster(n));
        set(&mut c.assignments, eps(n, 0));
        set(&mut c.virtual_hosts, view::route::default_virtual_host(n, n));
    }
    let mut s = Session::<P>::new(node(), Limits::default(), &c);
    let mut mem = std::collections::BTreeMap::<ResourceType, Memory>::new();
    let now = clock::monotonic();
    let t = clock::monotonic();
    for (k, add) in [
        (ResourceType::Cluster, vec![]),
        (ResourceType::Endpoint, names.clone()),
        (ResourceType::Listener, vec![]),
        (ResourceType::Route, vec!["egress".to_owned()]),
    ] {
        let r = P::request(k, mem.entry(k).or_default(), Say { add, ..Say::default() });
        s.handle(r).unwrap();
    }
    let mut drain = |s: &mut Session<P>,
                     mem: &mut std::collections::BTreeMap<ResourceType, Memory>|
     -> (Duration, usize) {
        let mut d = Duration::ZERO;
        let mut bytes = 0;
        loop {
            let t = clock::monotonic();
            let Some(b) = s.next_batch(now) else {
                d += t.elapsed();
                break;
            };
            let k = b.kind;
            let nonce = b.nonce.to_string();
            let r = P::response(b, "x");
            bytes += r.encode_to_vec().len();
            d += t.elapsed();
            let m = mem.get_mut(&k).unwrap();
            m.nonce = nonce.clone();
            let r = P::request(k, m, Say { nonce: Some(nonce), ..Say::default() });
            let t = clock::monotonic();
            s.handle(r).unwrap();
            d += t.elapsed();
        }
        (d, bytes)
    };
    let (_, bytes) = drain(&mut s, &mut mem);
    eprintln!("{:?} initial {:?} {bytes} B", P::MODE, t.elapsed());
    let mut total = Duration::ZERO;
    let mut b = 0;
    for i in 0..500u32 {
        let n = &names[(i * 7 % 1000) as usize];
        set(&mut c.assignments, eps(n, i + 1));
        let t = clock::monotonic();
        s.update(&c);
        total += t.elapsed();
        let (d, x) = drain(&mut s, &mut mem);
        total += d;
        b += x;
    }
    eprintln!("{:?} endpoint change {:?} each, {} B", P::MODE, total / 500, b / 500);
    let mut total = Duration::ZERO;
    let mut b = 0;
    for i in 0..100u32 {
        let n = &names[(i * 7 % 1000) as usize];
        let mut r = view::route::default_virtual_host(n, n);
        r.body = [r.body.as_ref(), &[]].concat().into();
        r.version.0[0] = i as u8;
        set(&mut c.virtual_hosts, view::route::default_virtual_host(n, &format!("{n}-{i}")));
        let t = clock::monotonic();
        s.update(&c);
        total += t.elapsed();
        let (d, x) = drain(&mut s, &mut mem);
        total += d;
        b += x;
    }
    eprintln!("{:?} route change {:?} each, {} B", P::MODE, total / 100, b / 100);
}
#[test]
fn perf() {
    run::<Sotw>();
    run::<Delta>();
}
