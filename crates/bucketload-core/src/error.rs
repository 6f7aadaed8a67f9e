//! Errors of operations, classified by meaning. The kind carries the policy: each variant says how a failure
//! of that kind counts and whether a retry policy may repeat the operation.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::driver::Completion;

/// Why an operation failed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[repr(u8)]
pub enum ErrorKind {
    /// The object, bucket or upload does not exist (404). Never retried. The work's `not-found` setting
    /// decides whether it counts as a failure.
    NotFound,
    /// The state of the resource forbids the operation (409, 412). Never retried.
    Conflict,
    /// The server asks for a slower pace (429, 503 SlowDown). Retried under a policy; this is data
    /// about the store, not a fault of the run.
    Throttled,
    /// The server failed (other 5xx). Retried under a policy.
    Server,
    /// The store is full (507, or 500/503 with a storage-full code). Never retried.
    Full,
    /// The request was not authorised (401, 403). Never retried; aborts at preflight.
    Auth,
    /// The request was malformed or refused (other 4xx). Never retried.
    Rejected,
    /// No complete answer before the operation's timeout. Retried under a policy. Censored at the
    /// timeout in SLO compliance.
    Timeout,
    /// No connection could be made, including name resolution. Retried under a policy.
    Connect,
    /// The TLS handshake failed or the certificate was not accepted. Never retried.
    Tls,
    /// An established connection broke before the answer was complete. Retried under a policy.
    Reset,
    /// The answer violates the protocol (unparseable head, length that does not match). Never
    /// retried.
    Protocol,
    /// The bytes read are not the bytes written. Never retried, because it is a finding.
    Corrupt,
    /// The driver or the store does not support this operation (405, 501). Never retried.
    Unsupported,
    /// The run ended before the operation completed. Counts as cancelled, neither ok nor failed.
    Cancelled,
}

impl ErrorKind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().unwrap();

    /// The name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether a retry policy may repeat an operation that failed this way.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::Throttled | Self::Server | Self::Timeout | Self::Connect | Self::Reset
        )
    }

    /// Whether the connection can no longer be used after this failure.
    #[must_use]
    pub const fn breaks_connection(self) -> bool {
        matches!(
            self,
            Self::Timeout
                | Self::Connect
                | Self::Tls
                | Self::Reset
                | Self::Protocol
                | Self::Cancelled
        )
    }
}

/// What an operation, or a step of one, returns.
pub type OpResult<T = Completion> = Result<T, OpError>;

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{}: {detail}", status_suffix(*.status))]
pub struct OpError {
    /// What the failure means.
    pub kind: ErrorKind,
    /// The protocol's status code (HTTP status), 0 if there was no answer.
    pub status: u16,
    /// Details for the operator: the server's code and message, the address, the offset of the first wrong
    /// byte. Never holds credentials.
    pub detail: Box<str>,
}

fn status_suffix(status: u16) -> String {
    if status == 0 {
        String::new()
    } else {
        format!(" ({status})")
    }
}

impl OpError {
    /// An error of `kind` without a status code.
    pub fn new(kind: ErrorKind, detail: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            status: 0,
            detail: detail.into(),
        }
    }

    /// An error of `kind` that came with an HTTP-like `status`.
    pub fn with_status(kind: ErrorKind, status: u16, detail: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            status,
            detail: detail.into(),
        }
    }
}
