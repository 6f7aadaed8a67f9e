//! Log-linear histogram of nanoseconds with 3 significant digits.
//!
//! The bucket layout is that of HdrHistogram with lowest value 1 and 3 significant digits (2048
//! sub-buckets, relative width at most 1/1024), so results convert to `.hdr` files without loss.
//! Recording is an index computation and an add. Only the touched part of the counts is ever
//! written, merged or cleared, so an empty histogram costs almost no resident memory.

/// log2 of the number of linear sub-buckets of the first bucket.
const SUB_BITS: u32 = 11;
/// Buckets per octave above the first.
const HALF: usize = 1 << (SUB_BITS - 1);
/// Values at or above 2^42 ns (73 minutes) are recorded in the last bucket.
const MAX_BITS: u32 = 42;
/// Number of buckets.
pub const BUCKETS: usize = (1 << SUB_BITS) + (MAX_BITS - SUB_BITS) as usize * HALF;

/// A histogram of durations in nanoseconds, from 1 ns to 73 minutes, with a relative bucket width
/// of at most 0.1 %.
///
/// Apart from the bucket itself, recording touches one cache line. The data that operations move evicts the
/// histogram from the first-level cache between two recordings.
#[derive(Clone)]
#[repr(align(64))]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    sum_ns: u128,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    /// First touched bucket; `BUCKETS` when empty.
    lo: u32,
    /// One past the last touched bucket; 0 when empty.
    hi: u32,
}

const _: () = assert!(size_of::<Histogram>() == 64);

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("min_ns", &self.min_ns())
            .field("max_ns", &self.max_ns)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count
            && self.sum_ns == other.sum_ns
            && self.max_ns == other.max_ns
            && self.min_ns == other.min_ns
            && self.buckets().eq(other.buckets())
    }
}

impl Histogram {
    /// An empty histogram. Allocates zeroed pages that become resident when touched.
    #[must_use]
    pub fn new() -> Self {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Self {
            counts: counts.try_into().expect("as many as there are buckets"),
            sum_ns: 0,
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            lo: BUCKETS as u32,
            hi: 0,
        }
    }

    /// The bucket that holds `ns`.
    #[inline]
    #[must_use]
    pub const fn index_of(ns: u64) -> usize {
        // All values of the first bucket use the shift of its largest value, 0, so no branch is needed.
        let shift = u64::BITS - SUB_BITS - (ns | ((1 << SUB_BITS) - 1)).leading_zeros();
        let index = (shift as usize) * HALF + (ns >> shift) as usize;
        if index < BUCKETS { index } else { BUCKETS - 1 }
    }

    /// The smallest value of bucket `index`, in nanoseconds.
    #[must_use]
    pub const fn lowest_of(index: usize) -> u64 {
        if index < (1 << SUB_BITS) {
            index as u64
        } else {
            let shift = index / HALF - 1;
            ((index - shift * HALF) as u64) << shift
        }
    }

    /// The largest value of bucket `index`, in nanoseconds.
    #[must_use]
    pub const fn highest_of(index: usize) -> u64 {
        Self::lowest_of(index + 1) - 1
    }

    /// Records one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let index = Self::index_of(ns);
        self.counts[index] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        // A value between the extremes lies between the touched buckets too.
        if ns < self.min_ns || ns > self.max_ns {
            self.stretch(index, ns);
        }
    }

    /// How many durations the bucket of `ns` holds. A caller that asks for several buckets before recording
    /// into them waits for their memory only once.
    #[inline]
    #[must_use]
    pub fn alike(&self, ns: u64) -> u64 {
        self.counts[Self::index_of(ns)]
    }

    /// Extends the extremes to `ns`, which belongs to bucket `index`.
    #[cold]
    fn stretch(&mut self, index: usize, ns: u64) {
        self.touch(index);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds bucket `index` to the touched range.
    const fn touch(&mut self, index: usize) {
        // `BUCKETS` fits in 32 bits.
        let index = index as u32;
        if index < self.lo {
            self.lo = index;
        }
        if index >= self.hi {
            self.hi = index + 1;
        }
    }

    /// The touched range of buckets.
    const fn touched(&self) -> std::ops::Range<usize> {
        self.lo as usize..self.hi as usize
    }

    /// Records `n` durations that are all equal to `ns` within the bucket width. Used when reading
    /// stored histograms; `record` is exact about minimum, maximum and sum.
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        let index = Self::index_of(ns);
        self.counts[index] += n;
        self.touch(index);
        self.count += n;
        self.sum_ns += u128::from(ns) * u128::from(n);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Replaces sum, minimum and maximum by exact values stored beside a serialised histogram.
    /// Does nothing when the histogram is empty.
    pub fn set_exact(&mut self, sum_ns: u128, min_ns: u64, max_ns: u64) {
        if self.count > 0 {
            self.sum_ns = sum_ns;
            self.min_ns = min_ns;
            self.max_ns = max_ns;
            self.cover_extremes();
        }
    }

    /// Keeps the buckets of minimum and maximum inside the touched range, which [`Histogram::record`] relies
    /// on, even if they were read from a file.
    fn cover_extremes(&mut self) {
        self.touch(Self::index_of(self.min_ns));
        self.touch(Self::index_of(self.max_ns));
    }

    /// Adds durations that were counted elsewhere: `(index, count)` pairs in this bucket layout with their
    /// exact sum, minimum and maximum. Returns `false` if an index or a count is out of range; the pairs
    /// before it have then been added.
    pub fn add_buckets(
        &mut self,
        buckets: impl Iterator<Item = (usize, u64)>,
        sum_ns: u128,
        min_ns: u64,
        max_ns: u64,
    ) -> bool {
        /// Small enough that the sum over all buckets cannot overflow 64 bits.
        const MAX_COUNT: u64 = 1 << 48;
        let mut added = 0;
        for (index, count) in buckets {
            if index >= BUCKETS || count > MAX_COUNT {
                return false;
            }
            self.counts[index] = self.counts[index].saturating_add(count);
            self.touch(index);
            self.count = self.count.saturating_add(count);
            added += count;
        }
        if added > 0 {
            self.sum_ns = self.sum_ns.saturating_add(sum_ns);
            self.min_ns = self.min_ns.min(min_ns);
            self.max_ns = self.max_ns.max(max_ns);
            self.cover_extremes();
        }
        true
    }

    /// Adds all of `other`. Associative and commutative; an empty histogram is neutral.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        for (mine, theirs) in self.counts[other.touched()]
            .iter_mut()
            .zip(&other.counts[other.touched()])
        {
            *mine += theirs;
        }
        self.lo = self.lo.min(other.lo);
        self.hi = self.hi.max(other.hi);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Empties the histogram, writing only to touched buckets.
    pub fn clear(&mut self) {
        if self.count > 0 {
            let touched = self.touched();
            self.counts[touched].fill(0);
        }
        self.lo = BUCKETS as u32;
        self.hi = 0;
        self.count = 0;
        self.sum_ns = 0;
        self.min_ns = u64::MAX;
        self.max_ns = 0;
    }

    /// Number of recorded durations.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Exact sum of the recorded durations, in nanoseconds.
    #[must_use]
    pub const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Exact mean in nanoseconds; 0 when empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum_ns as f64 / self.count as f64
        }
    }

    /// Exact smallest recorded duration in nanoseconds; 0 when empty.
    #[must_use]
    pub const fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Exact largest recorded duration in nanoseconds; 0 when empty.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The `q`-quantile in nanoseconds: the smallest bucket whose cumulative count reaches
    /// `ceil(q * n)`, reported as the bucket's highest value but never above the exact maximum.
    /// 0 when empty. Percentiles are computed by [`quantile_of`] alone.
    ///
    /// # Panics
    /// If `q` is outside 0..=1.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        quantile_of(self.buckets(), self.count, self.min_ns, self.max_ns, q)
    }

    /// Number of recorded durations of at most `ns`, counting a bucket when its lowest value is at
    /// most `ns`.
    #[must_use]
    pub fn count_at_most(&self, ns: u64) -> u64 {
        let touched = self.touched();
        let end = (Self::index_of(ns) + 1).min(touched.end);
        self.counts[touched.start.min(end)..end].iter().sum()
    }

    /// The non-empty buckets as `(index, count)`, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let range = if self.count == 0 {
            0..0
        } else {
            self.touched()
        };
        range
            .map(|i| (i, self.counts[i]))
            .filter(|&(_, count)| count > 0)
    }
}

/// The `q`-quantile in nanoseconds of `count` durations in `buckets`, which are `(index, count)` in ascending order:
/// the same as [`Histogram::quantile_ns`] for histograms that are stored as a list. 0 when empty.
///
/// # Panics
/// If `q` is outside 0..=1.
#[must_use]
pub fn quantile_of(
    buckets: impl Iterator<Item = (usize, u64)>,
    count: u64,
    min_ns: u64,
    max_ns: u64,
    q: f64,
) -> u64 {
    assert!((0.0..=1.0).contains(&q), "quantile {q} is outside 0..=1");
    if count == 0 {
        return 0;
    }
    // n·q is exact enough up to 2^53 records; the epsilon keeps 0.99 · 100 from becoming 100.
    let rank = ((q * count as f64 - 1e-9).ceil() as u64).clamp(1, count);
    let mut seen = 0;
    for (index, count) in buckets {
        seen += count;
        if seen >= rank {
            return Histogram::highest_of(index).clamp(min_ns, max_ns);
        }
    }
    max_ns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BUCKETS, Histogram};

    fn of(values: &[u64]) -> Histogram {
        let mut h = Histogram::new();
        values.iter().for_each(|&v| h.record(v));
        h
    }

    #[test]
    fn buckets_tile_the_range_without_gap() {
        for index in 0..BUCKETS - 1 {
            let (lo, hi) = (Histogram::lowest_of(index), Histogram::highest_of(index));
            assert_eq!(Histogram::index_of(lo), index);
            assert_eq!(Histogram::index_of(hi), index);
            assert_eq!(Histogram::index_of(hi + 1), index + 1);
            assert!((hi - lo) as f64 <= 0.001 * lo as f64 || hi == lo);
        }
        assert_eq!(Histogram::index_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_follow_the_ceil_definition() {
        let h = of(&(1..=1000).collect::<Vec<_>>());
        assert_eq!(h.quantile_ns(0.0), 1);
        assert_eq!(h.quantile_ns(0.5), 500);
        assert_eq!(h.quantile_ns(0.99), 990);
        assert_eq!(h.quantile_ns(0.9901), 991);
        assert_eq!(h.quantile_ns(1.0), 1000);
        assert_eq!(Histogram::new().quantile_ns(0.5), 0);
    }

    #[test]
    fn a_cleared_histogram_equals_a_new_one() {
        let mut h = of(&[1, 5_000, 70_000_000, u64::MAX]);
        h.clear();
        assert_eq!(h, Histogram::new());
        assert_eq!(h.buckets().count(), 0);
    }

    proptest! {
        #[test]
        fn merge_equals_whole(a in prop::collection::vec(0u64..1 << 43, 0..200),
                              b in prop::collection::vec(0u64..1 << 43, 0..200)) {
            let mut ab = of(&a);
            ab.merge(&of(&b));
            let mut ba = of(&b);
            ba.merge(&of(&a));
            let whole = of(&[a.as_slice(), b.as_slice()].concat());
            prop_assert_eq!(&ab, &whole);
            prop_assert_eq!(&ba, &whole);
        }

        #[test]
        fn buckets_counted_elsewhere_are_merged(a in prop::collection::vec(0u64..1 << 43, 0..100),
                                                b in prop::collection::vec(0u64..1 << 43, 0..100)) {
            let (mut ab, there) = (of(&a), of(&b));
            let known = there.buckets().collect::<Vec<_>>().into_iter();
            prop_assert!(ab.add_buckets(known, there.sum_ns(), there.min_ns(), there.max_ns()));
            prop_assert_eq!(&ab, &of(&[a.as_slice(), b.as_slice()].concat()));
            let beyond = std::iter::once((BUCKETS, 1));
            prop_assert!(!ab.add_buckets(beyond, 1, 1, 1));
        }

        #[test]
        fn quantile_is_within_one_bucket(mut v in prop::collection::vec(1u64..1 << 41, 1..300), q in 0.0f64..=1.0) {
            let h = of(&v);
            v.sort_unstable();
            let rank = ((q * v.len() as f64 - 1e-9).ceil() as usize).clamp(1, v.len());
            let truth = v[rank - 1];
            let got = h.quantile_ns(q);
            prop_assert!(got >= truth);
            prop_assert!((got - truth) as f64 <= 0.001 * truth as f64 + 1.0);
        }

        #[test]
        fn count_at_most_counts(v in prop::collection::vec(0u64..1 << 20, 0..100), x in 0u64..1 << 20) {
            let h = of(&v);
            let low = v.iter().filter(|&&y| y <= x).count() as u64;
            let high = v.iter().filter(|&&y| Histogram::index_of(y) <= Histogram::index_of(x)).count() as u64;
            prop_assert!((low..=high).contains(&h.count_at_most(x)));
        }
    }
}
