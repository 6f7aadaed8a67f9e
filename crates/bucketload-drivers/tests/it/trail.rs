//! What a session reports besides the outcome: when the request was sent, who answered, and over which connection.

use crate::support::{Answer, Responder, op, probe, request, run};
use bucketload_core::driver::Session;
use bucketload_core::op::OpClass;
use bucketload_core::payload::{Arena, PayloadKind};

const IDS: &str = "X-Amz-Request-Id: 17A9\r\nx-amz-id-2: host/1=\r\n";

#[test]
fn only_a_request_of_several_system_calls_has_a_sent_time() {
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let server = Responder::start(|_| Answer::ok("")).await;
        let mut session = server.session().await;
        let put_op = op(OpClass::Put, 4096);
        let mut put = request(&put_op);
        put.content = Some(arena.content(0, 1, 0, 4096));
        let mut small = probe();
        session.execute(&put, &mut small).await.unwrap();
        assert_eq!(small.sent_ns(), 0, "one call: started is the instant");
        // More than any socket accepts at once.
        put.content = Some(arena.content(0, 1, 0, 64 << 20));
        let mut large = probe();
        session.execute(&put, &mut large).await.unwrap();
        assert!(large.started_ns() < large.sent_ns());
        assert!(large.sent_ns() <= large.first_byte_ns());
        assert_eq!(large.status(), 200);
    });
}

#[test]
fn identifiers_are_recorded_on_request() {
    run(async {
        let server = Responder::start(|_| Answer::with_fields(200, IDS, [1; 10])).await;
        let mut session = server.session().await;
        let get_op = op(OpClass::Get, 10);
        let get = request(&get_op);
        let mut probe = probe();
        session.execute(&get, &mut probe).await.unwrap();
        assert_eq!(probe.ids(), None, "nobody wants them");
        for (from, wanted) in [(0, true), (probe.now() + 60_000_000_000, false)] {
            probe.reset();
            probe.want_ids_from(from);
            session.execute(&get, &mut probe).await.unwrap();
            let found = probe.ids().map(|ids| {
                let ids = [&ids.request_id, &ids.extended_id];
                ids.map(|id| id.as_str().to_owned())
            });
            let ids = ["17A9", "host/1="].map(str::to_owned);
            assert_eq!(found, wanted.then_some(ids), "from {from}");
        }
        // Refusals have identifiers too.
        let server = Responder::start(|_| Answer::with_fields(503, IDS, "")).await;
        let mut session = server.session().await;
        probe.reset();
        probe.want_ids_from(0);
        session.execute(&get, &mut probe).await.unwrap_err();
        assert_eq!(probe.ids().unwrap().request_id.as_str(), "17A9");
        assert_eq!(probe.status(), 503);
    });
}

#[test]
fn the_connection_number_changes_with_the_connection() {
    run(async {
        let server = Responder::start(|_| Answer::ok([1; 10]).closing()).await;
        let mut session = server.session().await;
        let get_op = op(OpClass::Get, 10);
        let get = request(&get_op);
        let mut places = Vec::new();
        for _ in 0..3 {
            session.execute(&get, &mut probe()).await.unwrap();
            places.push(session.route());
        }
        assert!(places.iter().all(|p| p.endpoint == 0 && p.local_port > 0));
        let numbers: Vec<u64> = places.iter().map(|p| p.connection).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    });
}
