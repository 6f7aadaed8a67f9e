//! The WebHDFS driver: HDFS through its REST interface, on the wire client.
//!
//! ```text
//! config ── driver ── session ── ops ──┬── request     heads for the name node, heads of the second step
//!                        │   list      ├── redirect    target of the second step; connections to data nodes
//!                        │   admin     ├── upload      a body that waits for `100 Continue`
//!                        │             └── documents   JSON
//!                        └── http::connection                the connection to the name node
//! placement                            the data nodes of a file
//! ```
//!
//! Reading and writing take two steps: the name node names a data node (`noredirect=true`, else a
//! redirect), and the data node receives or sends the bytes. Both steps are one operation, timed from the
//! first byte of the first request. Everything after the name node's answer, including the connection to
//! the data node, counts as the operation's `body` part. See `docs/drivers/hdfs.md`.

mod admin;
mod config;
mod documents;
mod driver;
mod list;
mod ops;
mod placement;
mod redirect;
mod request;
mod session;
mod upload;

pub use config::WebHdfsConfig;
pub use driver::WebHdfsDriver;
pub use placement::FilePlacement;
pub use session::WebHdfsSession;
