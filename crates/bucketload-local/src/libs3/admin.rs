//! Untimed control-plane calls.

use bucketload_core::driver::{Admin, ErrorKind, KeyPage, OpResult, Probe};

use super::call::{CallState, Outgoing};
use super::session::Libs3Session;

impl Admin for Libs3Session {
    async fn ensure_bucket(&mut self, bucket: &str) -> OpResult<bool> {
        match self.test_bucket(bucket, &mut Probe::untimed()) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match self.make_bucket(bucket, &mut Probe::untimed()) {
            Ok(_) => Ok(true),
            // Another client created it first.
            Err(error) if error.kind == ErrorKind::Conflict => self
                .test_bucket(bucket, &mut Probe::untimed())
                .map(|_| false),
            Err(error) => Err(error),
        }
    }

    async fn head_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.test_bucket(bucket, &mut Probe::untimed()).map(drop)
    }

    async fn delete_bucket(&mut self, bucket: &str) -> OpResult<()> {
        self.remove_bucket(bucket, &mut Probe::untimed()).map(drop)
    }

    async fn list_keys(
        &mut self,
        bucket: &str,
        prefix: &str,
        after: Option<&str>,
    ) -> OpResult<KeyPage> {
        let (keys, more) =
            self.keys((bucket, prefix, after.unwrap_or("")), &mut Probe::untimed())?;
        Ok(KeyPage::up_to_last(keys, more))
    }

    async fn delete_keys(&mut self, bucket: &str, keys: &[String]) -> OpResult<()> {
        for key in keys {
            self.name(bucket, key)?;
            match self.delete_object(&mut Probe::untimed()) {
                Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn abort_uploads(&mut self, bucket: &str, prefix: &str) -> OpResult<u64> {
        let functions = &self.inner.library.functions;
        if functions.list_uploads.is_none() || functions.abort_multipart.is_none() {
            return Ok(0);
        }
        let mut aborted = 0;
        let mut before = u64::MAX;
        loop {
            let mut names = Vec::new();
            let there = match self.uploads(bucket, prefix, Some(&mut names), &mut Probe::untimed())
            {
                // Some servers and some libraries cannot list uploads.
                Err(error) if error.kind == ErrorKind::Unsupported => return Ok(aborted),
                found => found?,
            };
            // An abort does not report its outcome. Continue only while the number of uploads falls.
            if there == 0 || (aborted > 0 && there >= before) {
                break;
            }
            before = there;
            for (key, id) in names {
                self.abort(bucket, &key, &id)?;
                aborted += 1;
            }
        }
        Ok(aborted)
    }

    async fn put_small(&mut self, bucket: &str, key: &str, body: &[u8]) -> OpResult<()> {
        self.name(bucket, key)?;
        self.put_object(
            body.len() as u64,
            Outgoing::Bytes(body),
            &mut Probe::untimed(),
        )
    }

    async fn get_small(&mut self, bucket: &str, key: &str) -> OpResult<Vec<u8>> {
        self.name(bucket, key)?;
        let mut body = Vec::new();
        let mut probe = Probe::untimed();
        let mut call = CallState::new(&mut probe);
        call.body = Some(&mut body);
        self.get_object(0, 0, &mut call)?;
        drop(call);
        Ok(body)
    }
}
