//! A fault line in a thread, with an echo server behind it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use bucketload_core::drill::{Direction, Fault, What};
use bucketload_faultline::{Order, Report, Setup, serve};

pub(crate) struct Line {
    orders: UnixStream,
    reports: BufReader<UnixStream>,
    thread: Option<JoinHandle<()>>,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// A fault that strikes everything.
pub(crate) fn fault(what: What) -> Fault {
    Fault {
        name: what.word().to_owned(),
        what,
        at_ns: 0,
        for_ns: 1,
        every_ns: 0,
        times: 1,
        ramp_ns: 0,
        share: 1.0,
        direction: Direction::Both,
        endpoints: Vec::new(),
    }
}

impl Line {
    /// Before as many echo servers as `struck` names for the first fault, at least one.
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Self::before(faults, &[echo()], Vec::new())
    }

    pub(crate) fn before(faults: Vec<Fault>, endpoints: &[SocketAddr], struck: Vec<usize>) -> Self {
        let (orders, input) = UnixStream::pair().unwrap();
        let (reports, output) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || serve(input, output).unwrap());
        let mut line = Self {
            orders,
            reports: BufReader::new(reports),
            thread: Some(thread),
            addresses: Vec::new(),
        };
        let setup = Setup {
            seed: 7,
            endpoints: endpoints.to_vec(),
            struck: faults.iter().map(|_| struck.clone()).collect(),
            faults,
        };
        match line.ask(&setup) {
            Report::Listening(addresses) => line.addresses = addresses,
            other => panic!("{other:?}"),
        }
        line
    }

    fn ask(&mut self, question: &impl serde::Serialize) -> Report {
        let mut text = serde_json::to_vec(question).unwrap();
        text.push(b'\n');
        self.orders.write_all(&text).unwrap();
        let mut answer = String::new();
        self.reports.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    pub(crate) fn breaks(&mut self, fault: usize) {
        assert!(matches!(
            self.ask(&Order::Break { fault, round: 0 }),
            Report::Done { .. }
        ));
    }

    pub(crate) fn mend(&mut self, fault: usize) {
        assert!(matches!(
            self.ask(&Order::Mend { fault }),
            Report::Done { .. }
        ));
    }

    pub(crate) fn cost(&mut self) -> (u64, u64, u64) {
        match self.ask(&Order::Cost) {
            Report::Cost {
                cpu_ns,
                bytes,
                connections,
            } => (cpu_ns, bytes, connections),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[0]).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.orders.shutdown(std::net::Shutdown::Both).unwrap();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// A server that returns every byte.
pub(crate) fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
    })
}

/// A server that does `each` with each connection.
pub(crate) fn server(each: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || each(stream));
        }
    });
    address
}

/// Sends `bytes` and reads as many back.
pub(crate) fn ping(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(bytes)?;
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back)?;
    Ok(back)
}
