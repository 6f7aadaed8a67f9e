//! The consistency and durability oracle: judges what a store answers against what it acknowledged.
//!
//! Every key is a register. A [`register::Register`] tracks the mutations of one key that are in flight,
//! acknowledged or of unknown outcome. [`identify`] determines which of them a body comes from. A [`Finding`]
//! is an answer that none of them explains.
//!
//! ```text
//!             w1 ├──────┤ ack          a read may return w1, w2 or w3, but not w0:
//!   w0 ├───┤ ack      w2 ├─────────┤   w1 began after w0 had ended, and had ended
//!                    w3 ├──── …        before the read began
//!                      read ├────┤
//! ```
//!
//! The condition is that of a regular register with several writers (Lamport, "On interprocess
//! communication", 1986): a read may return the value of any mutation that is not *superseded*, that
//! is, unless another mutation began after its end and was acknowledged before the read began. Every
//! linearizable store satisfies it; so does Amazon S3's strong read-after-write consistency. A
//! mutation without a clear answer (timeout, broken connection, 5xx) may take effect at any later
//! time or never: it has no end and is never superseded, and supersedes nothing.
//!
//! All of this is arithmetic on instants. The runner supplies them and serialises calls from several threads.

pub mod finding;
pub mod identify;
pub mod register;

pub use finding::{Evidence, Finding, FindingKind, KindCount, OracleSummary};
pub use register::{Mutation, ReadMark, Register, State};
