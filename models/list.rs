//! The workload models. A model is a folder here and a line below; docs/develop/write-a-model.md says what it contains.
//!
//! | file | compiled in | trait |
//! |---|---|---|
//! | `plan.rs` | `bucketload-core` | `plan::Model` |
//! | `language.rs` | `bucketload-workload` | `DescribedModel` |
//! | `run.rs` | `bucketload-run` | `RunModel` |

crate::plan::model::models! { $
    /// A fixed number of workers with think times.
    closed: Closed(ClosedPlan),
    /// Arrivals at absolute instants, independent of the store.
    open: Open(OpenPlan),
    /// Jobs of several stages arrive; a stage begins when the previous one has ended.
    jobs: Jobs(JobsPlan),
    /// The requests of a recorded trace.
    replay: Replay(ReplayPlan),
    /// Workers write together, one of them lists until everything appears, all delete a share together, and
    /// one lists until the deleted objects are gone. Then the next round begins.
    rounds: Rounds(RoundsPlan),
    /// Workers on buckets and objects that the user names.
    named: Named(NamedPlan),
    /// Workers that go through the same steps at the same time.
    ranks: Ranks(RanksPlan),
    /// Requests of a language model whose key-value cache is in the store.
    kvcache: Kvcache(KvcachePlan),
    /// All ranks of a training job write or read one checkpoint of a language model.
    checkpoint: Checkpoint(CheckpointPlan),
    /// Accelerators that compute on the batches that their readers fetch, and wait for one another after each.
    train: Train(TrainPlan),
}
