//! The loop: one thread, one epoll set with standard input, a timer, the listeners and all connections.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

use bucketload_core::drill::What;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::effects::{Active, effects};
use crate::link::{Fate, Link};
use crate::{Order, Report, Setup};

const INPUT: u64 = 0;
const TIMER: u64 = 1;
const LISTENERS: u64 = 2;
/// Set in the tokens of connections.
const LINK: u64 = 1 << 63;
/// How often a ramp is looked at.
const RAMP_NS: u64 = 10_000_000;
/// Stands for no connection in timers.
const ALL: usize = usize::MAX;

/// Carries connections as the setup on `input` says, until `input` ends.
///
/// # Errors
/// When the setup cannot be read, or the kernel refuses sockets.
pub fn serve(mut input: impl Read + AsFd, mut output: impl Write) -> io::Result<()> {
    raise_limit();
    let mut orders = Lines::default();
    let setup = loop {
        if let Some(line) = orders.next() {
            break serde_json::from_slice::<Setup>(&line)?;
        }
        if !orders.fill(&mut input)? {
            return Ok(());
        }
    };
    let mut proxy = Proxy::new(setup, input.as_fd())?;
    let listening = proxy.listeners.iter().map(|l| l.address).collect();
    say(&mut output, &Report::Listening(listening))?;
    let mut events = [MaybeUninit::uninit(); 256];
    loop {
        while let Some(line) = orders.next() {
            let order = serde_json::from_slice(&line)?;
            let report = proxy.obey(order)?;
            say(&mut output, &report)?;
        }
        proxy.arm()?;
        let ready = match epoll::wait(&proxy.epoll, &mut events, None) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
        };
        let now = now();
        for event in ready.iter() {
            let (token, flags) = (event.data.u64(), event.flags);
            match token {
                INPUT => {
                    if !orders.fill(&mut input)? {
                        return Ok(());
                    }
                }
                TIMER => proxy.expire(now),
                _ if token & LINK != 0 => proxy.ready(token, flags, now),
                _ => proxy.accept((token - LISTENERS) as usize, now),
            }
        }
    }
}

fn say(output: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// `CLOCK_MONOTONIC`, nanoseconds.
fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

fn nanoseconds(time: Timespec) -> u64 {
    // Neither clock is ever negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Each connection takes two descriptors.
fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Fails without consequence: the limit stays.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// The lines of a stream.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|b| *b == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Reads once; false at the end.
    fn fill(&mut self, input: &mut impl Read) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let n = input.read(&mut buffer)?;
        self.bytes.extend_from_slice(&buffer[..n]);
        Ok(n > 0)
    }
}

struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    refuses: bool,
}

#[derive(Default)]
struct Slot {
    link: Option<Link>,
    /// Distinguishes the connections that use the slot one after another.
    generation: u32,
    /// The earliest timer that is set for it.
    armed: u64,
}

struct Proxy {
    setup: Setup,
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: u64,
    listeners: Vec<Listener>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    timers: BinaryHeap<Reverse<(u64, usize, u32)>>,
    active: Vec<Active>,
    scratch: Vec<u8>,
    connections: u64,
    bytes: u64,
}

impl Proxy {
    fn new(setup: Setup, input: impl AsFd) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        epoll::add(&epoll, input, EventData::new_u64(INPUT), EventFlags::IN)?;
        epoll::add(
            &epoll,
            &timer,
            EventData::new_u64(TIMER),
            EventFlags::IN | EventFlags::ET,
        )?;
        let listeners = setup.endpoints.iter().map(|_| listener());
        let mut proxy = Self {
            listeners: listeners.collect::<io::Result<_>>()?,
            setup,
            epoll,
            timer,
            armed: u64::MAX,
            slots: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            active: Vec::new(),
            scratch: vec![0; 256 << 10],
            connections: 0,
            bytes: 0,
        };
        for index in 0..proxy.listeners.len() {
            proxy.watch(index)?;
        }
        Ok(proxy)
    }

    fn watch(&mut self, index: usize) -> io::Result<()> {
        let token = EventData::new_u64(LISTENERS + index as u64);
        epoll::add(
            &self.epoll,
            &self.listeners[index].socket,
            token,
            EventFlags::IN,
        )?;
        Ok(())
    }

    fn obey(&mut self, order: Order) -> io::Result<Report> {
        match order {
            Order::Break { fault, round } if fault < self.setup.faults.len() => {
                let since_ns = now();
                self.active.push(Active {
                    fault,
                    round,
                    since_ns,
                });
            }
            Order::Mend { fault } => self.active.retain(|on| on.fault != fault),
            Order::Break { fault, .. } => {
                return Err(io::Error::other(format!("there is no fault {fault}")));
            }
            Order::Cost => {
                return Ok(Report::Cost {
                    cpu_ns: nanoseconds(clock_gettime(ClockId::ProcessCPUTime)),
                    bytes: self.bytes,
                    connections: self.connections,
                });
            }
        }
        let at_ns = now();
        self.refuse()?;
        self.affect(at_ns);
        Ok(Report::Done { at_ns })
    }

    /// Opens and closes listeners as the active faults ask.
    fn refuse(&mut self) -> io::Result<()> {
        for index in 0..self.listeners.len() {
            let refuses = self.active.iter().any(|on| {
                let struck = &self.setup.struck[on.fault];
                self.setup.faults[on.fault].what == What::Refused
                    && (struck.is_empty() || struck.contains(&index))
            });
            let listener = &mut self.listeners[index];
            if refuses == listener.refuses {
                continue;
            }
            listener.refuses = refuses;
            match refuses {
                true => {
                    epoll::delete(&self.epoll, &listener.socket)?;
                    // A socket that no longer listens keeps its port, and refuses.
                    net::shutdown(&listener.socket, net::Shutdown::Both)?;
                }
                false => {
                    net::listen(&listener.socket, BACKLOG)?;
                    self.watch(index)?;
                }
            }
        }
        Ok(())
    }

    /// Gives every connection what the active faults do to it, and serves it.
    fn affect(&mut self, now: u64) {
        for index in 0..self.slots.len() {
            if let Some(link) = &mut self.slots[index].link {
                let all = effects(&self.setup, &self.active, link.endpoint, link.number, now);
                link.affect(all, now);
                self.serve(index, now);
            }
        }
        let ramps = |on: &Active| on.grown(&self.setup.faults[on.fault], now) < 1.0;
        if self.active.iter().any(ramps) {
            self.timers.push(Reverse((now + RAMP_NS, ALL, 0)));
        }
    }

    fn accept(&mut self, index: usize, now: u64) {
        while let Ok((client, _)) = self.listeners[index].socket.accept() {
            // A client that cannot be served is closed at once, as by a store that has no room.
            let Ok(store) = dial(self.setup.endpoints[index]) else {
                continue;
            };
            if client.set_nonblocking(true).is_err() || client.set_nodelay(true).is_err() {
                continue;
            }
            let number = self.connections;
            self.connections += 1;
            let mut link = Link::new(number, index, client, store);
            let all = effects(&self.setup, &self.active, index, number, now);
            link.opened(all, &self.setup, now);
            let slot = self.free.pop().unwrap_or(self.slots.len());
            if slot == self.slots.len() {
                self.slots.push(Slot::default());
            }
            let held = &mut self.slots[slot];
            held.armed = u64::MAX;
            let token = LINK | u64::from(held.generation) << 32 | (slot as u64) << 1;
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let client = epoll::add(
                &self.epoll,
                &link.client.socket,
                EventData::new_u64(token),
                flags,
            );
            let store = epoll::add(
                &self.epoll,
                &link.store.socket,
                EventData::new_u64(token | 1),
                flags,
            );
            held.link = Some(link);
            match client.and(store) {
                Ok(()) => self.serve(slot, now),
                Err(_) => self.end(slot),
            }
        }
    }

    fn ready(&mut self, token: u64, flags: EventFlags, now: u64) {
        let index = (token & 0xffff_ffff) as usize >> 1;
        let generation = (token & !LINK) >> 32;
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let Some(link) = slot
            .link
            .as_mut()
            .filter(|_| u64::from(slot.generation) == generation)
        else {
            return;
        };
        let end = if token & 1 == 0 {
            &mut link.client
        } else {
            &mut link.store
        };
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        end.readable |= broken || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        end.writable |= broken || flags.contains(EventFlags::OUT);
        end.finished |= broken || flags.contains(EventFlags::RDHUP);
        self.serve(index, now);
    }

    fn serve(&mut self, index: usize, now: u64) {
        let slot = &mut self.slots[index];
        let Some(link) = &mut slot.link else { return };
        let fate = link.serve(&self.setup, &mut self.scratch, now);
        self.bytes += std::mem::take(&mut link.carried);
        match fate {
            Fate::Until(at) if at < slot.armed => {
                slot.armed = at;
                self.timers.push(Reverse((at, index, slot.generation)));
            }
            Fate::Until(_) => {}
            Fate::Over => self.end(index),
            Fate::Reset => {
                link.break_off();
                self.end(index);
            }
        }
    }

    fn end(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.link = None;
        // 31 bits fit into a token.
        slot.generation = (slot.generation + 1) & 0x7fff_ffff;
        self.free.push(index);
    }

    /// Serves what a timer was set for.
    fn expire(&mut self, now: u64) {
        self.armed = u64::MAX;
        while let Some(&Reverse((at, index, generation))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            if index == ALL {
                self.affect(now);
                continue;
            }
            let slot = &mut self.slots[index];
            if slot.generation == generation && slot.armed == at {
                slot.armed = u64::MAX;
                self.serve(index, now);
            }
        }
    }

    /// Sets the kernel's timer for the first of ours.
    fn arm(&mut self) -> io::Result<()> {
        let Some(&Reverse((at, ..))) = self.timers.peek() else {
            return Ok(());
        };
        if at >= self.armed {
            return Ok(());
        }
        self.armed = at;
        let spec = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (at / 1_000_000_000) as i64,
                // 0 would disarm the timer.
                tv_nsec: (at % 1_000_000_000).max(1) as i64,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }
}

const BACKLOG: i32 = 4096;

/// A listener on loopback that keeps its port while it refuses. The kernel releases a port that it chose itself, so a second
/// socket asks for it by number before the first one goes.
fn listener() -> io::Result<Listener> {
    let bound = |port: u16| -> io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
        Ok(socket)
    };
    let chosen = TcpListener::from(bound(0)?);
    let address = chosen.local_addr()?;
    let socket = bound(address.port())?;
    drop(chosen);
    net::listen(&socket, BACKLOG)?;
    Ok(Listener {
        socket: socket.into(),
        address,
        refuses: false,
    })
}

/// Begins to connect to `address`.
fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(e) => Err(e.into()),
    }
}
