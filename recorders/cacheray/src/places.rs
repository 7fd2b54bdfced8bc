//! Places that allocate, by name: the first one that is not in a function that allocates for others, and its callers.

use std::collections::HashMap;

use crate::calls::Call;
use crate::sites::{self, Described, Site};
use crate::spread::Spread;
use crate::wrappers::{CALLERS_MAX, Function, Watch, Wrappers};

/// Wrappers within wrappers that are followed.
const WRAPPERS_MAX: usize = 16;
/// Places and names that are kept; what is beyond has the name of the call itself.
const KEPT_MAX: usize = 1 << 20;

/// What makes a name: the place, its callers, and how it allocates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Chain {
    /// Return addresses, the place's first; 0 after the last.
    at: [usize; CALLERS_MAX + 1],
    call: usize,
    /// True where the place itself allocates.
    is_direct: bool,
}

/// A place as far as it is kept.
#[derive(Debug)]
struct Place {
    function: usize,
    name: Box<[u8]>,
    foreign: Box<[u8]>,
}

/// All that is known of places.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: HashMap<usize, Place, Spread>,
    functions: HashMap<usize, Function, Spread>,
    named: HashMap<Chain, u32, Spread>,
    pub(crate) wrappers: Wrappers,
    pub(crate) callers: usize,
    allocations: u64,
}

impl Places {
    /// What names an allocation of this many bytes; the error is an address that must be described first
    /// ([`sites::describe`], [`Self::learn`]).
    pub(crate) fn follow(
        &mut self,
        site: Site,
        bytes: u64,
        mut calls: impl Iterator<Item = Call>,
    ) -> Result<Chain, usize> {
        let mut chain = Chain { call: site.call as usize, is_direct: true, ..Chain::default() };
        let mut at = site.at;
        let mut watched = [(0, 0, 0); WRAPPERS_MAX];
        let mut caller = None;
        for slot in &mut watched {
            let function = self.place(at)?.function;
            let state = self.functions.get(&function).copied().unwrap_or(Function::Plain);
            if state == Function::Plain && self.callers == 0 {
                break;
            }
            caller = self.caller(function, &mut calls)?;
            let Some(from) = caller else { break };
            *slot = (function, at, from);
            if state != Function::Wrapper {
                break;
            }
            (at, caller) = (from, None);
            chain.is_direct = false;
        }
        self.place(at)?;
        let mut next = Some(at);
        for slot in chain.at.iter_mut().take(self.callers + 1) {
            let Some(address) = next else { break };
            *slot = address;
            next = match caller.take() {
                Some(from) => Some(from),
                None if self.callers > 0 => self.caller(self.place(address)?.function, &mut calls)?,
                None => None,
            };
            if let Some(address) = next {
                self.place(address)?;
            }
        }
        self.allocations += 1;
        for (function, place, from) in watched.into_iter().take_while(|(function, ..)| *function != 0) {
            self.watch(function, place, from, bytes);
        }
        Ok(chain)
    }

    fn place(&self, address: usize) -> Result<&Place, usize> {
        self.known.get(&address).ok_or(address)
    }

    /// Where the caller of a function goes on, if the last call is that function's.
    fn caller(&self, function: usize, calls: &mut impl Iterator<Item = Call>) -> Result<Option<usize>, usize> {
        let Some(call) = calls.next() else { return Ok(None) };
        let is_own = function != 0 && self.place(call.own)?.function == function;
        Ok(is_own.then_some(call.from))
    }

    fn watch(&mut self, function: usize, place: usize, from: usize, bytes: u64) {
        if let Some(Function::Watched(watch)) = self.functions.get_mut(&function)
            && let Some(verdict) = watch.allocated(place, from, bytes, self.allocations)
        {
            self.functions.insert(function, verdict);
        }
    }

    /// Keeps the description of an address. False where there is no room.
    pub(crate) fn learn(&mut self, address: usize, described: &Described) -> bool {
        if self.known.len() >= KEPT_MAX {
            return false;
        }
        let function = described.function;
        let wrappers = &self.wrappers;
        if wrappers.is_on && function != 0 {
            self.functions.entry(function).or_insert_with(|| {
                let is_wrapper = wrappers.has(&described.symbol, &described.readable);
                if is_wrapper { Function::Wrapper } else { Function::Watched(Watch::default()) }
            });
        }
        let place = Place { function, name: described.place().into(), foreign: described.foreign.as_slice().into() };
        self.known.insert(address, place);
        true
    }

    /// The number of a name, if it has one yet.
    pub(crate) fn number(&self, chain: &Chain) -> Option<u32> {
        self.named.get(chain).copied()
    }

    /// Keeps the number of a name.
    pub(crate) fn keep(&mut self, chain: Chain, number: u32) {
        if self.named.len() < KEPT_MAX {
            self.named.insert(chain, number);
        }
    }

    /// The name: the places with `<` between them, and the remarks.
    pub(crate) fn name(&self, chain: &Chain) -> Vec<u8> {
        let places: Vec<&Place> =
            chain.at.iter().take_while(|at| **at != 0).filter_map(|at| self.known.get(at)).collect();
        let names: Vec<&[u8]> = places.iter().map(|place| &*place.name).collect();
        let foreign = places.first().filter(|_| chain.is_direct).map_or(&[][..], |place| &place.foreign);
        sites::with_remarks(names.join(&b'<'), chain.call, foreign)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Call as Kind;

    /// Functions begin at multiples of 1000; that of 1000 is `xmalloc`, the others are `f2`, `f3` and so on.
    fn describe(address: usize) -> Described {
        let function = address / 1000 * 1000;
        let name = if function == 1000 { "xmalloc".to_owned() } else { format!("f{}", function / 1000) };
        Described {
            function,
            symbol: name.clone().into(),
            readable: name.into(),
            offset: (address - function) as u64,
            foreign: if address > 9000 { b"in libx.so".to_vec() } else { Vec::new() },
        }
    }

    /// The name of an allocation of `bytes` by the place, in the functions of `calls`: own addresses and their callers.
    fn name(places: &mut Places, at: usize, bytes: u64, calls: &[(usize, usize)]) -> String {
        let chain = loop {
            let calls = calls.iter().map(|(own, from)| Call { own: *own, from: *from });
            match places.follow(Site { at, call: Kind::Zeroed }, bytes, calls) {
                Ok(chain) => break chain,
                Err(unknown) => assert!(places.learn(unknown, &describe(unknown))),
            }
        };
        String::from_utf8_lossy(&places.name(&chain)).into_owned()
    }

    #[test]
    fn wrappers_are_skipped_where_their_calls_are_known() {
        let mut places = Places::default();
        assert_eq!(name(&mut places, 2005, 8, &[(2001, 3007)]), "f2+0x5 (calloc)");
        assert_eq!(name(&mut places, 1005, 8, &[(1001, 2007), (2001, 3008)]), "f2+0x7 (calloc)");
        // Its call is not known: the library is not instrumented, or the stack was changed.
        assert_eq!(name(&mut places, 1005, 8, &[]), "xmalloc+0x5 (calloc)");
        assert_eq!(name(&mut places, 1005, 8, &[(2001, 3008)]), "xmalloc+0x5 (calloc)");
        // Where the code is not instrumented, its file says so.
        assert_eq!(name(&mut places, 9005, 8, &[(2001, 3008)]), "f9+0x5 (calloc, in libx.so)");
        places.wrappers.is_on = false;
        let mut plain = Places { wrappers: Wrappers { named: Vec::new(), is_on: false }, ..Places::default() };
        assert_eq!(name(&mut plain, 1005, 8, &[(1001, 2007)]), "xmalloc+0x5 (calloc)");
    }

    #[test]
    fn callers_follow_the_place_as_far_as_they_are_known() {
        let mut places = Places { callers: 2, ..Places::default() };
        let calls = [(1001, 2007), (2001, 3008), (3001, 4009), (4001, 5010)];
        assert_eq!(name(&mut places, 1005, 8, &calls), "f2+0x7<f3+0x8<f4+0x9 (calloc)");
        assert_eq!(name(&mut places, 2005, 8, &calls[1..]), "f2+0x5<f3+0x8<f4+0x9 (calloc)");
        assert_eq!(name(&mut places, 2005, 8, &calls[1..2]), "f2+0x5<f3+0x8 (calloc)");
        // What f3 was called by is another function's word.
        assert_eq!(name(&mut places, 2005, 8, &[(2001, 3008), (6001, 7001)]), "f2+0x5<f3+0x8 (calloc)");
    }

    #[test]
    fn a_function_that_turns_out_to_be_a_wrapper_is_skipped_from_then_on() {
        let mut places = Places::default();
        let names: Vec<String> = (0..40)
            .map(|n| {
                let caller = 3000 + n % 5 * 1000;
                name(&mut places, 2005, 8 + n as u64 % 7, &[(2001, caller + 1), (caller + 2, 8001)])
            })
            .collect();
        assert!(names.iter().take(16).all(|name| name == "f2+0x5 (calloc)"), "{names:?}");
        assert!(names.iter().skip(16).all(|name| name != "f2+0x5 (calloc)"), "{names:?}");
    }
}
