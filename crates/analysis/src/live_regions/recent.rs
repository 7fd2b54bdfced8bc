//! Look-ups that were made before: most accesses are to where another just was.

/// log2 of the bytes that share an answer at most: what `malloc` aligns to, so that neighbours do not push each other
/// out.
const GRANULE_BITS: u32 = 4;

/// log2 of the answers kept at least and at most.
const ANSWERS_BITS: (u32, u32) = (8, 18);

/// Granules of a change that are forgotten one by one; wider changes make everything be forgotten.
const FORGOTTEN_MAX: u64 = 256;

/// Threads whose latest answer is kept; others share a place.
const THREADS: usize = 64;

/// Answer of a look-up: the region's slot, or none.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Answer of a look-up: no region, but one was removed there.
pub(super) const REMOVED_SLOT: u32 = u32::MAX - 2;

/// One answer for some bytes of a granule.
#[derive(Debug, Clone, Copy)]
struct Answer {
    granule: u64,
    slot: u32,
    /// Answers of other generations are void; that of 0 is never current.
    generation: u16,
    first: u8,
    last: u8,
}

const VOID: Answer = Answer { granule: 0, slot: 0, generation: 0, first: 1, last: 0 };

/// The latest answer for a thread, for as long as no region comes or goes.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    first: u64,
    last: u64,
    slot: u32,
    /// 0 is never current.
    version: u64,
}

/// The answers.
#[derive(Debug)]
pub(super) struct Recent {
    answers: Vec<Answer>,
    bits: u32,
    generation: u16,
    version: u64,
    threads: [Latest; THREADS],
}

impl Default for Recent {
    fn default() -> Self {
        let bits = ANSWERS_BITS.0;
        Self { answers: vec![VOID; 1 << bits], bits, generation: 1, version: 1, threads: [Latest::default(); THREADS] }
    }
}

impl Recent {
    /// The answer for an address, when it is known.
    #[inline]
    pub(super) fn get(&self, thread: u32, address: u64) -> Option<u32> {
        let latest = &self.threads[thread as usize % THREADS];
        if latest.version == self.version && latest.first <= address && address <= latest.last {
            return Some(latest.slot);
        }
        let granule = address >> GRANULE_BITS;
        let within = (address & ((1 << GRANULE_BITS) - 1)) as u8;
        let answer = self.answers.get(self.place(granule))?;
        let is_known = answer.granule == granule
            && answer.generation == self.generation
            && answer.first <= within
            && within <= answer.last;
        is_known.then_some(answer.slot)
    }

    /// Keeps an answer that holds for `first..=last`, of which `address` is one.
    pub(super) fn put(&mut self, thread: u32, address: u64, first: u64, last: u64, slot: u32) {
        self.threads[thread as usize % THREADS] = Latest { first, last, slot, version: self.version };
        let granule = address >> GRANULE_BITS;
        let start = granule << GRANULE_BITS;
        let end = start | ((1 << GRANULE_BITS) - 1);
        let within = |at: u64| (at & ((1 << GRANULE_BITS) - 1)) as u8;
        let (first, last) = (within(first.max(start)), within(last.min(end)));
        let generation = self.generation;
        let place = self.place(granule);
        if let Some(answer) = self.answers.get_mut(place) {
            *answer = Answer { granule, slot, generation, first, last };
        }
    }

    /// Forgets what is known of `first..=last`.
    pub(super) fn forget(&mut self, first: u64, last: u64) {
        self.version += 1;
        let (from, to) = (first >> GRANULE_BITS, last >> GRANULE_BITS);
        if to - from >= FORGOTTEN_MAX {
            return self.forget_all();
        }
        for granule in from..=to {
            let place = self.place(granule);
            if let Some(answer) = self.answers.get_mut(place).filter(|answer| answer.granule == granule) {
                *answer = VOID;
            }
        }
    }

    /// Makes room for as many answers as serve so many regions.
    pub(super) fn fit(&mut self, regions: usize) {
        let wanted = (regions.saturating_mul(2).max(1)).ilog2() + 1;
        let bits = wanted.clamp(ANSWERS_BITS.0, ANSWERS_BITS.1);
        if bits > self.bits {
            self.bits = bits;
            self.answers = vec![VOID; 1 << bits];
        }
    }

    fn forget_all(&mut self) {
        match self.generation.checked_add(1) {
            Some(next) => self.generation = next,
            None => {
                self.answers.fill(VOID);
                self.generation = 1;
            }
        }
    }

    /// Fibonacci hashing: the high bits of a product.
    #[inline]
    fn place(&self, granule: u64) -> usize {
        (granule.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bits)) as usize
    }
}
