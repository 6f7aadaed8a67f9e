//! The gRPC service, written by hand: both calls carry plain bytes, so no code needs to be generated.
//!
//! | call | purpose |
//! |---|---|
//! | `/bucketload.Agents/Session` | a stream of messages in both directions ([`crate::message`]), for one run |
//! | `/bucketload.Agents/Probe` | identity, version and current run of the listener (JSON) |
//!
//! Either side may listen: an agent that waits for a coordinator, or a coordinator that agents call. The
//! messages show which side is which, not the direction of the call.

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
use crate::error::{CallError, transport_text};
use crate::message::MAX_MESSAGE;

const SESSION: &str = "/bucketload.Agents/Session";
const PROBE: &str = "/bucketload.Agents/Probe";

/// Capacity of the queue of outgoing messages other than operation log rows.
const CONTROL_AHEAD: usize = 64;
/// Capacity of the queue of outgoing operation log rows.
const OPS_AHEAD: usize = 16;
/// Flow-control windows, bytes: small enough that a thousand agents can fill theirs.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;

/// Passes bytes through: messages are encoded already.
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

/// Queues for outgoing messages. Control messages overtake rows of the operation log.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    pub(crate) control: mpsc::Sender<Bytes>,
    pub(crate) ops: mpsc::Sender<Bytes>,
}

/// The receiving ends of an [`Outbox`], as the stream to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    control: mpsc::Receiver<Bytes>,
    ops: mpsc::Receiver<Bytes>,
}

/// Makes an outbox and its stream, which ends when every clone of the outbox is gone.
pub(crate) fn outgoing() -> (Outbox, Outgoing) {
    let (control, control_out) = mpsc::channel(CONTROL_AHEAD);
    let (ops, ops_out) = mpsc::channel(OPS_AHEAD);
    let outgoing = Outgoing {
        control: control_out,
        ops: ops_out,
    };
    (Outbox { control, ops }, outgoing)
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
            // The control queue is still open.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// [`Outgoing`] as the response of a server.
struct Answer(Outgoing);

impl Stream for Answer {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(cx).map(|m| m.map(Ok))
    }
}

/// An open session with another process.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) out: Outbox,
    pub(crate) incoming: Streaming<Bytes>,
    /// Name of the other side, for messages.
    pub(crate) peer: String,
    /// Whether messages cross the network unencrypted.
    pub(crate) plaintext: bool,
}

/// Handles the calls that a listening side receives.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Accepts a session, or says why not.
    fn session(&self, link: Link) -> Result<(), Status>;

    /// Returns the answer to a probe.
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
                plaintext: !encrypted && address.is_some_and(|a| !is_here(a.ip())),
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

/// The service: authenticates callers and passes their calls to the handler.
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
        // Each connection carries one session and perhaps a probe.
        .max_concurrent_streams(8);
    match &access.tls {
        None => Ok(server),
        Some(tls) => server.tls_config(tls.server()),
    }
}

/// Serves calls at `listener` until `shutdown` resolves.
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
        .map_err(|e| transport_text(&e))?
        .serve_with_incoming_shutdown(service, incoming, shutdown)
        .await
        .map_err(|e| transport_text(&e))
}

/// Serves calls over one existing connection, such as standard input and output.
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
        .map_err(|e| transport_text(&e))?
        .serve_with_incoming_shutdown(Agents { access, handler }, incoming, shutdown)
        .await
        .map_err(|e| transport_text(&e))
}

fn endpoint(address: &str, access: &Access) -> Result<Endpoint, CallError> {
    let refused = |text: String| CallError::Refused(format!("{address}: {text}"));
    let scheme = if access.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(|e| refused(transport_text(&e)))?
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
        .map_err(|e| refused(transport_text(&e)))
}

async fn connect(address: &str, access: &Access) -> Result<Channel, CallError> {
    endpoint(address, access)?
        .connect()
        .await
        .map_err(|e| CallError::Unreachable(transport_text(&e)))
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

/// Opens a session with whoever listens at `address` (`HOST:PORT`).
pub(crate) async fn call(address: &str, access: &Access) -> Result<Link, CallError> {
    let channel = connect(address, access).await?;
    let plaintext = access.tls.is_none() && leaves(address).await;
    converse(channel, (address, plaintext), access).await
}

/// Opens a session over an existing connection.
pub(crate) async fn call_over<T>(stream: T, peer: &str, access: &Access) -> Result<Link, CallError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = Some(hyper_util::rt::TokioIo::new(stream));
    let connector = tower::service_fn(move |_: http::Uri| {
        // The stream cannot be opened a second time.
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
        .map_err(|e| CallError::Unreachable(transport_text(&e)))?;
    converse(channel, (peer, false), access).await
}

/// Whether an address is loopback.
fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether data sent to `address` (`HOST:PORT`) may leave this machine.
async fn leaves(address: &str) -> bool {
    match tokio::net::lookup_host(address).await {
        Ok(mut all) => !all.all(|address| is_here(address.ip())),
        Err(_) => true,
    }
}

async fn converse(
    channel: Channel,
    (peer, plaintext): (&str, bool),
    access: &Access,
) -> Result<Link, CallError> {
    let mut grpc = client(channel);
    let ready = grpc.ready().await;
    ready.map_err(|e| CallError::Unreachable(transport_text(&e)))?;
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
        plaintext,
    })
}

/// Probes whoever listens at `address`, `times` over one connection; `answered` receives each answer.
pub(crate) async fn probe(
    address: &str,
    access: &Access,
    times: usize,
    mut answered: impl FnMut(Bytes),
) -> Result<(), CallError> {
    let mut grpc = client(connect(address, access).await?);
    for _ in 0..times {
        let ready = grpc.ready().await;
        ready.map_err(|e| CallError::Unreachable(transport_text(&e)))?;
        let path = PathAndQuery::from_static(PROBE);
        let answer = grpc
            .unary(request(Bytes::new(), access), path, BytesCodec)
            .await
            .map_err(|status| CallError::of(&status))?;
        answered(answer.into_inner());
    }
    Ok(())
}
