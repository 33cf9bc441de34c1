//! The swarm's thread: one loop over all sockets.

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    sync::{
        Arc, PoisonError,
        atomic::Ordering::Relaxed,
        mpsc::{Receiver, Sender},
    },
    time::{Duration, Instant},
};

use mio::{Events, Interest, Poll, Token};
use tower_common::{clock, digest::Digest};

use super::{
    beacon::Beacon,
    board::Board,
    connection::{Connection, Kind, Target},
    contents::Contents,
    marks::Marks,
    state::State,
};

/// Beacons look once a second whether there is something to report: so many of them at a time.
const WHEEL: usize = 100;

/// Between two looks.
const TURN: Duration = Duration::from_millis(10);

/// After its first delivery a Beacon reports so soon.
const FIRST_REPORT: Duration = Duration::from_millis(50);

/// How long a Beacon waits after a connection that was not to end, and after the next one twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// One of so many Beacons tells when each change came; all tell of those that are measured one by one.
const SAMPLE: usize = 16;

/// With so many marks in a message only the sample tells.
const MANY_MARKS: usize = 4;

/// The token of what wakes the loop; Beacons have their numbers.
pub(super) const WAKER: Token = Token(usize::MAX);

/// What the swarm is told to do.
#[derive(Debug)]
pub(super) enum Command {
    /// All of these connect at once, and stay connected.
    Connect(Range<usize>, Target),
    /// These close their connections.
    Disconnect(Range<usize>),
    /// These read no more, or read again.
    Pause(Range<usize>, bool),
    /// These hold what the first holds.
    Restore(usize, Range<usize>),
    /// What the floor sends from now on counts for this mark; tells when that is so.
    Floor(usize, Sender<()>),
    /// Tells what those hold that are equal to their Tower.
    Audit(Sender<Vec<Held>>),
}

/// What some Beacons hold.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) digest: Digest,
    pub(super) resources: usize,
    pub(super) beacons: usize,
}

pub(super) struct Loop {
    poll: Poll,
    commands: Receiver<Command>,
    slots: Vec<Slot>,
    shared: Shared,
    wheel: Vec<Vec<usize>>,
    turned: Instant,
    turn: usize,
    retries: BTreeMap<Instant, Vec<usize>>,
    buffer: Vec<u8>,
}

struct Shared {
    contents: Contents,
    marks: Marks,
    board: Arc<Board>,
    floor: usize,
}

struct Slot {
    beacon: Beacon,
    connection: Option<Connection>,
    /// Where it is to be connected.
    target: Option<Target>,
    paused: bool,
    equal: bool,
    on_wheel: bool,
    failures: u32,
}

/// Why a connection is over.
enum End {
    /// The socket, or the stream, has ended.
    Lost(String),
    /// Something was wrong with what was said.
    Fault(String),
    Goodbye(Duration),
}

impl Loop {
    pub(super) fn new(
        count: usize,
        poll: Poll,
        commands: Receiver<Command>,
        marks: Marks,
        board: Arc<Board>,
    ) -> Self {
        let nothing = State::empty();
        let slot = |number| Slot {
            beacon: Beacon::new(number, &nothing),
            connection: None,
            target: None,
            paused: false,
            equal: false,
            on_wheel: false,
            failures: 0,
        };
        Self {
            poll,
            commands,
            slots: (0..count).map(slot).collect(),
            shared: Shared { contents: Contents::default(), marks, board, floor: 0 },
            wheel: vec![Vec::new(); WHEEL],
            turned: clock::monotonic(),
            turn: 0,
            retries: BTreeMap::new(),
            buffer: vec![0; 256 << 10],
        }
    }

    /// Goes on until nobody gives commands any more.
    pub(super) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        loop {
            match self.poll.poll(&mut events, Some(TURN)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
            for event in &events {
                if event.token() == WAKER {
                    if !self.obey() {
                        return Ok(());
                    }
                } else {
                    self.drive(event.token().0, event.is_read_closed());
                }
            }
            self.turn_wheel();
            self.retry();
        }
    }

    /// Returns whether there may be more commands.
    fn obey(&mut self) -> bool {
        loop {
            let command = match self.commands.try_recv() {
                Ok(command) => command,
                Err(error) => return error == std::sync::mpsc::TryRecvError::Empty,
            };
            match command {
                Command::Connect(range, target) => {
                    for number in range {
                        self.slots[number].target = Some(target.clone());
                        self.slots[number].failures = 0;
                        self.connect(number);
                    }
                }
                Command::Disconnect(range) => {
                    for number in range {
                        self.slots[number].target = None;
                        self.close(number);
                    }
                }
                Command::Pause(range, paused) => {
                    for number in range {
                        self.slots[number].paused = paused;
                        if !paused {
                            self.drive(number, true);
                        }
                    }
                }
                Command::Restore(from, range) => {
                    for number in range.filter(|number| *number != from) {
                        let [slot, first] = self.slots.get_disjoint_mut([number, from]).expect("two Beacons");
                        slot.beacon.restore(&first.beacon);
                    }
                }
                Command::Floor(mark, answer) => {
                    self.shared.floor = mark;
                    let _ = answer.send(());
                }
                Command::Audit(answer) => {
                    let _ = answer.send(self.audit());
                }
            }
        }
    }

    fn audit(&self) -> Vec<Held> {
        let mut all: Vec<Held> = Vec::new();
        for slot in self.slots.iter().filter(|slot| slot.equal) {
            let (digest, resources) = (slot.beacon.state().digest(), slot.beacon.state().len());
            match all.iter_mut().find(|held| held.digest == digest && held.resources == resources) {
                Some(held) => held.beacons += 1,
                None => all.push(Held { digest, resources, beacons: 1 }),
            }
        }
        all
    }

    fn connect(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        let Some(target) = &slot.target else { return };
        let opened = Connection::open(target, number).and_then(|mut connection| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(connection.tcp(), Token(number), interest)?;
            Ok(connection)
        });
        match opened {
            Ok(mut connection) => {
                if target.kind == Kind::Tower {
                    connection.say(&slot.beacon.hello());
                }
                slot.connection = Some(connection);
            }
            Err(error) => self.lost(number, End::Lost(format!("no connection: {error}"))),
        }
    }

    fn close(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        slot.connection = None;
        slot.beacon.end();
        self.shared.board.count_equal(slot.equal, false);
        slot.equal = false;
    }

    /// Reads and writes as far as that goes; if it is `closing`, to the very end.
    fn drive(&mut self, number: usize, closing: bool) {
        let slot = &mut self.slots[number];
        if slot.paused || slot.connection.is_none() {
            return;
        }
        let before = slot.equal;
        let result = slot.exchange(number, closing, &mut self.buffer, &mut self.shared);
        self.shared.board.count_equal(before, slot.equal);
        if slot.equal {
            slot.failures = 0;
            if !slot.on_wheel {
                slot.on_wheel = true;
                let turns = usize::try_from(FIRST_REPORT.as_millis() / TURN.as_millis()).unwrap_or(0);
                self.wheel[(self.turn + turns) % WHEEL].push(number);
            }
        }
        if let Err(end) = result {
            self.lost(number, end);
        }
    }

    fn lost(&mut self, number: usize, end: End) {
        self.close(number);
        let slot = &mut self.slots[number];
        let board = &self.shared.board;
        let mut wait = FIRST_WAIT.saturating_mul(1 << slot.failures.min(10)).min(LONGEST_WAIT);
        slot.failures += 1;
        match end {
            End::Lost(why) => board.tell(&board.ends, format!("Beacon {number}: {why}")),
            End::Fault(why) => board.tell(&board.faults, format!("Beacon {number}: {why}")),
            End::Goodbye(after) => {
                board.goodbyes.fetch_add(1, Relaxed);
                wait += after;
            }
        }
        // Not all at once: spread over the second half of the wait.
        let jitter = wait / 2 * u32::try_from(number % 97).unwrap_or(0) / 97;
        self.retries.entry(clock::monotonic() + wait / 2 + jitter).or_default().push(number);
    }

    fn retry(&mut self) {
        let now = clock::monotonic();
        while let Some(due) = self.retries.first_entry().filter(|due| *due.key() <= now) {
            for number in due.remove() {
                let slot = &self.slots[number];
                if slot.target.is_some() && slot.connection.is_none() {
                    self.connect(number);
                }
            }
        }
    }

    /// Lets those report whose time it is.
    fn turn_wheel(&mut self) {
        while self.turned.elapsed() >= TURN {
            self.turned += TURN;
            self.turn = (self.turn + 1) % WHEEL;
            for number in std::mem::take(&mut self.wheel[self.turn]) {
                let slot = &mut self.slots[number];
                let Some(connection) = slot.connection.as_mut() else {
                    slot.on_wheel = false;
                    continue;
                };
                self.wheel[self.turn].push(number);
                if !slot.paused
                    && let Some(report) = slot.beacon.report()
                {
                    self.shared.board.reports.fetch_add(1, Relaxed);
                    connection.say(&report);
                    if let Err(error) = connection.flush() {
                        self.lost(number, End::Lost(error.to_string()));
                    }
                }
            }
        }
    }
}

impl Slot {
    fn exchange(
        &mut self,
        number: usize,
        closing: bool,
        buffer: &mut [u8],
        shared: &mut Shared,
    ) -> Result<(), End> {
        let Self { beacon, connection, target, equal, .. } = self;
        let (Some(connection), Some(target)) = (connection, target) else { return Ok(()) };
        let lost = |error: io::Error| End::Lost(error.to_string());
        connection.flush().map_err(lost)?;
        let mut leave = None;
        while let Some((read, more)) = connection.read(buffer).map_err(lost)? {
            shared.board.bytes.fetch_add(read as u64, Relaxed);
            if target.kind == Kind::Handshake {
                *equal = true;
                continue;
            }
            let mut fault = false;
            let heard = connection.take(&buffer[..read], |bytes, say| {
                let outcome = shared.hear(beacon, number, target.kind, bytes);
                let (said, goodbye) = outcome.inspect_err(|_| fault = true)?;
                say.extend_from_slice(&said);
                leave = goodbye.or(leave);
                Ok(())
            });
            // Of what the last message in a piece says.
            *equal = target.kind == Kind::Floor || beacon.is_equal();
            heard.map_err(|why| if fault { End::Fault(why) } else { End::Lost(why) })?;
            if let Some(after) = leave {
                return Err(End::Goodbye(after));
            }
            if !more && !closing {
                break;
            }
        }
        connection.flush().map_err(lost)
    }
}

impl Shared {
    /// What a message amounts to: what to answer, and whether to leave.
    fn hear(
        &mut self,
        beacon: &mut Beacon,
        number: usize,
        kind: Kind,
        bytes: &[u8],
    ) -> Result<(Vec<u8>, Option<Duration>), String> {
        self.board.messages.fetch_add(1, Relaxed);
        self.board.payload.fetch_add(bytes.len() as u64, Relaxed);
        let message = self.contents.message(bytes, &self.marks)?;
        if kind == Kind::Floor {
            self.marks.note(&[self.floor], true);
            return Ok((Vec::new(), None));
        }
        let outcome = beacon.hear(&message, &mut self.contents)?;
        self.board.deliveries.fetch_add(u64::from(outcome.applied), Relaxed);
        if !message.marks.is_empty() {
            let each = message.marks.len() < MANY_MARKS || number.is_multiple_of(SAMPLE);
            self.marks.note(&message.marks, each);
            if number == 0 {
                let mut marked = self.board.marked.lock().unwrap_or_else(PoisonError::into_inner);
                message.bytes().clone_into(&mut marked);
            }
        }
        Ok((outcome.say.unwrap_or_default(), outcome.leave))
    }
}
