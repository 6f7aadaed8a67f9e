//! Each fault strikes as its definition says, and leaves no trace when it ends. Lower bounds of times are exact; upper
//! bounds leave room for a machine that is busy.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use bucketload_core::drill::{Direction, Fault, What};
use bucketload_core::plan::GapLaw;

use crate::line::{Line, echo, fault, ping, server};

const MS: u64 = 1_000_000;

fn constant(ms: u64) -> GapLaw {
    GapLaw::Constant { ns: ms * MS }
}

/// Time that `f` takes, milliseconds.
fn ms<T>(f: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let value = f();
    (value, began.elapsed().as_secs_f64() * 1e3)
}

/// True if nothing arrives for `ms`.
fn is_silent(stream: &mut TcpStream, ms: u64) -> bool {
    stream
        .set_read_timeout(Some(Duration::from_millis(ms)))
        .unwrap();
    let got = stream.read(&mut [0; 1]);
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    matches!(got, Err(e) if e.kind() == ErrorKind::WouldBlock)
}

fn was_reset(result: std::io::Result<impl Sized>) -> bool {
    result
        .is_err_and(|e| e.kind() == ErrorKind::ConnectionReset || e.kind() == ErrorKind::BrokenPipe)
}

#[test]
fn bytes_pass_untouched_in_both_directions_and_their_end_too() {
    let mut line = Line::new(Vec::new());
    let data: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
    let mut stream = line.connect();
    let mut writer = stream.try_clone().unwrap();
    let sent = data.clone();
    let sender = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    sender.join().unwrap();
    assert!(back == data, "{} bytes came back", back.len());
    let (cpu_ns, bytes, connections) = line.cost();
    assert_eq!((bytes, connections), (10_000_000, 1));
    assert!(cpu_ns > 0);
}

#[test]
fn latency_delays_by_its_law_and_in_its_direction_only() {
    let law = GapLaw::Uniform {
        min_ns: 15 * MS,
        max_ns: 25 * MS,
    };
    let down = Fault {
        direction: Direction::Down,
        ..fault(What::Latency { delay: law })
    };
    let both = fault(What::Latency {
        delay: constant(10),
    });
    let mut line = Line::new(vec![down, both]);
    let mut stream = line.connect();
    ping(&mut stream, b"x").unwrap();
    line.breaks(0);
    let times: Vec<f64> = (0..20)
        .map(|_| ms(|| ping(&mut stream, b"x").unwrap()).1)
        .collect();
    let least = times.iter().copied().fold(f64::MAX, f64::min);
    let mut sorted = times.clone();
    sorted.sort_by(f64::total_cmp);
    assert!(least >= 15.0 && sorted[10] < 40.0, "{times:?}");
    assert!(sorted[19] - sorted[0] > 2.0, "no jitter: {times:?}");
    line.breaks(1);
    let (_, both) = ms(|| ping(&mut stream, b"x").unwrap());
    assert!(both >= 35.0, "{both}");
    line.mend(0);
    line.mend(1);
    let (_, after) = ms(|| ping(&mut stream, b"x").unwrap());
    assert!(after < 15.0, "{after}");
}

#[test]
fn bytes_keep_their_order_under_jitter() {
    let law = GapLaw::Exponential { mean_ns: MS };
    let mut line = Line::new(vec![fault(What::Latency { delay: law })]);
    line.breaks(0);
    let mut stream = line.connect();
    for i in 0..200u8 {
        stream.write_all(&[i]).unwrap();
    }
    let mut back = [0; 200];
    stream.read_exact(&mut back).unwrap();
    assert!(back.iter().enumerate().all(|(i, b)| i == usize::from(*b)));
}

#[test]
fn bandwidth_limits_a_connection() {
    let down = Fault {
        direction: Direction::Down,
        ..fault(What::Bandwidth {
            bytes_per_s: 1_000_000,
        })
    };
    let mut line = Line::new(vec![down]);
    line.breaks(0);
    let mut stream = line.connect();
    let (_, took) = ms(|| ping(&mut stream, &[7; 200_000]).unwrap());
    assert!((180.0..600.0).contains(&took), "{took}");
}

#[test]
fn a_slow_open_holds_back_new_connections_only() {
    let mut line = Line::new(vec![fault(What::SlowOpen {
        delay: constant(60),
    })]);
    let mut old = line.connect();
    ping(&mut old, b"x").unwrap();
    line.breaks(0);
    let (_, known) = ms(|| ping(&mut old, b"x").unwrap());
    let (_, new) = ms(|| ping(&mut line.connect(), b"x").unwrap());
    assert!(known < 50.0 && new >= 59.0, "{known} {new}");
}

#[test]
fn a_slow_close_holds_back_the_end() {
    let mut line = Line::new(vec![fault(What::SlowClose {
        delay: constant(60),
    })]);
    line.breaks(0);
    let mut stream = line.connect();
    ping(&mut stream, b"x").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // There and back: the echo server closes when it sees the end.
    let (n, took) = ms(|| stream.read(&mut [0; 1]).unwrap());
    assert!(n == 0 && took >= 119.0, "{took}");
}

#[test]
fn a_reset_strikes_at_once_after_bytes_or_after_a_time() {
    let reset = |after_bytes, after_ns| {
        fault(What::Reset {
            after_bytes,
            after_ns,
        })
    };
    let mut line = Line::new(vec![reset(0, 0), reset(1000, 0), reset(0, 50 * MS)]);
    let mut stream = line.connect();
    ping(&mut stream, b"x").unwrap();
    line.breaks(0);
    assert!(was_reset(ping(&mut stream, b"x")));
    line.mend(0);
    let mut stream = line.connect();
    ping(&mut stream, &[1; 2000]).unwrap();
    line.breaks(1);
    ping(&mut stream, &[1; 499]).unwrap();
    assert!(was_reset(ping(&mut stream, &[1; 10])));
    line.mend(1);
    let mut stream = line.connect();
    ping(&mut stream, b"x").unwrap();
    line.breaks(2);
    let (result, took) = ms(|| stream.read(&mut [0; 1]));
    assert!(
        was_reset(result) && (45.0..1000.0).contains(&took),
        "{took}"
    );
}

#[test]
fn a_cut_closes_in_order_after_its_bytes() {
    let mut line = Line::new(vec![Fault {
        direction: Direction::Both,
        ..fault(What::Cut { after_bytes: 150 })
    }]);
    line.breaks(0);
    let mut stream = line.connect();
    stream.write_all(&[1; 100]).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("an orderly end");
    assert_eq!(back.len(), 50, "100 bytes there, 50 back");
}

#[test]
fn a_black_hole_holds_everything_and_delivers_it_at_its_end() {
    let mut line = Line::new(vec![fault(What::BlackHole)]);
    let mut old = line.connect();
    ping(&mut old, b"x").unwrap();
    line.breaks(0);
    let mut new = line.connect();
    old.write_all(b"o").unwrap();
    new.write_all(b"n").unwrap();
    assert!(is_silent(&mut old, 100) && is_silent(&mut new, 100));
    line.mend(0);
    let mut byte = [0; 1];
    old.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"o");
    new.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"n");
}

#[test]
fn a_half_open_connection_carries_the_other_direction() {
    let fault = Fault {
        direction: Direction::Down,
        ..fault(What::BlackHole)
    };
    let mut line = Line::new(vec![fault]);
    let mut stream = line.connect();
    line.breaks(0);
    stream.write_all(b"x").unwrap();
    // The byte reaches the store, and its answer does not come back.
    while line.cost().1 == 0 {
        std::thread::yield_now();
    }
    assert!(is_silent(&mut stream, 100));
    line.mend(0);
    let mut byte = [0; 1];
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
}

#[test]
fn refused_connections_fail_and_the_port_comes_back() {
    let mut line = Line::new(vec![fault(What::Refused)]);
    let mut old = line.connect();
    for _ in 0..3 {
        line.breaks(0);
        let refused = TcpStream::connect(line.addresses[0]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        ping(&mut old, b"x").unwrap();
        line.mend(0);
        ping(&mut line.connect(), b"x").unwrap();
    }
}

#[test]
fn slices_are_small_and_paused() {
    let slice = What::Slice {
        bytes: 10,
        pause_ns: 5 * MS,
    };
    let down = Fault {
        direction: Direction::Down,
        ..fault(slice)
    };
    let mut line = Line::new(vec![down]);
    line.breaks(0);
    let mut stream = line.connect();
    stream.write_all(&[1; 100]).unwrap();
    let mut pieces = Vec::new();
    let (_, took) = ms(|| {
        while pieces.iter().sum::<usize>() < 100 {
            pieces.push(stream.read(&mut [0; 100]).unwrap());
        }
    });
    assert!(took >= 44.0, "{took}");
    assert!(pieces.iter().all(|n| n % 10 == 0), "{pieces:?}");
}

#[test]
fn a_share_strikes_the_same_connections_each_time() {
    let struck = || {
        let some = Fault {
            share: 0.3,
            ..fault(What::Reset {
                after_bytes: 0,
                after_ns: 0,
            })
        };
        let mut line = Line::new(vec![some]);
        let mut all: Vec<TcpStream> = (0..60)
            .map(|_| {
                let mut stream = line.connect();
                ping(&mut stream, b"x").unwrap();
                stream
            })
            .collect();
        line.breaks(0);
        all.iter_mut()
            .map(|stream| ping(stream, b"y").is_err())
            .collect::<Vec<_>>()
    };
    let first = struck();
    let count = first.iter().filter(|hit| **hit).count();
    assert!((8..=28).contains(&count), "{count} of 60");
    assert_eq!(first, struck());
}

#[test]
fn a_ramp_grows() {
    let slow = Fault {
        ramp_ns: 400 * MS,
        ..fault(What::Reset {
            after_bytes: 0,
            after_ns: 0,
        })
    };
    let mut line = Line::new(vec![slow]);
    let mut all: Vec<TcpStream> = (0..40).map(|_| line.connect()).collect();
    all.iter_mut()
        .for_each(|stream| drop(ping(stream, b"x").unwrap()));
    let began = Instant::now();
    line.breaks(0);
    // Each read ends when the share reaches its connection; reads of those that went before return at once.
    for mut stream in all {
        let _ = stream.read(&mut [0; 1]);
    }
    let last = began.elapsed();
    assert!(last >= Duration::from_millis(250), "{last:?}");
}

#[test]
fn a_fault_strikes_the_endpoints_that_it_names() {
    let mut line = Line::before(vec![fault(What::Refused)], &[echo(), echo()], vec![1]);
    line.breaks(0);
    ping(&mut line.connect(), b"x").unwrap();
    assert!(TcpStream::connect(line.addresses[1]).is_err());
}

#[test]
fn answers_take_the_place_of_a_share_of_the_requests() {
    let busy = What::Answer {
        status: 503,
        body: "<Error/>".to_owned(),
        retry_after: 1,
    };
    let store = server(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            assert!(buffer[..n].ends_with(b"\r\n\r\n"));
            if stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .is_err()
            {
                break;
            }
        }
    });
    let mut line = Line::before(
        vec![Fault {
            share: 0.1,
            ..fault(busy)
        }],
        &[store],
        Vec::new(),
    );
    let mut stream = line.connect();
    let mut get = || {
        stream
            .write_all(b"GET /k HTTP/1.1\r\nHost: h\r\n\r\n")
            .unwrap();
        let mut buffer = [0; 4096];
        let n = stream.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).contains(" 503 ")
    };
    assert!((0..50).all(|_| !get()));
    line.breaks(0);
    let answered = (0..1000).filter(|_| get()).count();
    // Six standard deviations of a binomial.
    assert!((44..=157).contains(&answered), "{answered}");
    line.mend(0);
    assert!((0..50).all(|_| !get()));
}

#[test]
fn a_store_that_is_gone_looks_gone() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let line = Line::before(Vec::new(), &[gone], Vec::new());
    assert!(was_reset(ping(&mut line.connect(), b"x")));
}
