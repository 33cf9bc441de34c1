//! One endpoint comes, and all clients are to have it: Tower beside others that could do it, one after the other
//! in each run, with as many clients of the same make.
//!
//! - [`program`]: the others are programs in Go, in `bench/peers`
//! - [`clients`], [`protocol`], [`subscriber`]: their clients, in one thread as the simulated Beacons are
//! - [`table`]: what was measured, as a page's section and as an object

pub mod clients;
pub mod program;
pub mod protocol;
pub mod subscriber;
pub mod table;

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use anyhow::{Context, Result, ensure};
use clap::Args;
use tokio::time::sleep;

use self::{
    clients::Clients,
    program::{Program, Programs},
    protocol::{Protocol, Wanted},
    subscriber::Publisher,
    table::Case,
};
use crate::{
    figures::{Report, quantile, sorted},
    fleet::{Beacons, Fleet, LIMIT},
    machine::{Process, allow_files},
    mesh::{Size, address, extra},
    swarm::{self, Swarm},
};

/// Changes that are not counted.
const WARM_UP: usize = 2;

/// Between two changes: all has then been answered.
const PAUSE: Duration = Duration::from_millis(1500);

/// Services in the case with large ones.
const FEW: usize = 10;

/// What is measured.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Clients, in a case each
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 4000, 8000])]
    pub clients: Vec<usize>,
    /// Services
    #[arg(long, default_value_t = 100)]
    pub services: usize,
    /// Endpoints of each
    #[arg(long, default_value_t = 10)]
    pub endpoints: usize,
    /// In one more case, with the fewest clients, ten services have so many endpoints each
    #[arg(long, default_value_t = 1000)]
    pub large: usize,
    /// Changes in each run
    #[arg(long, default_value_t = 8)]
    pub changes: usize,
}

/// Who is measured, in the order of the columns.
const SERVERS: [Server; 5] = [
    Server::Tower,
    Server::GoControlPlane("linear"),
    Server::GoControlPlane("snapshot"),
    Server::Nats,
    Server::Etcd,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    Tower,
    /// With this cache.
    GoControlPlane(&'static str),
    Nats,
    Etcd,
}

impl Server {
    fn name(self) -> String {
        match self {
            Self::Tower => table::TOWER.to_owned(),
            Self::GoControlPlane(cache) => format!("go-control-plane, {cache}"),
            Self::Nats => table::NATS.to_owned(),
            Self::Etcd => "etcd".to_owned(),
        }
    }
}

/// Measures all cases.
///
/// # Errors
/// If there is no Go, or something does not work.
pub async fn run(options: &Options, runs: usize) -> Result<Vec<Case>> {
    ensure!(!options.clients.is_empty() && !options.clients.contains(&0), "--clients must be at least 1");
    ensure!(options.services > 0 && options.changes > 0, "--services and --changes must be at least 1");
    let programs = Programs::build()?;
    let size = Size { services: options.services, endpoints: options.endpoints };
    let mut cases: Vec<(usize, Size)> = options.clients.iter().map(|clients| (*clients, size)).collect();
    let fewest = options.clients.iter().min().copied().unwrap_or_default();
    if options.large > 0 {
        cases.push((fewest, Size { services: FEW, endpoints: options.large }));
    }
    let mut measured = Vec::new();
    for (clients, size) in cases {
        measured.push(case(&programs, (clients, size), runs, options.changes).await?);
    }
    Ok(measured)
}

async fn case(
    programs: &Programs,
    (clients, size): (usize, Size),
    runs: usize,
    changes: usize,
) -> Result<Case> {
    allow_files(clients)?;
    let fleet = Fleet::new(Beacons { beacons: clients, tls: false }, size).await?;
    let mut columns = SERVERS.map(|server| (server, Report::new(&server.name(), runs)));
    // What Tower delivers, for whoever carries any bytes.
    let mut delivered = Vec::new();
    for run in 0..runs {
        for (server, report) in &mut columns {
            let setting = Setting { clients, size, run, changes };
            let tally = match *server {
                Server::Tower => {
                    let (tally, message) = tower(&fleet, setting).await?;
                    delivered = message;
                    tally
                }
                Server::GoControlPlane(cache) => {
                    let names = (0..size.services).map(service).collect();
                    let program = programs.start("xds", &["-cache", cache])?;
                    registry(program, Protocol::Discovery(names), setting).await?
                }
                Server::Etcd => registry(programs.start("etcd", &[])?, Protocol::Watch, setting).await?,
                Server::Nats => nats(programs.start("nats", &[])?, &delivered, setting).await?,
            };
            tally.note(report, clients);
            report.note("delivered_bytes", delivered.len() as f64);
        }
    }
    let columns = columns.into_iter().map(|(server, report)| (server.name(), report)).collect();
    Ok(Case { clients, size, columns })
}

#[derive(Debug, Clone, Copy)]
struct Setting {
    clients: usize,
    size: Size,
    run: usize,
    changes: usize,
}

fn service(number: usize) -> String {
    format!("service-{number:05}")
}

/// What one server was measured to take in one run.
#[derive(Debug, Default)]
struct Tally {
    changes: usize,
    memory: f64,
    times: Vec<f64>,
    firsts: Vec<f64>,
    lasts: Vec<f64>,
    cpu: Duration,
    cpu_with_answers: Duration,
    client_cpu: Duration,
    bytes: f64,
}

impl Tally {
    fn change(&mut self, millis: &[f32]) {
        let times = sorted(millis.iter().copied().map(f64::from).collect());
        self.changes += 1;
        self.firsts.extend(times.first());
        self.lasts.extend(times.last());
        self.times.extend(times);
    }

    fn note(self, report: &mut Report, clients: usize) {
        let deliveries = (self.changes * clients) as f64;
        let micros = |cpu: Duration| cpu.as_secs_f64() * 1e6 / deliveries;
        let times = sorted(self.times);
        report.note("first_ms", quantile(&sorted(self.firsts), 0.5));
        report.note("p50_ms", quantile(&times, 0.5));
        report.note("p99_ms", quantile(&times, 0.99));
        report.note("last_ms", quantile(&sorted(self.lasts), 0.5));
        report.note("cpu_us_per_delivery", micros(self.cpu));
        report.note("cpu_us_per_delivery_with_answers", micros(self.cpu_with_answers));
        report.note("client_cpu_us_per_delivery", micros(self.client_cpu));
        report.note("wire_bytes_per_delivery", self.bytes / deliveries);
        report.note("bytes_per_client", self.memory / clients as f64);
    }
}

/// Tower, whose changes come through ZooKeeper. Returns what it delivered, too.
async fn tower(fleet: &Fleet, setting: Setting) -> Result<(Tally, Vec<u8>)> {
    let Setting { clients, run, changes, .. } = setting;
    let tower = fleet.tower().await?;
    tower.settled(&fleet.mesh).await?;
    let process = tower.process()?;
    let before = process.resident();
    let swarm = Swarm::start(clients)?;
    tower.fill(&swarm).await?;
    sleep(2 * PAUSE).await;
    let mut tally = Tally { memory: process.resident() - before, ..Tally::default() };
    for change in 0..WARM_UP + changes {
        let address = extra(run, change);
        let bytes = swarm.board.bytes.load(Relaxed) as f64;
        let (cpu, of_clients) = (process.cpu(), Process::own().cpu_of_thread(swarm::THREAD));
        let mark = swarm.marks.set(&address);
        fleet.mesh.add(change, &address).await?;
        swarm.until_seen(mark, clients, LIMIT).await?;
        let spent = process.cpu().saturating_sub(cpu);
        let bytes = swarm.board.bytes.load(Relaxed) as f64 - bytes;
        let of_clients = Process::own().cpu_of_thread(swarm::THREAD).saturating_sub(of_clients);
        sleep(PAUSE).await;
        if change >= WARM_UP {
            tally.change(&swarm.marks.get(mark).context("a mark is lost")?.millis);
            tally.cpu += spent;
            tally.cpu_with_answers += process.cpu().saturating_sub(cpu);
            tally.client_cpu += of_clients;
            tally.bytes += bytes;
        }
    }
    swarm.until_equal(clients, LIMIT).await?;
    swarm.verify(fleet.mesh.resources(), LIMIT).await?;
    Ok((tally, swarm.board.marked()))
}

/// One that is told of each endpoint by the one who started it.
async fn registry(mut program: Program, protocol: Protocol, setting: Setting) -> Result<Tally> {
    let Size { services, endpoints } = setting.size;
    for name in 0..services {
        for endpoint in 0..endpoints {
            program.tell(&format!("add {} {}", service(name), address(name, endpoint)))?;
        }
    }
    program.serve()?;
    let process = program.process();
    let address = program.address;
    others(process, address, protocol, setting, |wanted, _| program.set(&wanted.service, &wanted.address))
        .await
}

/// One that carries any bytes: those that Tower delivered.
async fn nats(mut program: Program, delivered: &[u8], setting: Setting) -> Result<Tally> {
    program.serve()?;
    let mut publisher = Publisher::connect(program.address)?;
    let (process, address) = (program.process(), program.address);
    others(process, address, Protocol::Subscription, setting, |_, _| publisher.publish(delivered)).await
}

async fn others(
    process: Process,
    address: std::net::SocketAddr,
    protocol: Protocol,
    setting: Setting,
    mut make: impl FnMut(&Wanted, usize) -> Result<()>,
) -> Result<Tally> {
    let Setting { clients: count, size, run, changes } = setting;
    sleep(PAUSE).await;
    let before = process.resident();
    let clients = Clients::start(count, address, protocol)?;
    clients.until_ready(LIMIT).await?;
    sleep(2 * PAUSE).await;
    let mut tally = Tally { memory: process.resident() - before, ..Tally::default() };
    for change in 0..WARM_UP + changes {
        let wanted = Wanted {
            service: service(change % size.services),
            address: extra(run, change),
            endpoints: size.endpoints + 1 + change / size.services,
        };
        let bytes = clients.bytes();
        let (cpu, of_clients) = (process.cpu(), Process::own().cpu_of_thread(clients::THREAD));
        clients.mark(wanted.clone());
        make(&wanted, change)?;
        let mark = clients.until_seen(LIMIT).await?;
        let spent = process.cpu().saturating_sub(cpu);
        let bytes = clients.bytes() - bytes;
        let of_clients = Process::own().cpu_of_thread(clients::THREAD).saturating_sub(of_clients);
        sleep(PAUSE).await;
        if change >= WARM_UP {
            tally.change(&mark.millis);
            tally.cpu += spent;
            tally.cpu_with_answers += process.cpu().saturating_sub(cpu);
            tally.client_cpu += of_clients;
            tally.bytes += bytes;
        }
    }
    Ok(tally)
}
