//! Sets of object numbers: ranges in order and apart from each other. They take as much memory as they have ranges,
//! whatever the number of objects.

/// First number, and the number after the last.
pub type Range = (u64, u64);

/// The numbers in any of `ranges`, which may overlap and be in any order.
pub(super) fn union(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut all: Vec<Range> = Vec::with_capacity(ranges.len());
    for (first, end) in ranges {
        match all.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => all.push((first, end)),
        }
    }
    all
}

/// The numbers below `count` that are not in `ranges`.
pub(super) fn gaps(ranges: &[Range], count: u64) -> impl Iterator<Item = Range> {
    let ends = ranges.iter().map(|range| range.1);
    let firsts = ranges.iter().map(|range| range.0);
    let gaps = std::iter::once(0).chain(ends).zip(firsts.chain([count]));
    gaps.filter(|(first, end)| first < end)
}

/// Number of numbers in `ranges`.
pub(super) fn total(ranges: &[Range]) -> u64 {
    ranges.iter().map(|(first, end)| end - first).sum()
}

/// Whether `ranges` are in order and apart from each other, and all inside `whole`.
pub(super) fn are_within(ranges: &[Range], whole: &[Range]) -> bool {
    let apart = ranges.windows(2).all(|two| two[0].1 < two[1].0);
    let inside = |&(first, end): &Range| {
        let around = whole.partition_point(|range| range.1 <= first);
        let around = whole.get(around);
        first < end && around.is_some_and(|range| range.0 <= first && end <= range.1)
    };
    apart && ranges.iter().all(inside)
}

/// The numbers of `ranges` without `numbers`, which are in order.
pub(super) fn without(ranges: &[Range], numbers: &[u64]) -> Vec<Range> {
    let mut left = Vec::with_capacity(ranges.len() + numbers.len());
    let mut numbers = numbers.iter().copied().peekable();
    for &(mut first, end) in ranges {
        while let Some(number) = numbers.next_if(|number| *number < end) {
            if number > first {
                left.push((first, number));
            }
            first = first.max(number + 1);
        }
        if first < end {
            left.push((first, end));
        }
    }
    left
}

/// The longest `most` of `ranges`.
pub(super) fn longest(mut ranges: Vec<Range>, most: usize) -> Vec<Range> {
    if ranges.len() > most {
        ranges.sort_unstable_by_key(|(first, end)| std::cmp::Reverse(end - first));
        ranges.truncate(most);
        ranges.sort_unstable();
    }
    ranges
}

/// Ranges whose numbers can be looked up by their place.
#[derive(Debug)]
pub(super) struct Numbered {
    /// Each range with how many numbers come before it.
    ranges: Vec<(Range, u64)>,
    total: u64,
}

impl Numbered {
    pub(super) fn new(ranges: &[Range]) -> Self {
        let mut total = 0;
        let mut numbered = |range: &Range| {
            let before = total;
            total += range.1 - range.0;
            (*range, before)
        };
        Self {
            ranges: ranges.iter().map(&mut numbered).collect(),
            total,
        }
    }

    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range> {
        self.ranges.iter().map(|(range, _)| *range)
    }

    /// The number at place `nth`, which must be below the total.
    #[inline]
    pub(super) fn nth(&self, nth: u64) -> u64 {
        let at = self.ranges.partition_point(|(_, before)| *before <= nth);
        let ((first, _), before) = self.ranges[at - 1];
        first + (nth - before)
    }
}

/// Divides `ranges` into consecutive parts, one for each of `shares` and in proportion to them. Parts begin and end at
/// multiples of `block`.
pub(super) fn divide(ranges: &[Range], block: u64, shares: &[u32]) -> Vec<Vec<Range>> {
    let numbered = Numbered::new(ranges);
    let all: u64 = shares.iter().map(|share| u64::from(*share)).sum();
    let (mut before, mut from) = (0, 0);
    let part = |share: &u32| {
        before += u64::from(*share);
        let place = u128::from(numbered.total()) * u128::from(before) / u128::from(all.max(1));
        let until = match u64::try_from(place) {
            Ok(place) if place < numbered.total() => {
                let number = numbered.nth(place);
                number - number % block
            }
            _ => u64::MAX,
        };
        let inside = std::mem::replace(&mut from, until)..until;
        let at = ranges.partition_point(|range| range.1 <= inside.start);
        let part = ranges[at..].iter();
        let part = part.take_while(|range| range.0 < inside.end);
        let cut = part.map(|range| (range.0.max(inside.start), range.1.min(inside.end)));
        cut.filter(|range| range.0 < range.1).collect()
    };
    shares.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn numbers(ranges: &[Range]) -> BTreeSet<u64> {
        ranges.iter().flat_map(|&(a, b)| a..b).collect()
    }

    fn some() -> impl Strategy<Value = Vec<Range>> {
        let range = (0u64..400, 1u64..40).prop_map(|(first, length)| (first, first + length));
        prop::collection::vec(range, 0..30).prop_map(union)
    }

    proptest! {
        #[test]
        fn sets_behave_as_sets(a in some(), b in some(), points in prop::collection::btree_set(0u64..450, 0..50), most in 1usize..9) {
            let all = union(a.iter().chain(&b).copied().collect());
            prop_assert_eq!(numbers(&all), numbers(&a).union(&numbers(&b)).copied().collect::<BTreeSet<_>>());
            prop_assert!(all.windows(2).all(|two| two[0].1 < two[1].0));
            prop_assert_eq!(total(&all), numbers(&all).len() as u64);
            prop_assert_eq!(are_within(&a, &b), numbers(&a).is_subset(&numbers(&b)));
            let rest: Vec<Range> = gaps(&a, 450).collect();
            prop_assert!(numbers(&rest).is_disjoint(&numbers(&a)));
            prop_assert_eq!(total(&rest) + total(&a), 450);
            let points: Vec<u64> = points.into_iter().collect();
            let left = without(&a, &points);
            let expected: BTreeSet<u64> = numbers(&a).difference(&points.iter().copied().collect()).copied().collect();
            prop_assert_eq!(numbers(&left), expected);
            prop_assert!(are_within(&left, &a));
            let kept = longest(a.clone(), most);
            prop_assert!(kept.len() <= most && are_within(&kept, &a));
            let places = Numbered::new(&a);
            let looked_up: BTreeSet<u64> = (0..places.total()).map(|n| places.nth(n)).collect();
            prop_assert_eq!(looked_up, numbers(&a));
        }

        #[test]
        fn parts_cover_everything_once(missing in some(), block in 1u64..20, shares in prop::collection::vec(0u32..5, 1..9)) {
            prop_assume!(shares.iter().any(|share| *share > 0));
            let parts = divide(&missing, block, &shares);
            prop_assert_eq!(parts.len(), shares.len());
            prop_assert_eq!(union(parts.iter().flatten().copied().collect()), missing.clone());
            prop_assert_eq!(parts.iter().map(|part| total(part)).sum::<u64>(), total(&missing));
            let (all, sum) = (u64::from(shares.iter().sum::<u32>()), total(&missing));
            for (part, share) in parts.iter().zip(&shares) {
                let fair = sum * u64::from(*share) / all;
                prop_assert!(*share > 0 || part.is_empty());
                prop_assert!(total(part).abs_diff(fair) <= block + 1, "{part:?} of {missing:?}");
            }
            // No block belongs to two parts.
            let blocks = |part: &Vec<Range>| numbers(part).iter().map(|n| n / block).collect::<BTreeSet<_>>();
            let each: usize = parts.iter().map(|part| blocks(part).len()).sum();
            prop_assert_eq!(each, blocks(&missing).len());
        }
    }
}
