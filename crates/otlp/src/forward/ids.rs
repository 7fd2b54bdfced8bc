//! Ids of spans that had none in OTLP: the same for the same span, whenever and by whomever it is sent.

/// Spreads a number over all bits, one to one (the finalizer of SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn folded(numbers: [u64; 4]) -> u64 {
    // An id of zeros is none.
    numbers.into_iter().fold(0, |all, number| mixed(all ^ number)).max(1)
}

/// The id of a trace of a session: `group` is the substream of its spans.
pub(super) fn trace(session: u128, group: u64) -> [u8; 16] {
    let [high, low] = [1, 2].map(|half| folded([(session >> 64) as u64, session as u64, group, half]));
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

/// The id of a span of a session; `view` distinguishes the spans that are made of one.
pub(super) fn span(session: u128, span: u64, view: u64) -> [u8; 8] {
    folded([(session >> 64) as u64 ^ session as u64, span, view, 3]).to_be_bytes()
}
