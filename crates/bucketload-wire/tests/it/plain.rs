//! Plain connections over loopback: heads, bodies, corner cases of the low-water mark, and the ways
//! a connection ends.

use crate::common::{
    an_early_answer_is_noticed, bodies_arrive, body, line, loopback, pair, poll_once, push_random,
    run,
};
use bucketload_wire::listen::Port;
use bucketload_wire::{Conn, Error, Sock, Step, http};

#[test]
fn unconsumed_bytes_are_shown_again() {
    run(async {
        let (mut a, mut b) = pair().await;
        assert!(a.is_fresh());
        a.send(b"one\ntw", b"o\nthree").await.unwrap();
        assert_eq!(line(&mut b).await.unwrap(), "one");
        assert_eq!(line(&mut b).await.unwrap(), "two");
        a.send(b"!\n", b"").await.unwrap();
        assert_eq!(line(&mut b).await.unwrap(), "three!");
        assert_eq!(b.unconsumed(), 0);
        assert!(!a.is_fresh());
    });
}

#[test]
fn bodies_around_the_low_water_mark_arrive_whole() {
    const MARK: usize = 1 << 20;
    let mut sizes = vec![0, 1, 65_535, 65_536, 65_537, 262_144];
    for marks in 1..=3 {
        for near in [-65_537_i64, -65_536, -2, -1, 0, 1, 2, 65_536, 65_537] {
            sizes.push((MARK as i64 * marks + near) as usize);
        }
    }
    // The largest mark, and twice as much.
    sizes.extend([8 * MARK + 1, 16 * MARK + 65_537]);
    push_random(&mut sizes, 40, 1);
    run(async {
        let (a, b) = pair().await;
        bodies_arrive(a, b, &sizes, [usize::MAX, 99_999]).await;
    });
}

/// The sender pauses inside the tail: the receiver must wake for every piece.
#[test]
fn a_body_that_trickles_in_wakes_its_reader() {
    run(async {
        let (mut a, mut b) = pair().await;
        let size = (1usize << 20) + 300_000;
        let sender = tokio::task::spawn_local(async move {
            let content = body(size);
            for chunk in content.chunks(150_001) {
                a.send(b"", chunk).await.unwrap();
                tokio::task::yield_now().await;
            }
            a
        });
        let mut seen = 0;
        b.recv_body(size as u64, |_, bytes| {
            seen += bytes.len();
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
        assert_eq!(seen, size);
        drop(sender.await);
    });
}

#[test]
fn a_small_exchange_costs_one_send_and_one_receive() {
    run(async {
        let (mut a, mut b) = pair().await;
        let server = tokio::task::spawn_local(async move {
            let content = body(4096);
            while line(&mut b).await.is_ok() {
                b.send(b"head\n", &content).await.unwrap();
            }
        });
        let exchange = async |a: &mut Conn| {
            a.send(b"GET\n", b"").await.unwrap();
            a.recv_with(|bytes| -> Result<_, Error> {
                Ok(if bytes.len() < 4096 + 5 {
                    Step::More(0)
                } else {
                    Step::Done(bytes.len(), ())
                })
            })
            .await
            .unwrap();
        };
        exchange(&mut a).await;
        let before = a.calls();
        for _ in 0..1000 {
            exchange(&mut a).await;
        }
        let after = a.calls();
        assert_eq!(after.send - before.send, 1000);
        // On a loaded machine, a response may rarely arrive in two segments.
        assert!(after.recv - before.recv <= 1010, "{after:?}");
        assert_eq!(after.setsockopt, before.setsockopt);
        drop(a);
        server.await.unwrap();
    });
}

#[test]
fn a_counted_large_body_costs_few_calls() {
    run(async {
        let (mut a, mut b) = pair().await;
        let size = 64usize << 20;
        let sender = tokio::task::spawn_local(async move {
            let arena = body(1 << 20);
            let piece = |at: u64| {
                let from = at as usize % (256 * 1024);
                &arena[from..256 * 1024]
            };
            a.send_body(b"", size as u64, piece).await.unwrap();
            a
        });
        b.discard(size as u64).await.unwrap();
        assert!(b.calls().total() <= 250, "{:?}", b.calls());
        drop(sender.await.unwrap());
    });
}

#[test]
fn different_ends_of_connections_give_different_errors() {
    run(async {
        // Closed while idle, which only the next exchange notices.
        let (mut a, b) = pair().await;
        drop(b);
        let outcome = match a.send(b"GET\n", b"").await {
            Ok(()) => line(&mut a).await.map(drop),
            Err(e) => Err(e),
        };
        assert!(
            matches!(outcome, Err(Error::ClosedBeforeAnswer)),
            "{outcome:?}"
        );
        assert!(a.is_broken());

        // Closed in the middle of an answer.
        let (mut a, mut b) = pair().await;
        b.send(b"half", b"").await.unwrap();
        drop(b);
        let outcome = line(&mut a).await;
        assert!(
            matches!(outcome, Err(Error::Closed { clean: true })),
            "{outcome:?}"
        );
        assert!(matches!(line(&mut a).await, Err(Error::Broken)));

        // Reset in the middle of a body.
        let (mut a, mut b) = pair().await;
        b.send(b"head\n", b"1234").await.unwrap();
        assert_eq!(line(&mut a).await.unwrap(), "head");
        b.reset();
        let outcome = a.discard(100).await;
        assert!(matches!(outcome, Err(Error::Reset)), "{outcome:?}");

        // Reset by a peer that has not answered.
        let (mut a, mut b) = pair().await;
        a.send(b"GET\n", b"").await.unwrap();
        line(&mut b).await.unwrap();
        b.reset();
        let outcome = line(&mut a).await;
        assert!(
            matches!(outcome, Err(Error::ClosedBeforeAnswer)),
            "{outcome:?}"
        );
    });
}

#[test]
fn a_dropped_future_breaks_the_connection() {
    run(async {
        let (mut a, mut b) = pair().await;
        {
            let wait = b.recv_body(10, |_, _| Ok::<_, Error>(()));
            tokio::pin!(wait);
            assert!(poll_once(wait.as_mut()).await.is_none());
        }
        assert!(b.is_broken());
        assert!(matches!(b.send(b"x", b"").await, Err(Error::Broken)));

        // Waiting for readability consumes nothing and may be dropped.
        {
            let wait = a.readable();
            tokio::pin!(wait);
            assert!(poll_once(wait.as_mut()).await.is_none());
        }
        assert!(!a.is_broken());
    });
}

#[test]
fn a_peer_that_answers_instead_of_reading_is_noticed() {
    run(async {
        let (a, b) = pair().await;
        an_early_answer_is_noticed(a, b).await;
    });
}

#[test]
fn a_head_that_never_ends_is_refused() {
    run(async {
        let (mut a, mut b) = pair().await;
        let server = tokio::task::spawn_local(async move {
            let _ = a.send(b"", &vec![b'x'; 200_000]).await;
            a
        });
        let outcome = line(&mut b).await;
        assert!(
            matches!(outcome, Err(Error::TooLarge { limit: 65_536 })),
            "{outcome:?}"
        );
        drop(b);
        drop(server.await.unwrap());
    });
}

#[test]
fn a_source_that_ends_early_is_an_error() {
    run(async {
        let (mut a, _b) = pair().await;
        let outcome = a.send_body(b"h", 10, |at| &b"0123"[at as usize..]).await;
        assert!(
            matches!(outcome, Err(Error::ShortBody { missing: 6 })),
            "{outcome:?}"
        );
        assert!(a.is_broken());
    });
}

#[test]
fn connecting_reports_the_reason_and_uses_the_source_address() {
    run(async {
        let port = Port::bind(loopback()).unwrap();
        let addr = port.addr();
        let from = "127.0.0.7".parse().unwrap();
        let sock = Sock::connect(addr, Some(from)).await.unwrap();
        assert_eq!(sock.local_addr().unwrap().ip(), from);
        drop(port);
        let refused = Sock::connect(addr, None).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let foreign = Sock::connect(addr, Some("192.0.2.1".parse().unwrap())).await;
        let foreign = foreign.unwrap_err();
        assert_eq!(foreign.kind(), std::io::ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn listeners_share_a_port_within_a_group_only() {
    run(async {
        let first = Port::bind(loopback()).unwrap();
        let second = first.another().unwrap();
        assert_eq!(first.addr(), second.addr());
        let stolen = Port::bind(first.addr()).unwrap_err();
        assert_eq!(stolen.kind(), std::io::ErrorKind::AddrInUse);
        let (first, second) = (first.listen().unwrap(), second.listen().unwrap());
        let addr = first.addr();
        let mut accepted = 0;
        for _ in 0..8 {
            let client = Sock::connect(addr, None).await.unwrap();
            tokio::select! {
                r = first.accept() => assert_eq!(r.unwrap().1, client.local_addr().unwrap()),
                r = second.accept() => assert_eq!(r.unwrap().1, client.local_addr().unwrap()),
            }
            accepted += 1;
        }
        assert_eq!(accepted, 8);
    });
}

#[test]
fn busy_polling_receives_the_same() {
    run(async {
        let (mut a, mut b) = pair().await;
        a.set_busy_poll(true);
        let server = tokio::task::spawn_local(async move {
            while let Ok(text) = line(&mut b).await {
                let answer = format!("{text}!\n");
                b.send(answer.as_bytes(), &body(3_000_000)).await.unwrap();
            }
        });
        for i in 0..5 {
            a.send(format!("{i}\n").as_bytes(), b"").await.unwrap();
            assert_eq!(line(&mut a).await.unwrap(), format!("{i}!"));
            a.discard(3_000_000).await.unwrap();
        }
        drop(a);
        server.await.unwrap();
    });
}

#[test]
fn a_body_is_sent_after_the_interim_answer() {
    run(async {
        let (mut a, mut b) = pair().await;
        let server = tokio::task::spawn_local(async move {
            let request = |bytes: &[u8]| -> Result<_, Error> {
                let head = http::parse_request(bytes, |request| {
                    (request.len, request.expect_continue, request.body)
                })?;
                Ok(match head {
                    None => Step::More(0),
                    Some((len, expects, body)) => Step::Done(len, (expects, body)),
                })
            };
            let head = b.recv_with(request).await.unwrap();
            assert_eq!(head, (true, http::Body::Length(5)));
            b.send(http::CONTINUE, b"").await.unwrap();
            b.discard(5).await.unwrap();
            b.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"")
                .await
                .unwrap();
        });
        let head = b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        let answer = |bytes: &[u8]| -> Result<_, Error> {
            Ok(match http::parse_response(bytes, false)? {
                None => Step::More(0),
                Some(head) => Step::Done(head.len, head),
            })
        };
        a.send(head, b"").await.unwrap();
        a.readable().await.unwrap();
        assert!(a.recv_with(answer).await.unwrap().is_interim());
        a.send(b"", b"12345").await.unwrap();
        assert_eq!(a.recv_with(answer).await.unwrap().status, 200);
        server.await.unwrap();
    });
}
