//! The cache of a language model in a workload file: the table `kvcache` of a work.

use super::decode::spec_table;
use super::quantity::{ByteSize, Nanos};

spec_table! {
    /// Users that converse with a language model whose key-value cache is in the store, as MLPerf Storage describes
    /// them. The cache has one entry per request.
    pub struct KvcacheSpec {
        /// Number of clients, over all agents. A client is a server of the model, with its own users, memory and limit
        /// on writes. Default: 1.
        pub clients: Option<u32>,
        /// Users of each client.
        pub users: Option<u32>,
        /// The language model, as it appears in names. Default: "llama3.1-8b".
        pub model: Option<String>,
        /// Bytes of an entry per token of the prompt. Default: 128 KiB, as llama3.1-8b needs.
        pub bytes_per_token: Option<ByteSize>,
        /// Tensor-parallel ranks: each stores its part of an entry as an object of its own. Default: as many as keep
        /// objects below 5 GiB.
        pub ranks: Option<u32>,
        /// Objects per rank and entry: the layers of the model, or 1 (the default).
        pub layers: Option<u32>,
        /// Most objects of an entry that are read at a time. Default: 8.
        pub gets: Option<u32>,
        /// Most objects of an entry that are written at a time. Default: 8.
        pub puts: Option<u32>,
        /// Memory of each client that holds the newest entries. Default: none.
        pub memory: Option<ByteSize>,
        /// Most requests of a client that write their entry at a time; 0 for no limit. Default: 16.
        pub allocations: Option<u32>,
        /// Time to generate a token of the answer. Default: 0s.
        pub generation: Option<Nanos>,
    }
}
