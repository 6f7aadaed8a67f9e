//! Users of a language model: what each asks for, as a function of the seed, the user and the number of the request
//! (docs/spec/ai-kvcache.md section 5).

use super::rng::{Draws, Purpose, Stream};
use crate::plan::KvUsers;

/// Tokens of an answer per read of the entry.
const DECODE_BATCH: u64 = 32;
/// Prompts of so many tokens are written and not read again.
const PREFILL_ONLY: u64 = 10_000;
/// Probability that the next request continues the conversation, and the most turns of one.
const CONTINUED: f64 = 0.8;
const MOST_TURNS: u32 = 50;
/// A prompt or an answer has at least this fraction of the user's own length, and a pause varies by this factor.
const LEAST: u64 = 4;
const PAUSE: (f64, f64) = (0.8, 1.2);
/// Users and requests of each over which [`UserGen::expected`] averages.
const SAMPLE: (u64, u32) = (1024, 32);

/// What a user keeps over all requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Index of the kind of user.
    pub kind: usize,
    /// Where the user's class lies among all shares, from 0 to 1.
    pub class: f64,
    /// Longest prompt and longest answer, tokens.
    pub context: u64,
    /// See `context`.
    pub output: u64,
    /// Mean pause before a request, nanoseconds.
    pub think_ns: u64,
}

/// One request of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Pause before it, nanoseconds.
    pub think_ns: u64,
    /// Whether it goes on with the conversation, if that is not too long.
    pub continues: bool,
    /// Tokens of the prompt.
    pub context: u64,
    /// Tokens of the answer.
    pub output: u64,
}

impl Turn {
    /// How often its own entry is read.
    #[must_use]
    pub const fn reads(&self) -> u64 {
        match self.context >= PREFILL_ONLY {
            true => 0,
            // One for the first token, then one per batch of tokens.
            false => 1 + self.output.div_ceil(DECODE_BATCH),
        }
    }
}

/// What requests need on average, if the cache keeps everything and the store takes no time. Users who think for a short
/// time ask more often, so their requests count more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Requests of a user per second.
    pub per_s: f64,
    /// Tokens of the entry that a request writes.
    pub written_tokens: f64,
    /// Entries that it reads, and their tokens.
    pub reads: f64,
    /// See `reads`.
    pub read_tokens: f64,
}

/// The requests of all users of a work.
#[derive(Clone, Debug)]
pub struct UserGen {
    plan: KvUsers,
    seed: u64,
    profiles: Stream,
    turns: Stream,
}

impl UserGen {
    /// The users of work `work` of phase `phase` (indices in the plan) of a run with `seed`.
    ///
    /// # Panics
    /// If `phase` is not below [`Stream::MAX_PHASES`], or if a kind of user has an empty range.
    #[must_use]
    pub fn new(plan: &KvUsers, seed: u64, phase: u16, work: u16) -> Self {
        Self {
            plan: plan.clone(),
            seed,
            profiles: Stream::new(Purpose::Profile, phase, work),
            turns: Stream::new(Purpose::Turn, phase, work),
        }
    }

    /// User number `user` over all clients.
    #[must_use]
    pub fn profile(&self, user: u64) -> Profile {
        let mut draws = Draws::new(self.seed, self.profiles, user);
        let kind = draws.below(self.plan.kinds.len() as u64) as usize;
        let of = &self.plan.kinds[kind];
        Profile {
            kind,
            class: draws.next_unit(),
            context: within(&mut draws, of.context),
            output: within(&mut draws, of.output),
            think_ns: within(&mut draws, of.think_ns),
        }
    }

    /// Request number `number` of user `user`.
    #[must_use]
    pub fn turn(&self, user: u64, profile: &Profile, number: u32) -> Turn {
        // Five words, so three blocks; rejected draws would hardly ever need the fourth.
        let mut draws = Draws::from_draw(self.seed, self.turns, user, number.wrapping_mul(4));
        let factor = PAUSE.0 + (PAUSE.1 - PAUSE.0) * draws.next_unit();
        let least = |most: u64| [(most / LEAST).max(1), most.max(1)];
        Turn {
            think_ns: (profile.think_ns as f64 * factor) as u64,
            continues: draws.next_unit() < CONTINUED,
            context: within(&mut draws, least(profile.context)),
            output: within(&mut draws, least(profile.output)),
        }
    }

    /// The first request of the conversation to which request `number` belongs, if that of the request before it is
    /// `first`.
    #[must_use]
    pub const fn first(&self, turn: &Turn, number: u32, first: u32) -> u32 {
        match turn.continues && number - first < MOST_TURNS {
            true => first,
            false => number,
        }
    }

    /// Means over many users and requests.
    #[must_use]
    pub fn expected(&self) -> Expected {
        let (mut sums, mut weights) = (Expected::default(), 0.0);
        for user in 0..SAMPLE.0 {
            let profile = self.profile(user);
            let weight = 1e9 / profile.think_ns.max(1) as f64;
            sums.per_s += weight;
            let (mut first, mut earlier) = (0, Vec::new());
            for number in 0..SAMPLE.1 {
                let turn = self.turn(user, &profile, number);
                let begins = self.first(&turn, number, first);
                if begins != first {
                    earlier.clear();
                }
                first = begins;
                let before: u64 = earlier.iter().sum();
                sums.written_tokens += weight * turn.context as f64;
                sums.reads += weight * (turn.reads() + earlier.len() as u64) as f64;
                sums.read_tokens += weight * (turn.reads() * turn.context + before) as f64;
                weights += weight;
                earlier.push(turn.context);
            }
        }
        Expected {
            per_s: sums.per_s / SAMPLE.0 as f64,
            written_tokens: sums.written_tokens / weights,
            reads: sums.reads / weights,
            read_tokens: sums.read_tokens / weights,
        }
    }
}

/// A number of the range, both ends included.
fn within(draws: &mut Draws, [least, most]: [u64; 2]) -> u64 {
    least + draws.below((most - least).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::{Turn, UserGen};
    use crate::plan::KvUsers;

    fn users() -> UserGen {
        UserGen::new(&KvUsers::mlperf(1, 200), 42, 0, 0)
    }

    #[test]
    fn users_and_requests_lie_within_their_ranges_and_follow_from_the_seed_alone() {
        let (users, again) = (users(), users());
        let mut kinds = [0; 3];
        for user in 0..3000 {
            let profile = users.profile(user);
            assert_eq!(profile, again.profile(user));
            kinds[profile.kind] += 1;
            let kind = &users.plan.kinds[profile.kind];
            assert!((kind.context[0]..=kind.context[1]).contains(&profile.context));
            for number in 0..5 {
                let turn = users.turn(user, &profile, number);
                assert_eq!(turn, again.turn(user, &profile, number));
                assert!((profile.context / 4..=profile.context).contains(&turn.context));
                assert!((profile.output / 4..=profile.output).contains(&turn.output));
                let pause = turn.think_ns as f64 / profile.think_ns as f64;
                assert!((0.799..1.2).contains(&pause), "{pause}");
            }
        }
        assert!(kinds.iter().all(|n| (900..1100).contains(n)), "{kinds:?}");
        let other = UserGen::new(&users.plan, 43, 0, 0);
        assert_ne!(users.profile(7), other.profile(7));
    }

    #[test]
    fn an_entry_is_read_once_and_per_batch_of_tokens_unless_the_prompt_is_long() {
        let turn = |context, output| Turn {
            think_ns: 0,
            continues: true,
            context,
            output,
        };
        assert_eq!(turn(9_999, 1).reads(), 2);
        assert_eq!(turn(9_999, 64).reads(), 3);
        assert_eq!(turn(9_999, 65).reads(), 4);
        assert_eq!(turn(10_000, 65).reads(), 0);
    }

    #[test]
    fn means_are_those_of_the_ranges() {
        let mean = users().expected();
        // A uniform pause from a to b seconds gives ln(b/a)/(b - a) requests per second.
        let rates = [5f64.ln() / 0.4, 5f64.ln() / 0.8, 5f64.ln() / 1.2];
        let rate = rates.iter().sum::<f64>() / 3.0;
        assert!((mean.per_s / rate - 1.0).abs() < 0.05, "{mean:?} {rate}");
        // A prompt is five eighths of the longest on average.
        let tokens = [2304.0, 14_548.0, 10_240.0].map(|longest| longest * 5.0 / 8.0);
        let each = rates.iter().zip(tokens).map(|(rate, tokens)| rate * tokens);
        let tokens = each.sum::<f64>() / rates.iter().sum::<f64>();
        assert!(
            (mean.written_tokens / tokens - 1.0).abs() < 0.05,
            "{mean:?} {tokens}"
        );
        // A fifth of the requests begin a conversation, so four earlier turns in the long run.
        assert!((8.0..14.0).contains(&mean.reads), "{mean:?}");
        let mut turn = users().turn(0, &users().profile(0), 1);
        turn.continues = true;
        assert_eq!(
            (users().first(&turn, 49, 0), users().first(&turn, 50, 0)),
            (0, 50)
        );
        turn.continues = false;
        assert_eq!(users().first(&turn, 3, 1), 3);
    }
}
