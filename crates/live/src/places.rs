//! Who gets a place where there are more connections than places, and who is read next.
//!
//! A recorder that sends must not suffer from those that only connect, or from a machine with many connections. Who has not
//! sent a packet waits, and has no place. Who has sent one gets a free place, or that of a connection that has been silent
//! for the idle time, or of one of the address with the most places, if its own has fewer.

use std::time::{Duration, Instant};

use anytrace_core::Error;
use anytrace_core::hash::Map;

use crate::census::Census;
use crate::connection::{Connection, Standing};
use crate::peer::Address;
use crate::pool::Pool;
use crate::source::Shared;

/// How long a connection of an address with many places must have been silent to lose its own.
const PAUSE: Duration = Duration::from_secs(1);

/// Of a connection, what decides whether it keeps its place.
struct Claim {
    at: usize,
    address: Address,
    last_seen: Instant,
}

/// Ends a connection for a newcomer that needs its place; false where all have a better claim.
pub(crate) fn make_room(
    connections: &mut [Connection],
    newcomer: Address,
    idle: Duration,
    census: &mut Census,
    shared: &mut Shared<'_>,
    pool: &mut Pool,
) -> Result<bool, Error> {
    let placed = connections.iter().enumerate();
    let placed = placed.filter(|(_, connection)| connection.standing == Standing::Placed && !connection.has_ended);
    let claims: Vec<Claim> = placed
        .filter_map(|(at, connection)| {
            Some(Claim { at, address: connection.address, last_seen: census.heard(connection.slot)? })
        })
        .collect();
    let Some(at) = weakest(&claims, newcomer, idle, shared.now) else { return Ok(false) };
    let Some(connection) = connections.get_mut(at) else { return Ok(false) };
    connection.has_ended = true;
    if let Some(mut intake) = census.intake(connection.slot, shared) {
        connection.end(pool, &mut intake)?;
    }
    Ok(true)
}

/// The connection that has to go.
fn weakest(claims: &[Claim], newcomer: Address, idle: Duration, now: Instant) -> Option<usize> {
    let silence = |claim: &&Claim| now.duration_since(claim.last_seen);
    let longest = |claims: &mut dyn Iterator<Item = &Claim>| claims.max_by_key(silence).map(|claim| claim.at);
    let mut places: Map<Address, usize> = Map::default();
    claims.iter().for_each(|claim| *places.entry(claim.address).or_default() += 1);
    let held = |address: Address| places.get(&address).copied().unwrap_or(0);
    let most = places.values().copied().max().unwrap_or(0);
    let has_fewer = held(newcomer) + 1 < most;
    let greedy = |claim: &&Claim| has_fewer && held(claim.address) == most && silence(claim) >= PAUSE;
    longest(&mut claims.iter().filter(|claim| silence(claim) >= idle))
        .or_else(|| longest(&mut claims.iter().filter(greedy)))
}

/// The order of reading: connections of an address take turns, and addresses have as many reads each, as long as they
/// have something to be read.
///
/// `ready` are the addresses of the connections that can be read, `turn` changes from call to call; the result has
/// places in `ready`, each as often as it may be read.
pub(crate) fn turns(ready: &[Address], turn: usize) -> Vec<usize> {
    let mut groups: Vec<(Address, Vec<usize>)> = Vec::new();
    let mut known: Map<Address, usize> = Map::default();
    for (at, address) in ready.iter().enumerate() {
        let group = *known.entry(*address).or_insert_with(|| {
            groups.push((*address, Vec::new()));
            groups.len() - 1
        });
        if let Some((_, members)) = groups.get_mut(group) {
            members.push(at);
        }
    }
    let each = ready.len().div_ceil(groups.len().max(1));
    let of_round = |round: usize| {
        groups.iter().filter_map(move |(_, members)| members.get((turn + round) % members.len().max(1)).copied())
    };
    (0..each).flat_map(of_round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(last: u8) -> Address {
        Address::Net([10, 0, 0, last].into())
    }

    /// Claims by address, and for how many seconds they have been silent.
    fn claims(now: Instant, of: &[(u8, u64)]) -> Vec<Claim> {
        let claim = |(at, (address, silent)): (usize, &(u8, u64))| Claim {
            at,
            address: net(*address),
            last_seen: now - Duration::from_secs(*silent),
        };
        of.iter().enumerate().map(claim).collect()
    }

    #[test]
    fn the_weakest_claim_loses_its_place() {
        let now = Instant::now() + Duration::from_secs(1000);
        let idle = Duration::from_secs(60);
        let weakest = |of: &[(u8, u64)], newcomer| weakest(&claims(now, of), net(newcomer), idle, now);
        assert_eq!(weakest(&[(1, 70), (1, 100), (1, 0)], 1), Some(1));
        // All send: nobody goes for another connection of the same machine.
        assert_eq!(weakest(&[(1, 5), (1, 5), (1, 0)], 1), None);
        // But for one of a machine with fewer places.
        assert_eq!(weakest(&[(1, 5), (1, 9), (2, 20)], 2), None);
        assert_eq!(weakest(&[(1, 5), (1, 9), (2, 20)], 3), Some(1));
        assert_eq!(weakest(&[(1, 0), (1, 0)], 3), None, "in the middle of sending");
        assert_eq!(weakest(&[], 1), None);
    }

    #[test]
    fn each_address_is_read_as_often() {
        let ready = [net(1), net(1), net(1), net(2), net(1)];
        let turns = |turn| super::turns(&ready, turn);
        assert_eq!(turns(0), [0, 3, 1, 3, 2, 3]);
        assert_eq!(turns(1), [1, 3, 2, 3, 4, 3]);
        assert_eq!(super::turns(&[net(1); 3], 1), [1, 2, 0]);
        assert!(super::turns(&[], 7).is_empty());
        // In as many turns as it has connections each has been read.
        let all: std::collections::BTreeSet<_> = (0..4).flat_map(turns).collect();
        assert_eq!(all.len(), 5);
    }
}
