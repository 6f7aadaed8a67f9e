//! Operations on buckets.

use bucketload_core::driver::{Completion, ErrorKind, OpError, OpResult, Probe};

use super::ops_list::MAX_PAGE;
use super::session::{GcsSession, push_bucket};
use crate::http::answer::{as_text, unreadable};
use crate::http::{Body, Buffer, HttpSession as _, Render as _, Rendering as _};
use crate::json::{self, Value};

impl GcsSession {
    /// Starts a request about the project's buckets.
    fn begin_in_project(&mut self, method: &str) -> OpResult<Buffer> {
        if self.shared.config.project.is_empty() {
            return Err(OpError::new(
                ErrorKind::Rejected,
                "buckets belong to a project, and none is set; set GOOGLE_CLOUD_PROJECT",
            ));
        }
        let mut head = self.begin(method);
        head.text("/storage/v1/b?");
        head.parameter("project", &self.shared.config.project);
        Ok(head)
    }

    async fn on_bucket(&mut self, method: &str, bucket: &str, probe: &mut Probe) -> OpResult {
        let mut head = self.begin(method);
        push_bucket(&mut head, bucket);
        head.text("?fields=name");
        let mut request = self.bare(head);
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn make_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        let head = self.begin_in_project("POST")?;
        let mut document = Buffer::take();
        document.extend_from_slice(b"{\"name\":");
        json::push_string(&mut document, bucket);
        document.push(b'}');
        let mut request = self.with(head, "application/json", Body::Bytes(&document));
        self.complete(&mut request, probe).await
    }

    pub(crate) async fn head_bucket_timed(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.on_bucket("GET", bucket, probe).await
    }

    pub(crate) async fn remove_bucket(&mut self, bucket: &str, probe: &mut Probe) -> OpResult {
        self.on_bucket("DELETE", bucket, probe).await
    }

    pub(crate) async fn list_buckets(&mut self, probe: &mut Probe) -> OpResult {
        let mut body = Buffer::take();
        let mut from = Buffer::take();
        let mut items = 0;
        loop {
            let mut head = self.begin_in_project("GET")?;
            head.text("&maxResults=1000&fields=items(name),nextPageToken");
            if !from.is_empty() {
                head.parameter("pageToken", as_text(&from));
            }
            let mut request = self.bare(head);
            self.document(&mut request, &mut body, MAX_PAGE, probe)
                .await?;
            let before = std::mem::replace(&mut from, Buffer::take());
            json::values(&body, |path, value| match (path, value) {
                (["items", "[]", "name"], Value::Text(_)) => items += 1,
                (["nextPageToken"], Value::Text(text)) => text.push_to(&mut from),
                _ => {}
            })
            .map_err(|e| unreadable("list of buckets", e))?;
            if from.is_empty() || *from == *before {
                return Ok(Completion::of_items(items));
            }
        }
    }
}
