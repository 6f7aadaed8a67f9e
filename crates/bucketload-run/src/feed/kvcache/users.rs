//! The users of a language model (docs/spec/ai-kvcache.md section 5): each waits for its request, thinks, and sends the
//! next. What becomes of a request is in [`super::turn`].

use std::collections::VecDeque;
use std::sync::Arc;

use bucketload_core::generate::users::{Profile, Turn, UserGen};
use bucketload_core::plan::{KvUsers, KvcachePlan};

use super::arrivals::Block;
use super::turn::Asked;
use super::{Kvcache, Slab, Timer};
use crate::kvcache::Index;
use crate::shard::Shard;

/// The memory tier, as `_ensure_space_in_tier` of MLPerf's program uses it: entries move to the store until this share
/// is used; a larger entry than the second does not enter; one beyond the third does not push out less than the fourth;
/// below the fifth everything enters. In hundredths of the memory.
const FILLED: u128 = 80;
const LARGEST: u128 = 95;
const LARGE: u128 = 40;
const LITTLE: u128 = 20;
const EMPTY: u128 = 5;

/// A server of the model.
pub(super) struct Client {
    bytes: u64,
    pub(super) tier: Index,
    /// Requests that write their entry, and those that wait to.
    pub(super) writing: u32,
    pub(super) waiting: VecDeque<u32>,
}

impl Client {
    fn new(plan: &KvUsers) -> Self {
        Self {
            bytes: plan.tier_bytes,
            tier: Index::new((u128::from(plan.tier_bytes) * FILLED / 100) as u64),
            writing: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Whether a new entry of `bytes` bytes goes to the memory.
    pub(super) fn takes(&self, bytes: u64) -> bool {
        let part = |percent| u128::from(self.bytes) * percent / 100;
        let (entry, used) = (u128::from(bytes), u128::from(self.tier.bytes()));
        let fits = used + entry <= part(FILLED) || used < part(EMPTY);
        self.bytes > 0
            && entry <= part(LARGEST)
            && (fits || used >= part(LITTLE) || entry <= part(LARGE))
    }
}

/// A user.
pub(super) struct User {
    /// Number over all clients.
    pub(super) number: u64,
    /// Index of its client among those of this feed.
    pub(super) client: u32,
    pub(super) profile: Profile,
    /// Number of its request, and of the first of the conversation.
    pub(super) turn: u32,
    pub(super) first: u32,
}

/// The users of one feed: those of the clients whose number is its index modulo the number of feeds.
pub(super) struct Users {
    pub(super) plan: KvUsers,
    pub(super) generator: Arc<UserGen>,
    share: (u32, u32),
    pub(super) clients: Vec<Client>,
    pub(super) users: Vec<User>,
    pub(super) asked: Slab<Asked>,
}

impl Users {
    pub(super) fn new(plan: &KvUsers, generator: &Arc<UserGen>, share: (u32, u32)) -> Self {
        let (index, of) = share;
        let mine = (index..plan.clients).step_by(of as usize);
        let (mut clients, mut users) = (Vec::new(), Vec::new());
        for number in mine {
            let client = clients.len() as u32;
            clients.push(Client::new(plan));
            let first = u64::from(number) * u64::from(plan.users);
            users.extend((first..first + u64::from(plan.users)).map(|number| User {
                number,
                client,
                profile: generator.profile(number),
                turn: 0,
                first: 0,
            }));
        }
        Self {
            plan: plan.clone(),
            generator: Arc::clone(generator),
            share,
            clients,
            users,
            asked: Slab::new(),
        }
    }

    /// Request number `turn` of user number `user` over all clients.
    pub(super) fn turn(&self, user: u64, turn: u32) -> Turn {
        let profile = &self.users[self.local(user)].profile;
        self.generator.turn(user, profile, turn)
    }

    /// Index of user number `user` among those of this feed.
    fn local(&self, user: u64) -> usize {
        let each = u64::from(self.plan.users);
        let (index, of) = (u64::from(self.share.0), u64::from(self.share.1));
        ((user / each - index) / of * each + user % each) as usize
    }

    /// The entry of request number `turn` of user number `user`.
    pub(super) fn entry(&self, user: u64, turn: u32, plan: &KvcachePlan) -> Block {
        let tokens = self.turn(user, turn).context;
        Block {
            id: user << 32 | u64::from(turn),
            tokens,
            // No object is empty.
            bytes: plan.bytes_of(tokens).max(plan.parts()),
            good: 0,
            ended: 0,
            done_ns: 0,
        }
    }

    /// The entry called `id`, and whether its conversation goes on.
    pub(super) fn entry_of(&self, id: u64, plan: &KvcachePlan) -> (Block, bool) {
        let (user, turn) = (id >> 32, id as u32);
        let goes_on = turn >= self.users[self.local(user)].first;
        (self.entry(user, turn, plan), goes_on)
    }
}

impl Kvcache {
    /// All users begin to think.
    pub(super) fn start_users(&mut self, start_ns: u64) {
        let Some(users) = &self.users else { return };
        for user in 0..users.users.len() as u32 {
            self.think(user, start_ns);
        }
    }

    /// A user thinks from `from_ns` on.
    pub(super) fn think(&mut self, user: u32, from_ns: u64) {
        let Some(users) = &self.users else { return };
        let of = &users.users[user as usize];
        let pause = users.turn(of.number, of.turn).think_ns;
        self.add_timer(from_ns.saturating_add(pause), Timer::Ask(user));
    }

    /// A user sends its next request, which was due at `due_ns`.
    pub(super) fn ask(&mut self, user: u32, due_ns: u64, shard: &Shard) {
        let Some(users) = &mut self.users else { return };
        let of = &mut users.users[user as usize];
        let turn = users.generator.turn(of.number, &of.profile, of.turn);
        let (number, before) = (of.number, of.first);
        of.first = users.generator.first(&turn, of.turn, before);
        let (first, last) = (of.first, of.turn);
        for old in before..first {
            // The objects stay, but nobody reads them again.
            self.index.forget(number << 32 | u64::from(old));
        }
        let client = &mut users.clients[of.client as usize];
        let mut asked = Asked::new(user, due_ns, &turn);
        let (mut absorbed, mut tokens) = (0, 0);
        for earlier in first..last {
            let entry = users.generator.turn(number, &of.profile, earlier);
            let id = number << 32 | u64::from(earlier);
            tokens += entry.context;
            if client.tier.reading(id).is_some() {
                client.tier.read(id);
                asked.hit(entry.context, self.plan.bytes_of(entry.context));
                absorbed += 1;
            } else if self.index.is_writing(id) {
                // On its way from the memory to the store.
                asked.hit(entry.context, self.plan.bytes_of(entry.context));
                absorbed += 1;
            } else if let Some(bytes) = self.index.reading(id) {
                asked.entries.push(Block {
                    id,
                    tokens: entry.context,
                    bytes,
                    good: 0,
                    ended: 0,
                    done_ns: 0,
                });
            }
        }
        asked.own = users.entry(number, last, &self.plan);
        (asked.earlier, asked.earlier_tokens) = (u64::from(last - first), tokens);
        shard.recorder.tally().kvcache.absorbed += absorbed;
        let asked = users.asked.add(asked);
        self.go_on(asked, due_ns, shard);
    }
}

#[cfg(test)]
mod tests {
    use super::Client;
    use bucketload_core::plan::KvUsers;

    #[test]
    fn the_memory_takes_entries_as_mlperf_does() {
        let mut client = Client::new(&KvUsers {
            tier_bytes: 1000,
            ..KvUsers::mlperf(1, 1)
        });
        assert!(client.takes(950) && !client.takes(951), "empty");
        client.tier.insert(1, 100);
        client.tier.wrote(1, true);
        // A tenth is used: a large entry that does not fit leaves it alone.
        assert!(client.takes(700) && !client.takes(701));
        client.tier.insert(2, 100);
        client.tier.wrote(2, true);
        assert!(client.takes(701) && client.takes(950));
        let none = Client::new(&KvUsers::mlperf(1, 1));
        assert!(!none.takes(1));
    }
}
