//! Operations on buckets.

use bucketload_core::driver::Completion;
use bucketload_core::error::{ErrorKind, OpError};
use bucketload_core::record::Probe;
use bucketload_s3::encode;

use super::ops_list::MAX_PAGE;
use super::ops_object::unreadable;
use super::session::{DONE, GcsSession, end, end_with_length, push_parameter};
use crate::http::outgoing::Body;
use crate::http::pool::Buffer;
use crate::http::sink::Ignore;
use crate::json::{self, Value};

impl GcsSession {
    /// The beginning of a request about the buckets of the project.
    fn begin_in_project(&self, method: &str) -> Result<Buffer, OpError> {
        let project = &self.shared.config.project;
        if project.is_empty() {
            return Err(OpError::new(
                ErrorKind::Rejected,
                "buckets belong to a project, and none is named; set GOOGLE_CLOUD_PROJECT",
            ));
        }
        let mut head = self.begin(method);
        head.extend_from_slice(b"/storage/v1/b?");
        push_parameter(&mut head, "project", project);
        Ok(head)
    }

    /// A request about one bucket.
    async fn about(
        &mut self,
        method: &str,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin(method);
        head.extend_from_slice(b"/storage/v1/b/");
        encode::push_query(&mut head, bucket);
        head.extend_from_slice(b"?fields=name");
        self.fields(&mut head);
        end(&mut head);
        self.perform(head, Body::Bytes(b""), &mut Ignore, probe)
            .await?;
        Ok(DONE)
    }

    pub(crate) async fn make_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        let mut head = self.begin_in_project("POST")?;
        let mut document = Buffer::take();
        document.extend_from_slice(b"{\"name\":");
        json::push_string(&mut document, bucket);
        document.push(b'}');
        self.fields(&mut head);
        head.extend_from_slice(b"Content-Type: application/json\r\n");
        end_with_length(&mut head, document.len() as u64);
        self.perform(head, Body::Bytes(&document), &mut Ignore, probe)
            .await?;
        Ok(DONE)
    }

    pub(crate) async fn head_one_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.about("GET", bucket, probe).await
    }

    pub(crate) async fn remove_bucket(
        &mut self,
        bucket: &str,
        probe: &mut Probe,
    ) -> Result<Completion, OpError> {
        self.about("DELETE", bucket, probe).await
    }

    pub(crate) async fn list_buckets(&mut self, probe: &mut Probe) -> Result<Completion, OpError> {
        let mut body = Buffer::take();
        let mut from = Buffer::take();
        let mut items = 0;
        loop {
            let mut head = self.begin_in_project("GET")?;
            head.extend_from_slice(b"&maxResults=1000&fields=items(name),nextPageToken");
            if !from.is_empty() {
                let token = std::str::from_utf8(&from).unwrap_or_default();
                push_parameter(&mut head, "pageToken", token);
            }
            self.fields(&mut head);
            end(&mut head);
            self.document(head, b"", &mut body, MAX_PAGE, probe).await?;
            let before = std::mem::replace(&mut from, Buffer::take());
            json::values(&body, |path, value| match (path, value) {
                (["items", "[]", "name"], Value::Text(_)) => items += 1,
                (["nextPageToken"], Value::Text(text)) => text.push_to(&mut from),
                _ => {}
            })
            .map_err(|e| unreadable("list of buckets", e))?;
            if from.is_empty() || *from == *before {
                return Ok(Completion { items, ..DONE });
            }
        }
    }
}
