//! Divides the load of an open work over threads and agents.

/// A thread's part of an open work.
pub(crate) struct Partition {
    pub(crate) index: u32,
    pub(crate) of: u32,
    /// Most sessions, and so most operations in flight.
    pub(crate) cap: usize,
}

impl Partition {
    /// The part of thread `thread` of `threads` on agent `agent` of `agents`: the arrivals congruent to `agent +
    /// agents · thread` modulo `agents · threads`, and a like share of the in-flight cap. If the cap is too low to
    /// give every thread a session, fewer threads take part.
    pub(crate) fn of(
        max_in_flight: u32,
        (agent, agents): (u32, u32),
        (thread, threads): (usize, usize),
    ) -> Option<Self> {
        let mine = (max_in_flight / agents + u32::from(agent < max_in_flight % agents)).max(1);
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        let threads = threads.min(max_in_flight / agents).max(1);
        let thread = u32::try_from(thread).unwrap_or(u32::MAX);
        (thread < threads).then(|| Self {
            index: agent + agents * thread,
            of: agents * threads,
            cap: (mine / threads + u32::from(thread < mine % threads)) as usize,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Partition;

    proptest! {
        #[test]
        fn parts_divide_the_schedule_and_the_cap(cap in 1u32..300, agents in 1u32..6, threads in 1usize..9) {
            prop_assume!(cap >= agents);
            let parts: Vec<Partition> = (0..agents)
                .flat_map(|a| (0..threads).filter_map(move |t| Partition::of(cap, (a, agents), (t, threads))))
                .collect();
            prop_assert_eq!(parts.iter().map(|part| part.cap).sum::<usize>(), cap as usize);
            prop_assert!(parts.iter().all(|part| part.cap >= 1));
            for seq in 0..1000u64 {
                let takes = |part: &&Partition| seq % u64::from(part.of) == u64::from(part.index);
                let takers = parts.iter().filter(takes).count();
                prop_assert_eq!(takers, 1);
            }
        }
    }
}
