//! One worker's session: maps operations to requests, and refusals to errors.

use std::net::IpAddr;
use std::sync::Arc;

use bucketload_core::driver::{
    Completion, ErrorKind, OpClass, OpError, OpResult, Probe, Request, RequestRoute, Session,
    content_of,
};
use bucketload_s3::encode;

use super::driver::Inner;
use crate::http::answer::{as_text, kind_of, no_next_page, one_line, refusal_text, size_of_object};
use crate::http::{
    Body, Buffer, Client, Connection, Endpoint, HttpSession, Ignore, Plain, Reading, Refusal,
    Render as _, Rendering, Span, park,
};

/// Maximum size of a page of names, in bytes.
const MAX_PAGE: usize = 8 << 20;

/// A session of the toy driver.
pub struct ToySession {
    inner: Arc<Inner>,
    endpoint: usize,
    connection: Connection,
}

impl HttpSession for ToySession {
    fn route(&mut self) -> (&mut Connection, &Client, &Endpoint) {
        let client = &self.inner.client;
        (
            &mut self.connection,
            client,
            &client.endpoints()[self.endpoint],
        )
    }

    #[cold]
    fn refused(&mut self, status: u16, refusal: &Refusal) -> OpError {
        let text = one_line(&String::from_utf8_lossy(&refusal.body));
        OpError::with_status(kind_of(status), status, refusal_text(status, "", &text))
    }
}

impl Rendering for ToySession {
    fn fields(&mut self, head: &mut Vec<u8>) {
        head.extend_from_slice(self.inner.client.fields(self.endpoint));
    }
}

impl ToySession {
    pub(super) fn new(inner: Arc<Inner>, endpoint: usize, source: Option<IpAddr>) -> Self {
        Self {
            connection: Connection::new(endpoint, source),
            inner,
            endpoint,
        }
    }

    /// Starts a request to an object, or to the bucket if the key is empty.
    pub(super) fn about(&mut self, method: &str, bucket: &str, key: &str) -> Buffer {
        let mut head = self.begin(method);
        head.push(b'/');
        encode::push_query(&mut head, bucket);
        if !key.is_empty() {
            head.push(b'/');
            encode::push_key(&mut head, key);
        }
        head
    }

    async fn get(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let mut reading = Reading::of(request);
        let mut head = self.about("GET", request.bucket, request.key);
        self.fields(&mut head);
        head.range(reading.range());
        let mut get = Plain::bare(head);
        let reply = self.perform(&mut get, &mut reading, probe).await?;
        reading.finish(&reply)
    }

    async fn put(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let span = Span::whole(content_of(request)?);
        let head = self.about("PUT", request.bucket, request.key);
        let mut put = self.with(head, "application/octet-stream", Body::Content(span));
        self.complete(&mut put, probe).await?;
        Ok(Completion::of_bytes(span.len))
    }

    async fn head(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let head = self.about("HEAD", request.bucket, request.key);
        let mut look = self.bare(head);
        size_of_object(&self.perform(&mut look, &mut Ignore, probe).await?)
    }

    async fn delete(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let head = self.about("DELETE", request.bucket, request.key);
        let mut delete = self.bare(head);
        self.complete(&mut delete, probe).await
    }

    /// Lists under `request.key`; counts names and groups.
    async fn list(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        let (mut body, mut after) = (Buffer::take(), String::new());
        let (mut items, mut pages) = (0, 0);
        loop {
            let names = Names {
                prefix: request.key,
                delimiter: request.delimiter,
                count: request.op.count,
                after: &after,
            };
            self.page(request.bucket, &names, &mut body, probe).await?;
            let next = each_line(&body, |kind, name| {
                items += 1;
                if let Some(watch) = request.watch.filter(|_| kind == "key") {
                    watch.listed(name);
                }
            });
            pages += 1;
            match next {
                Some(_) if request.op.pages > 0 && pages >= request.op.pages => {
                    if let Some(watch) = request.watch {
                        watch.cut_short();
                    }
                    return Ok(Completion::of_items(items));
                }
                Some(next) if next == after => return Err(no_next_page()),
                Some(next) => after = next,
                None => return Ok(Completion::of_items(items)),
            }
        }
    }

    /// Requests a page of names and stores it in `body`.
    pub(super) async fn page(
        &mut self,
        bucket: &str,
        names: &Names<'_>,
        body: &mut Vec<u8>,
        probe: &mut Probe,
    ) -> OpResult<()> {
        let mut head = self.about("GET", bucket, "");
        head.push(b'?');
        head.parameter("prefix", names.prefix);
        head.parameter("delimiter", names.delimiter);
        head.parameter("after", names.after);
        head.number("count", names.count);
        let mut list = self.bare(head);
        self.document(&mut list, body, MAX_PAGE, probe)
            .await
            .map(drop)
    }
}

/// The parameters of a page of names.
pub(super) struct Names<'a> {
    pub(super) prefix: &'a str,
    pub(super) delimiter: &'a str,
    /// Maximum number of entries; 0 leaves the number to the server.
    pub(super) count: u64,
    /// The name after which the page starts.
    pub(super) after: &'a str,
}

/// Calls `each` with the kind (`key` or `group`) and name of each entry of a page; returns where the next page starts.
pub(super) fn each_line(page: &[u8], mut each: impl FnMut(&str, &str)) -> Option<String> {
    let mut next = None;
    for line in as_text(page).lines() {
        match line.split_once(' ') {
            Some(("next", name)) => next = Some(encode::decode(name)),
            Some((kind, name)) => each(kind, &encode::decode(name)),
            None => {}
        }
    }
    next
}

impl Session for ToySession {
    async fn execute(&mut self, request: &Request<'_>, probe: &mut Probe) -> OpResult {
        match request.op.class {
            OpClass::Get | OpClass::RangeGet => self.get(request, probe).await,
            OpClass::Put => self.put(request, probe).await,
            OpClass::Head => self.head(request, probe).await,
            OpClass::Delete => self.delete(request, probe).await,
            // Rare operations get their memory only while they run, which keeps idle sessions small.
            OpClass::List => park(self.list(request, probe)).await,
            class => Err(OpError::new(
                ErrorKind::Unsupported,
                format!("the toy API has no {class}"),
            )),
        }
    }

    fn route(&self) -> RequestRoute {
        self.connection.route()
    }
}
