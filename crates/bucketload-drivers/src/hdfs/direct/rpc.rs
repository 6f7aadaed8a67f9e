//! Hadoop's RPC (version 9, `SIMPLE` authentication): one connection to the name node, one call at a
//! time (`RpcHeader.proto`, `IpcConnectionContext.proto`, `ProtobufRpcEngine2.proto`).
//!
//! ```text
//! connection   "hrpc", 9, service class 0, no SASL · frame{header of call -3, context}
//! call         frame{header, request header, request}
//! answer       frame{header, response}              frame = length, then length-prefixed messages
//! ```

use bucketload_core::error::{ErrorKind, OpError, OpResult};
use bucketload_core::record::Probe;
use bucketload_wire::{Conn, Error as WireError, Step};

use super::failure::broken;
use super::proto::{self, Fields, Malformed};
use crate::hadoop::exception::to_error;
use crate::http::connect;
use crate::http::endpoint::Endpoint;
use crate::http::pool::Buffer;

/// The protocol of the calls.
const PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
/// Bytes that identify a client.
pub(super) const ID: usize = 16;
/// Longest accepted answer in bytes (Hadoop's own limit, `ipc.maximum.response.length`).
const MAX_ANSWER: usize = 128 << 20;
/// Call number and retry count of the connection's context.
const CONTEXT: (i32, i32) = (-3, -1);

/// The connection to the name node, if open.
#[derive(Debug, Default)]
pub(super) struct NameNode {
    conn: Option<Conn>,
    /// Whether the last call is complete.
    idle: bool,
    next_call: i32,
}

/// The name node's status of a call.
enum CallStatus {
    Success,
    Error,
    Fatal,
}

impl NameNode {
    /// Connects as user `user` and client `id`, unless there is a usable connection.
    ///
    /// # Errors
    /// When the connection fails.
    pub(super) async fn connect(
        &mut self,
        endpoint: &Endpoint,
        user: &str,
        id: &[u8; ID],
        probe: &mut Probe,
    ) -> OpResult<()> {
        if let Some(conn) = &mut self.conn {
            if self.idle && conn.is_silent() {
                return Ok(());
            }
            self.conn = None;
        }
        // Boxed: connecting is rare and would enlarge every operation's future.
        let mut conn = Box::pin(connect::connect(endpoint, None, None, probe)).await?;
        let greeting = greeting(user, id);
        conn.send(&greeting, b"")
            .await
            .map_err(|error| broken("name node", &error))?;
        self.conn = Some(conn);
        self.idle = true;
        Ok(())
    }

    /// Calls `method` with the message `request` and returns the response, which replaces the content of
    /// `answer`.
    ///
    /// # Errors
    /// When the name node refuses, or the connection fails.
    pub(super) async fn call<'a>(
        &mut self,
        method: &'static str,
        id: &[u8; ID],
        request: &[u8],
        answer: &'a mut Buffer,
        probe: &mut Probe,
    ) -> OpResult<&'a [u8]> {
        let Some(conn) = &mut self.conn else {
            return Err(OpError::new(ErrorKind::Connect, "the connection is gone"));
        };
        let call = self.next_call;
        self.next_call = (call + 1) & i32::MAX;
        answer.clear();
        render(answer, method, call, id, request);
        self.idle = false;
        probe.started();
        let failed = |error: WireError| broken("name node", &error);
        conn.send(answer, b"").await.map_err(failed)?;
        answer.clear();
        receive(conn, answer, probe).await?;
        let (status, body) = response(answer, call)?;
        // The name node closes the connection after a fatal error.
        self.idle = !matches!(status, CallStatus::Fatal);
        if let CallStatus::Success = status {
            return Ok(body);
        }
        Err(refusal(answer))
    }
}

/// Receives a frame into `into`, without its length.
async fn receive(conn: &mut Conn, into: &mut Vec<u8>, probe: &mut Probe) -> OpResult<()> {
    let received = conn.recv_with(|bytes| {
        probe.first_byte_and_done();
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
            return Ok(Step::More(0));
        };
        let length = u32::from_be_bytes(*length) as usize;
        let take = rest.len().min(length);
        into.extend_from_slice(&rest[..take]);
        Ok::<_, WireError>(Step::Done(4 + take, length))
    });
    let failed = |error: WireError| broken("name node", &error);
    let length = received.await.map_err(failed)?;
    if length > MAX_ANSWER {
        return Err(Malformed.into());
    }
    let left = length - into.len();
    if left > 0 {
        // Only the answer for a file with many blocks is this long.
        let rest = conn.recv_body(left as u64, |_, bytes| {
            into.extend_from_slice(bytes);
            Ok::<_, WireError>(())
        });
        rest.await.map_err(failed)?;
        probe.done();
    }
    Ok(())
}

/// Reads the header of an answer to call `call`; returns the status and the response.
fn response(frame: &[u8], call: i32) -> Result<(CallStatus, &[u8]), Malformed> {
    let mut at = frame;
    let header = proto::delimited(&mut at).ok_or(Malformed)?;
    let (mut status, mut answers) = (None, None);
    for field in Fields(header) {
        match field? {
            (1, id) => answers = Some(id.number() as u32),
            (2, value) => status = Some(value.number()),
            _ => {}
        }
    }
    let status = match status {
        Some(0) => CallStatus::Success,
        Some(1) => CallStatus::Error,
        Some(2) => CallStatus::Fatal,
        _ => return Err(Malformed),
    };
    // The refusal of a connection has a different call number.
    if !matches!(status, CallStatus::Fatal) && answers != Some(call.cast_unsigned()) {
        return Err(Malformed);
    }
    let body = match status {
        CallStatus::Success => proto::delimited(&mut at).ok_or(Malformed)?,
        _ => b"",
    };
    Ok((status, body))
}

/// The exception in the header of an answer.
#[cold]
fn refusal(frame: &[u8]) -> OpError {
    let mut at = frame;
    let header = proto::delimited(&mut at).unwrap_or_default();
    let (mut class, mut message) = ("", "");
    for field in Fields(header).flatten() {
        match field {
            (4, name) => class = name.text(),
            (5, text) => message = text.text(),
            _ => {}
        }
    }
    to_error(class, message, 0)
}

/// Appends `RpcRequestHeaderProto` with its length.
fn put_header(out: &mut Vec<u8>, (call, retry): (i32, i32), id: &[u8; ID]) {
    let call = proto::zigzag(call);
    let length = 2 + 2 + 1 + proto::varint_len(call) + proto::bytes_len(ID) + 2;
    proto::put_varint(out, length as u64);
    // Kind: Protocol Buffers; operation: final (and only) packet.
    out.extend_from_slice(&[0x08, 2, 0x10, 0]);
    proto::put_number(out, 3, call);
    proto::put_bytes(out, 4, id);
    proto::put_number(out, 5, proto::zigzag(retry));
}

/// Appends the frame of a call.
fn render(out: &mut Vec<u8>, method: &str, call: i32, id: &[u8; ID], request: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_header(out, (call, 0), id);
    let length = proto::bytes_len(method.len()) + proto::bytes_len(PROTOCOL.len()) + 2;
    proto::put_varint(out, length as u64);
    proto::put_bytes(out, 1, method.as_bytes());
    proto::put_bytes(out, 2, PROTOCOL.as_bytes());
    proto::put_number(out, 3, 1);
    proto::put_varint(out, request.len() as u64);
    out.extend_from_slice(request);
    finish(out, start);
}

/// Writes the length of the frame that begins at `start`.
fn finish(out: &mut [u8], start: usize) {
    // Requests are bounded by the length of a path.
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The first message of a connection.
fn greeting(user: &str, id: &[u8; ID]) -> Vec<u8> {
    let mut out = b"hrpc\x09\0\0".to_vec();
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_header(&mut out, CONTEXT, id);
    let mut who = Vec::new();
    proto::put_bytes(&mut who, 1, user.as_bytes());
    let mut context = Vec::new();
    proto::put_bytes(&mut context, 2, &who);
    proto::put_bytes(&mut context, 3, PROTOCOL.as_bytes());
    proto::put_varint(&mut out, context.len() as u64);
    out.extend_from_slice(&context);
    finish(&mut out, start);
    out
}

#[cfg(test)]
mod tests {
    use bucketload_core::error::ErrorKind;

    use super::{CallStatus, greeting, refusal, render, response};

    #[test]
    fn the_greeting_follows_hadoops_protocol() {
        let greeting = greeting("ann", b"0123456789abcdef");
        let golden = b"hrpc\x09\0\0\0\0\0\x53\
            \x1a\x08\x02\x10\x00\x18\x05\x22\x100123456789abcdef\x28\x01\
            \x37\x12\x05\x0a\x03ann\x1a\x2eorg.apache.hadoop.hdfs.protocol.ClientProtocol";
        assert_eq!(greeting, golden);
    }

    #[test]
    fn calls_follow_hadoops_protocol() {
        let mut out = b"x".to_vec();
        render(
            &mut out,
            "getFileInfo",
            300,
            b"0123456789abcdef",
            b"\x0a\x01/",
        );
        let golden = b"x\0\0\0\x60\
            \x1b\x08\x02\x10\x00\x18\xd8\x04\x22\x100123456789abcdef\x28\x00\
            \x3f\x0a\x0bgetFileInfo\x12\x2eorg.apache.hadoop.hdfs.protocol.ClientProtocol\x18\x01\
            \x03\x0a\x01/";
        assert_eq!(out, golden);
    }

    #[test]
    fn answers_are_read() {
        let (status, body) = response(b"\x04\x08\x07\x10\x00\x02ab", 7).unwrap();
        assert!(matches!(status, CallStatus::Success) && body == b"ab");
        assert!(
            response(b"\x04\x08\x08\x10\x00\x02ab", 7).is_err(),
            "another call's"
        );
        assert!(
            response(b"\x04\x08\x07\x10\x00\x02a", 7).is_err(),
            "cut off"
        );
        assert!(response(b"HTTP/1.1 400", 7).is_err());
        let class = b"java.io.FileNotFoundException";
        let mut frame = vec![
            4 + 2 + class.len() as u8 + 3,
            8,
            7,
            16,
            1,
            0x22,
            class.len() as u8,
        ];
        frame.extend_from_slice(class);
        frame.extend_from_slice(b"\x2a\x01m");
        assert!(matches!(response(&frame, 7), Ok((CallStatus::Error, b""))));
        let error = refusal(&frame);
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert_eq!(&*error.detail, "FileNotFoundException: m");
    }
}
