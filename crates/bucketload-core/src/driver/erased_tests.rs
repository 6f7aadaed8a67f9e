//! Type-erased sessions: operations end or are abandoned, and nothing is dropped twice.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::{AnyDriver, AnySession};
use crate::driver::{
    Admin, Capabilities, Completion, Driver, DriverFacts, KeyPage, RequestRoute, Session, WorkerId,
};
use crate::error::OpResult;
use crate::op::{OpClass, Request};
use crate::record::Probe;

#[derive(Default)]
struct Counts {
    begun: Cell<u32>,
    dropped: Cell<u32>,
    sessions: Cell<u32>,
}

struct Waiting(Rc<Counts>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.dropped.set(self.0.dropped.get() + 1);
    }
}

/// A session whose operations wait once and return the length of their key.
struct Slow(Rc<Counts>, u16);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.sessions.set(self.0.sessions.get() + 1);
    }
}

impl Session for Slow {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let _waiting = Waiting(Rc::clone(&self.0));
        self.0.begun.set(self.0.begun.get() + 1);
        self.1 += 1;
        let mut waited = false;
        poll_fn(|_| match std::mem::replace(&mut waited, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        probe.done();
        Ok(Completion {
            bytes: request.key.len() as u64,
            ..Completion::default()
        })
    }

    fn route(&self) -> RequestRoute {
        RequestRoute {
            endpoint: self.1,
            ..RequestRoute::default()
        }
    }
}

impl Admin for Slow {
    async fn ensure_bucket(&mut self, _: &str) -> OpResult<bool> {
        Ok(true)
    }
    async fn head_bucket(&mut self, _: &str) -> OpResult<()> {
        Ok(())
    }
    async fn delete_bucket(&mut self, _: &str) -> OpResult<()> {
        Ok(())
    }
    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        Ok(KeyPage {
            keys: vec![format!("{bucket}/{prefix}")],
            next: after.map(str::to_owned),
            note: None,
        })
    }
    async fn delete_keys(&mut self, _: &str, _: &[String]) -> OpResult<()> {
        Ok(())
    }
    async fn abort_uploads(&mut self, _: &str, _: &str) -> OpResult<u64> {
        Ok(7)
    }
    async fn put_small(&mut self, _: &str, _: &str, _: &[u8]) -> OpResult<()> {
        Ok(())
    }
    async fn get_small(&mut self, _: &str, key: &str) -> OpResult<Vec<u8>> {
        Ok(key.as_bytes().to_vec())
    }
}

struct Slows;

impl Driver for Slows {
    type Session = Slow;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: vec![OpClass::Get],
            verify: false,
            connections: false,
            parts_in_flight: false,
        }
    }
    fn facts(&self) -> DriverFacts {
        DriverFacts {
            driver: "slow".to_owned(),
            ..DriverFacts::default()
        }
    }
    async fn open(&self, worker: WorkerId, _: &mut Probe) -> OpResult<Slow> {
        Ok(Slow(Rc::default(), worker.thread))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it has to wait"),
    }
}

fn session() -> (AnySession, Rc<Counts>) {
    let counts = Rc::new(Counts::default());
    (AnySession::new(Slow(Rc::clone(&counts), 0)), counts)
}

#[test]
fn an_operation_that_ends_is_dropped_once_and_the_session_goes_on() {
    let (mut session, counts) = session();
    let mut probe = Probe::new(|| 5);
    let mut cx = Context::from_waker(Waker::noop());
    for turn in 1..=3 {
        let request = Request::plain(OpClass::Get, "b", "four");
        {
            let mut execute = pin!(session.execute(&request, &mut probe));
            assert!(execute.as_mut().poll(&mut cx).is_pending());
            assert_eq!((counts.begun.get(), counts.dropped.get()), (turn, turn - 1));
            let Poll::Ready(Ok(completion)) = execute.as_mut().poll(&mut cx) else {
                panic!("the second poll ends it");
            };
            assert_eq!(completion.bytes, 4);
        }
        assert_eq!(counts.dropped.get(), turn);
        assert_eq!(u32::from(session.route().endpoint), turn);
        assert_eq!(probe.done_ns(), 5);
    }
    drop(session);
    assert_eq!((counts.dropped.get(), counts.sessions.get()), (3, 1));
}

#[test]
fn an_abandoned_operation_is_dropped_with_everything_it_holds() {
    let (mut session, counts) = session();
    let mut probe = Probe::new(|| 5);
    let request = Request::plain(OpClass::Get, "b", "k");
    // Not begun, so there is nothing to drop.
    drop(session.execute(&request, &mut probe));
    assert_eq!((counts.begun.get(), counts.dropped.get()), (0, 0));
    {
        let mut execute = pin!(session.execute(&request, &mut probe));
        assert!(
            execute
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
                .is_pending()
        );
    }
    assert_eq!((counts.begun.get(), counts.dropped.get()), (1, 1));
    drop(session);
    assert_eq!((counts.dropped.get(), counts.sessions.get()), (1, 1));
}

#[test]
fn untimed_calls_reach_the_session() {
    let (mut session, _) = session();
    let page = now(session.list_keys("b", "p", Some("a"))).unwrap();
    assert_eq!(
        (page.keys, page.next),
        (vec!["b/p".to_owned()], Some("a".to_owned()))
    );
    assert_eq!(now(session.abort_uploads("b", "p")).unwrap(), 7);
    assert_eq!(now(session.get_small("b", "key")).unwrap(), b"key");
    assert!(now(session.ensure_bucket("b")).unwrap());
}

#[test]
fn a_type_erased_driver_reports_and_opens_the_same() {
    let driver = AnyDriver::new(Slows);
    assert_eq!(driver.clone().facts().driver, "slow");
    assert_eq!(driver.capabilities().classes, [OpClass::Get]);
    let worker = WorkerId {
        thread: 3,
        worker: 0,
    };
    let session = now(driver.open(worker, &mut Probe::new(|| 5))).unwrap();
    assert_eq!(session.route().endpoint, 3);
}
