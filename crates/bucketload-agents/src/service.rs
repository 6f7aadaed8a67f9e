//! The gRPC service, written by hand: two calls of bytes, so that nothing has to be generated.
//!
//! | call | what for |
//! |---|---|
//! | `/bucketload.Agents/Session` | both ways a stream of messages ([`crate::message`]), for one run |
//! | `/bucketload.Agents/Probe` | who is there, of which version, and busy with what (JSON) |
//!
//! Whoever listens serves it: an agent that waits to be called, or a coordinator that agents call.
//! Which side is which shows in the messages, not in who called.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use futures_util::Stream;
use http::HeaderMap;
use http::uri::PathAndQuery;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::client::Grpc as ClientGrpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc as ServerGrpc, StreamingService, UnaryService};
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};
use tower::Service;

use crate::access::Access;
use crate::error::{CallError, transport};
use crate::message::MAX_MESSAGE;

const SESSION: &str = "/bucketload.Agents/Session";
const PROBE: &str = "/bucketload.Agents/Probe";

/// Messages on their way out that are not rows of the operation log.
const CONTROL_AHEAD: usize = 64;
/// Messages with rows of the operation log on their way out.
const OPS_AHEAD: usize = 16;
/// Bytes that may be on their way before the receiver has read them, per stream and per connection:
/// what a thousand agents may fill.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;

/// Messages are bytes already.
#[derive(Clone, Copy, Debug, Default)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let len = from.remaining();
        Ok(Some(from.copy_to_bytes(len)))
    }
}

/// Where one side puts what it says. Control messages overtake rows of the operation log.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    pub(crate) control: mpsc::Sender<Bytes>,
    pub(crate) ops: mpsc::Sender<Bytes>,
}

/// What is said, on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    control: mpsc::Receiver<Bytes>,
    ops: mpsc::Receiver<Bytes>,
}

/// Both ends of a side's messages; the stream ends when every [`Out`] is gone.
pub(crate) fn outgoing() -> (Out, Outgoing) {
    let (control, control_out) = mpsc::channel(CONTROL_AHEAD);
    let (ops, ops_out) = mpsc::channel(OPS_AHEAD);
    let outgoing = Outgoing {
        control: control_out,
        ops: ops_out,
    };
    (Out { control, ops }, outgoing)
}

impl Stream for Outgoing {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.control.poll_recv(cx) {
            Poll::Ready(Some(message)) => return Poll::Ready(Some(message)),
            Poll::Ready(None) => return self.ops.poll_recv(cx),
            Poll::Pending => {}
        }
        match self.ops.poll_recv(cx) {
            Poll::Ready(Some(message)) => Poll::Ready(Some(message)),
            // The other one is still open.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The same, as a server's answer.
struct Answer(Outgoing);

impl Stream for Answer {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|m| m.map(Ok))
    }
}

/// A conversation with another process.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) out: Out,
    pub(crate) incoming: Streaming<Bytes>,
    /// The other side, for messages.
    pub(crate) peer: String,
    /// Whether what is said crosses a network where others can read it.
    pub(crate) clear: bool,
}

/// What a side that listens does with calls.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Takes a conversation, or says why not.
    fn session(&self, link: Link) -> Result<(), Status>;

    /// Says who is there.
    fn probe(&self) -> Bytes;

    /// A caller was refused.
    fn refused(&self, _reason: &str) {}
}

type Answering<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

struct SessionCall {
    handler: Arc<dyn Handler>,
    encrypted: bool,
}

impl StreamingService<Bytes> for SessionCall {
    type Response = Bytes;
    type ResponseStream = Answer;
    type Future = Answering<Answer>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let (handler, encrypted) = (Arc::clone(&self.handler), self.encrypted);
        Box::pin(async move {
            let info = request.extensions().get::<TcpConnectInfo>();
            let address = info.and_then(TcpConnectInfo::remote_addr);
            let (out, outgoing) = outgoing();
            let link = Link {
                out,
                incoming: request.into_inner(),
                peer: address.map_or_else(|| "stdio".to_owned(), |a: SocketAddr| a.to_string()),
                clear: !encrypted && address.is_some_and(|a| !is_here(a.ip())),
            };
            handler.session(link)?;
            Ok(Response::new(Answer(outgoing)))
        })
    }
}

struct ProbeCall(Arc<dyn Handler>);

impl UnaryService<Bytes> for ProbeCall {
    type Response = Bytes;
    type Future = Answering<Bytes>;

    fn call(&mut self, _request: Request<Bytes>) -> Self::Future {
        let answer = self.0.probe();
        Box::pin(async move { Ok(Response::new(answer)) })
    }
}

/// The service: judges callers and hands their calls to the handler.
#[derive(Clone)]
struct Agents {
    access: Arc<Access>,
    handler: Arc<dyn Handler>,
}

impl Service<http::Request<Body>> for Agents {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if let Err(refused) = self.access.admit(request.headers()) {
            self.handler.refused(refused.message());
            return Box::pin(async move { Ok(refused.into_http()) });
        }
        let handler = Arc::clone(&self.handler);
        let encrypted = self.access.tls.is_some();
        Box::pin(async move {
            let mut grpc = ServerGrpc::new(BytesCodec).max_decoding_message_size(MAX_MESSAGE);
            Ok(match request.uri().path() {
                SESSION => {
                    let call = SessionCall { handler, encrypted };
                    grpc.streaming(call, request).await
                }
                PROBE => grpc.unary(ProbeCall(handler), request).await,
                _ => Status::unimplemented("there is no such call").into_http(),
            })
        })
    }
}

fn server(access: &Access) -> Result<Server, tonic::transport::Error> {
    let server = Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // Each connection carries one conversation and perhaps a probe.
        .max_concurrent_streams(8);
    match &access.tls {
        None => Ok(server),
        Some(tls) => server.tls_config(tls.server()),
    }
}

/// Serves calls at `listener` until `shutdown` ends.
pub(crate) async fn serve(
    listener: TcpListener,
    access: Arc<Access>,
    handler: Arc<dyn Handler>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), String> {
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = Agents {
        access: Arc::clone(&access),
        handler,
    };
    server(&access)
        .map_err(|e| transport(&e))?
        .serve_with_incoming_shutdown(service, incoming, shutdown)
        .await
        .map_err(|e| transport(&e))
}

/// Serves calls over one connection that stands already, such as standard input and output.
pub(crate) async fn serve_one<T>(
    stream: T,
    access: Arc<Access>,
    handler: Arc<dyn Handler>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), String>
where
    T: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    use futures_util::StreamExt as _;
    let only = futures_util::stream::once(async { Ok::<_, Infallible>(stream) });
    let incoming = Box::pin(only.chain(futures_util::stream::pending()));
    let plain = Access {
        tls: None,
        ..(*access).clone()
    };
    server(&plain)
        .map_err(|e| transport(&e))?
        .serve_with_incoming_shutdown(Agents { access, handler }, incoming, shutdown)
        .await
        .map_err(|e| transport(&e))
}

fn endpoint(address: &str, access: &Access) -> Result<Endpoint, CallError> {
    let refused = |text: String| CallError::Refused(format!("{address}: {text}"));
    let scheme = if access.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|e| refused(transport(&e)))?
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .connect_timeout(std::time::Duration::from_secs(5));
    let Some(tls) = &access.tls else {
        return Ok(endpoint);
    };
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    endpoint
        .tls_config(tls.client(host))
        .map_err(|e| refused(transport(&e)))
}

async fn connect(address: &str, access: &Access) -> Result<Channel, CallError> {
    endpoint(address, access)?
        .connect()
        .await
        .map_err(|e| CallError::Unreachable(transport(&e)))
}

fn client(channel: Channel) -> ClientGrpc<Channel> {
    ClientGrpc::new(channel).max_decoding_message_size(MAX_MESSAGE)
}

fn request<T>(body: T, access: &Access) -> Request<T> {
    let mut headers = HeaderMap::new();
    access.present(&mut headers);
    let mut request = Request::new(body);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    request
}

/// Begins a conversation with whoever listens at `address` (`HOST:PORT`).
pub(crate) async fn call(address: &str, access: &Access) -> Result<Link, CallError> {
    let channel = connect(address, access).await?;
    let clear = access.tls.is_none() && leaves(address).await;
    converse(channel, (address, clear), access).await
}

/// Begins a conversation over a connection that stands already.
pub(crate) async fn call_over<T>(stream: T, peer: &str, access: &Access) -> Result<Link, CallError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = Some(hyper_util::rt::TokioIo::new(stream));
    let connector = tower::service_fn(move |_: http::Uri| {
        // There is no second one.
        let stream = stream.take().ok_or(std::io::ErrorKind::NotConnected);
        async move { stream.map_err(std::io::Error::from) }
    });
    let plain = Access {
        tls: None,
        ..access.clone()
    };
    // The name only fills a header.
    let channel = endpoint("agent.invalid:1", &plain)?
        .connect_with_connector(connector)
        .await
        .map_err(|e| CallError::Unreachable(transport(&e)))?;
    converse(channel, (peer, false), access).await
}

/// Whether an address is this machine's own.
fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether what is sent to `address` (`HOST:PORT`) may leave this machine.
async fn leaves(address: &str) -> bool {
    match tokio::net::lookup_host(address).await {
        Ok(mut all) => !all.all(|address| is_here(address.ip())),
        Err(_) => true,
    }
}

async fn converse(
    channel: Channel,
    (peer, clear): (&str, bool),
    access: &Access,
) -> Result<Link, CallError> {
    let mut grpc = client(channel);
    let ready = grpc.ready().await;
    ready.map_err(|e| CallError::Unreachable(transport(&e)))?;
    let (out, outgoing) = outgoing();
    let response = grpc
        .streaming(
            request(outgoing, access),
            PathAndQuery::from_static(SESSION),
            BytesCodec,
        )
        .await
        .map_err(|status| CallError::of(&status))?;
    Ok(Link {
        out,
        incoming: response.into_inner(),
        peer: peer.to_owned(),
        clear,
    })
}

/// Asks who listens at `address`, `times` over one connection; `answered` gets each answer as it comes.
pub(crate) async fn probe(
    address: &str,
    access: &Access,
    times: usize,
    mut answered: impl FnMut(Bytes),
) -> Result<(), CallError> {
    let mut grpc = client(connect(address, access).await?);
    for _ in 0..times {
        let ready = grpc.ready().await;
        ready.map_err(|e| CallError::Unreachable(transport(&e)))?;
        let path = PathAndQuery::from_static(PROBE);
        let answer = grpc
            .unary(request(Bytes::new(), access), path, BytesCodec)
            .await
            .map_err(|status| CallError::of(&status))?;
        answered(answer.into_inner());
    }
    Ok(())
}
