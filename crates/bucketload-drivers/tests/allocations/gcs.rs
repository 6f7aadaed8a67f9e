//! Steady-state operations of the Google Cloud Storage driver allocate nothing. The responder runs on
//! other threads; allocations are counted on the client's thread only.

use bucketload_core::driver::{Driver, Session};
use bucketload_core::op::{ByteRange, KeySource, Op, OpClass};
use bucketload_core::payload::{Arena, PayloadKind};
use bucketload_drivers::gcs::{Account, GcsConfig, GcsDriver, GcsSession};
use bucketload_drivers::http::{Endpoint, Secret};
use bucketload_testkit::alloc::calls;
use bucketload_testkit::http::{HttpRequest, HttpResponse, serve};

use crate::support::{WORKER, op, probe, request, run};

fn answer(request: &HttpRequest) -> HttpResponse {
    match (request.method.as_str(), request.path.as_str()) {
        ("POST", "/batch/storage/v1") => {
            HttpResponse::new(200, "--b\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n".repeat(50))
        }
        ("POST", path) if path.contains("rewriteTo") => HttpResponse::new(200, r#"{"done":true}"#),
        ("POST", _) => HttpResponse::new(200, r#"{"kind":"storage#object"}"#),
        ("DELETE", _) => HttpResponse::new(204, ""),
        ("GET", _) if request.parameter("fields") == "size" => {
            HttpResponse::new(200, r#"{"size":"4096"}"#)
        }
        ("GET", _) if request.parameter("fields") == "metadata" => {
            HttpResponse::new(200, r#"{"metadata":{"a":"b"}}"#)
        }
        ("GET", path) if path.ends_with("/o") => {
            let items: Vec<_> = (0..50).map(|i| format!(r#"{{"name":"k\n{i}"}}"#)).collect();
            let token = match request.has("pageToken") {
                false => r#""nextPageToken":"a/b=","#,
                true => "",
            };
            HttpResponse::new(200, format!("{{{token}\"items\":[{}]}}", items.join(",")))
        }
        ("GET", _) if !request.header("range").is_empty() => HttpResponse::new(206, [0; 100]),
        ("GET", _) => HttpResponse::new(200, [0; 4096]),
        _ => HttpResponse::new(200, "{}"),
    }
}

struct Numbered;

impl KeySource for Numbered {
    fn render(&self, i: u64, out: &mut String) {
        out.clear();
        out.push_str("some/key/");
        out.push(char::from(b'0' + (i % 10) as u8));
    }
}

async fn session() -> GcsSession {
    let endpoint = Endpoint::parse(&format!("http://{}", serve(answer)), "test").unwrap();
    let mut config = GcsConfig::new(vec![endpoint]);
    config.account = Some(Account::Token(Secret::new("ya29.token")));
    let driver = GcsDriver::new(config).unwrap();
    driver.open(WORKER, &mut probe()).await.unwrap()
}

#[test]
fn steady_state_operations_allocate_nothing() {
    let arena = Arena::new(PayloadKind::Zeros, 1);
    run(async {
        let mut session = session().await;
        for class in [
            OpClass::Get,
            OpClass::RangeGet,
            OpClass::Put,
            OpClass::PutIfAbsent,
            OpClass::Head,
            OpClass::Delete,
            OpClass::DeleteMany,
            OpClass::List,
            OpClass::Copy,
            OpClass::PutTagging,
            OpClass::GetTagging,
            OpClass::DeleteTagging,
        ] {
            let op = Op {
                count: 50,
                range: (class == OpClass::RangeGet).then_some(ByteRange {
                    offset: 0,
                    len: 100,
                }),
                ..op(class, 4096)
            };
            let mut request = request(&op);
            request.content = Some(arena.content(0, 1, 0, 4096));
            request.keys = Some(&Numbered);
            request.source = "source";
            let mut before = 0;
            for round in 0..12 {
                if round == 2 {
                    before = calls();
                }
                let mut probe = probe();
                session.execute(&request, &mut probe).await.unwrap();
            }
            assert_eq!(calls() - before, 0, "{class}");
        }
    });
}

#[test]
fn a_small_request_costs_one_send_and_one_receive() {
    const REQUESTS: u64 = 300;
    let arena = Arena::new(PayloadKind::Random, 1);
    run(async {
        let mut session = session().await;
        for class in [OpClass::Get, OpClass::Put, OpClass::Head, OpClass::Delete] {
            let op = op(class, 4096);
            let mut request = request(&op);
            request.content = Some(arena.content(0, 1, 0, 4096));
            let before = session.calls().unwrap();
            for _ in 0..REQUESTS {
                session.execute(&request, &mut probe()).await.unwrap();
            }
            let after = session.calls().unwrap();
            assert_eq!(after.send - before.send, REQUESTS, "{class}");
            let received = after.recv - before.recv;
            // An answer may come in two pieces when the machine is busy.
            assert!(received <= REQUESTS + REQUESTS / 20, "{class}: {received}");
        }
    });
}

#[test]
fn an_idle_session_is_small() {
    assert!(
        size_of::<GcsSession>() <= 512,
        "{}",
        size_of::<GcsSession>()
    );
    run(async {
        let mut session = session().await;
        let op = op(OpClass::Get, 4096);
        let request = request(&op);
        let mut probe = probe();
        let future = session.execute(&request, &mut probe);
        let size = size_of_val(&future);
        assert!(size <= 1700, "{size}");
    });
}
