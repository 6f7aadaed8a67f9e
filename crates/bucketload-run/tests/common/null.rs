//! A driver whose operations end at once: only the cost of the runner itself remains.
#![allow(dead_code, unreachable_pub, missing_docs)]

use bucketload_core::driver::{
    Admin, Capabilities, Completion, Driver, DriverFacts, KeyPage, Session, WorkerId,
};
use bucketload_core::error::OpError;
use bucketload_core::op::{OpClass, Request};
use bucketload_core::record::Probe;

pub struct Null;

pub struct NullSession;

impl Driver for Null {
    type Session = NullSession;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            classes: OpClass::ALL.to_vec(),
            verify: true,
            connections: false,
            parts_in_flight: false,
        }
    }

    fn facts(&self) -> DriverFacts {
        DriverFacts::default()
    }

    async fn open(&self, _: WorkerId, _: &mut Probe) -> Result<NullSession, OpError> {
        Ok(NullSession)
    }
}

impl Session for NullSession {
    async fn execute(
        &mut self,
        request: &Request<'_>,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        probe.started();
        probe.first_byte_and_done();
        Ok(Completion {
            bytes: request.op.size,
            ..Completion::default()
        })
    }
}

impl Admin for NullSession {
    async fn ensure_bucket(&mut self, _: &str) -> Result<bool, OpError> {
        Ok(false)
    }
    async fn head_bucket(&mut self, _: &str) -> Result<(), OpError> {
        Ok(())
    }
    async fn delete_bucket(&mut self, _: &str) -> Result<(), OpError> {
        Ok(())
    }
    async fn list_keys(&mut self, _: &str, _: &str, _: Option<&str>) -> Result<KeyPage, OpError> {
        Ok(KeyPage::default())
    }
    async fn delete_keys(&mut self, _: &str, _: &[String]) -> Result<(), OpError> {
        Ok(())
    }
    async fn abort_uploads(&mut self, _: &str, _: &str) -> Result<u64, OpError> {
        Ok(0)
    }
    async fn put_small(&mut self, _: &str, _: &str, _: &[u8]) -> Result<(), OpError> {
        Ok(())
    }
    async fn get_small(&mut self, _: &str, _: &str) -> Result<Vec<u8>, OpError> {
        Ok(Vec::new())
    }
}
