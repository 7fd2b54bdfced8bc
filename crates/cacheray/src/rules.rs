//! Every rule a diagnostic of this format may name.

use anytrace_core::Rule;

pub(crate) static BAD_TAG: Rule = Rule::error("cacheray/bad-tag", "a record starts with an unknown tag");
pub(crate) static TRUNCATED: Rule = Rule::error("cacheray/truncated", "the data end inside a record");
pub(crate) static TRUNCATED_STRING: Rule =
    Rule::error("cacheray/truncated-string", "a type name reaches past the end of the data");
pub(crate) static NAME_TOO_LONG: Rule =
    Rule::error("cacheray/name-too-long", "a type name is longer than the limit on a record");
pub(crate) static FLAGS_ON_RTTA: Rule = Rule::warning("cacheray/flags-on-rtta", "an RTTA record has an access flag");
pub(crate) static ZERO_TAIL: Rule = Rule::warning("cacheray/zero-tail", "the trace ends in zero bytes");
pub(crate) static ZERO_RUN: Rule = Rule::warning("cacheray/zero-run", "zero bytes appear between records");
pub(crate) static IMPLAUSIBLE_MIX: Rule = Rule::warning(
    "cacheray/implausible-mix",
    "implausible accesses appear among plausible ones, as when threads overwrite each other's records",
);
pub(crate) static ODD_SIZE: Rule = Rule::warning("cacheray/odd-size", "an access has a size that no compiler emits");
pub(crate) static NOT_CANONICAL: Rule =
    Rule::warning("cacheray/address-not-canonical", "an address has unequal bits 47 to 63");
pub(crate) static ACCESS_WRAPS: Rule =
    Rule::warning("cacheray/access-wraps", "an access reaches past the last address");
pub(crate) static MISALIGNED: Rule =
    Rule::warning("cacheray/misaligned-without-flag", "a misaligned access has no unaligned flag");
pub(crate) static HIGH_ADDRESSES: Rule = Rule::note("cacheray/high-addresses", "addresses have bit 63 set");
pub(crate) static ACCESS_STRADDLES: Rule =
    Rule::warning("cacheray/access-straddles-region-end", "an access reaches past the end of its region");
pub(crate) static REMOVE_WITHOUT_ADD: Rule =
    Rule::warning("cacheray/remove-without-add", "a remove names an address at which no region ever started");
pub(crate) static REMOVE_TWICE: Rule =
    Rule::warning("cacheray/remove-twice", "a remove names a region that was already removed");
pub(crate) static REMOVE_INSIDE: Rule =
    Rule::warning("cacheray/remove-inside-region", "a remove names an address inside a live region");
pub(crate) static REMOVE_NULL: Rule =
    Rule::note("cacheray/remove-null", "a remove names address 0, as realloc and free do for null");
pub(crate) static OVERLAP_SAME_START: Rule =
    Rule::warning("cacheray/overlap-same-start", "a region starts where a live region starts");
pub(crate) static OVERLAP_NESTED: Rule =
    Rule::note("cacheray/overlap-nested", "a region lies inside a live region, or encloses one");
pub(crate) static OVERLAP_PARTIAL: Rule =
    Rule::warning("cacheray/overlap-partial", "a region and a live region overlap in part");
pub(crate) static REGION_EMPTY: Rule = Rule::warning("cacheray/region-empty", "a region has no bytes");
pub(crate) static REGION_WRAPS: Rule = Rule::warning("cacheray/region-wraps", "a region reaches past the last address");
pub(crate) static REGION_HUGE: Rule =
    Rule::warning("cacheray/region-huge", "a region is larger than any address space");
pub(crate) static NAME_EMPTY: Rule = Rule::warning("cacheray/name-empty", "a type name is empty");
pub(crate) static NAME_ODD: Rule =
    Rule::warning("cacheray/name-odd", "a type name has control characters or is not UTF-8");
pub(crate) static NAME_LONG: Rule =
    Rule::note("cacheray/name-long", "a type name is long enough to crash the format's checker");
pub(crate) static TYPE_TWO_SIZES: Rule =
    Rule::note("cacheray/type-two-sizes", "arrays of one type have elements of different sizes");
pub(crate) static STATE_LIMIT: Rule =
    Rule::note("cacheray/state-limit", "more live regions or type names than the limit; some are not tracked");

/// All of the above.
pub(crate) static RULES: [&Rule; 29] = [
    &BAD_TAG,
    &TRUNCATED,
    &TRUNCATED_STRING,
    &NAME_TOO_LONG,
    &FLAGS_ON_RTTA,
    &ZERO_TAIL,
    &ZERO_RUN,
    &IMPLAUSIBLE_MIX,
    &ODD_SIZE,
    &NOT_CANONICAL,
    &ACCESS_WRAPS,
    &MISALIGNED,
    &HIGH_ADDRESSES,
    &ACCESS_STRADDLES,
    &REMOVE_WITHOUT_ADD,
    &REMOVE_TWICE,
    &REMOVE_INSIDE,
    &REMOVE_NULL,
    &OVERLAP_SAME_START,
    &OVERLAP_NESTED,
    &OVERLAP_PARTIAL,
    &REGION_EMPTY,
    &REGION_WRAPS,
    &REGION_HUGE,
    &NAME_EMPTY,
    &NAME_ODD,
    &NAME_LONG,
    &TYPE_TWO_SIZES,
    &STATE_LIMIT,
];
