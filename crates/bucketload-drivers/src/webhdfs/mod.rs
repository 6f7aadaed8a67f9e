//! The WebHDFS driver: HDFS by its REST interface, on the wire client.
//!
//! ```text
//! config ── driver ── session ── ops ──┬── request     heads for the name node, heads of the second step
//!                        │   list      ├── redirect    where the second step goes; connections to data nodes
//!                        │   admin     ├── upload      a body that waits for the data node's consent
//!                        │             └── documents   JSON
//!                        └── http::connection                the connection to the name node
//! placement                            which data nodes hold a file
//! ```
//!
//! Reading and writing takes two steps: the name node says which data node to ask
//! (`noredirect=true`, else a redirect), and the data node takes or gives the bytes. Both are one
//! operation, timed from the first byte of the first request; whatever follows the name node's answer,
//! connecting to the data node included, is its `body` part. See `docs/drivers/hdfs.md`.

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
