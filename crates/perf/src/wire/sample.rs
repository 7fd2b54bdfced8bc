//! The body of a sample, and what other records end with: `perf_output_sample` and `perf_event__output_id_sample` of
//! Linux, `kernel/events/core.c`.

use super::attr::{Attr, has};
use super::bytes::{Bytes, Words};
use super::fault::Fault;

/// Bits of `read_format`.
const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const READ_GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;
/// Bit of `branch_sample_type`: the stack begins with an index.
const BRANCH_HW_INDEX: u64 = 1 << 17;

/// The fields of a sample that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sample<'a> {
    pub(crate) ip: Option<u64>,
    pub(crate) process: Option<u32>,
    pub(crate) thread: Option<u32>,
    pub(crate) time_ns: Option<u64>,
    pub(crate) address: Option<u64>,
    pub(crate) cpu: Option<u32>,
    pub(crate) period: Option<u64>,
    /// Addresses, innermost first, with marks between those of the kernel and those of the program.
    pub(crate) chain: Words<'a>,
    pub(crate) raw: &'a [u8],
    /// Bytes of the program's stack, which nobody has unwound.
    pub(crate) stack_bytes: u64,
    /// Bytes behind the last known field.
    pub(crate) rest_bytes: usize,
}

/// Reads the body of a sample of an event.
#[inline]
pub(crate) fn read<'a>(body: Bytes<'a>, attr: &Attr) -> Result<Sample<'a>, Fault> {
    let (mut sample, mut bytes) = (Sample::default(), body);
    let all = body.rest.len();
    let mut what = "sample";
    fill(&mut sample, &mut bytes, attr, &mut what).ok_or(Fault {
        field: what,
        expected: "inside the record",
        at: super::event::HEAD_BYTES + all - bytes.rest.len(),
    })?;
    sample.rest_bytes = bytes.rest.len();
    Ok(sample)
}

fn fill<'a>(sample: &mut Sample<'a>, bytes: &mut Bytes<'a>, attr: &Attr, what: &mut &'static str) -> Option<()> {
    let kinds = attr.sample_type;
    let is = |bit| kinds & bit != 0;
    if is(has::IDENTIFIER) {
        *what = "identifier";
        bytes.u64()?;
    }
    if is(has::IP) {
        *what = "ip";
        sample.ip = Some(bytes.u64()?);
    }
    if is(has::TID) {
        *what = "tid";
        (sample.process, sample.thread) = (Some(bytes.u32()?), Some(bytes.u32()?));
    }
    if is(has::TIME) {
        *what = "time";
        sample.time_ns = Some(bytes.u64()?);
    }
    if is(has::ADDR) {
        *what = "addr";
        sample.address = Some(bytes.u64()?);
    }
    for bit in [has::ID, has::STREAM_ID] {
        if is(bit) {
            *what = "id";
            bytes.u64()?;
        }
    }
    if is(has::CPU) {
        *what = "cpu";
        sample.cpu = Some(bytes.u32()?);
        bytes.u32()?;
    }
    if is(has::PERIOD) {
        *what = "period";
        sample.period = Some(bytes.u64()?);
    }
    if is(has::READ) {
        *what = "read";
        skip_read(bytes, attr.read_format)?;
    }
    if is(has::CALLCHAIN) {
        *what = "callchain";
        let count = bytes.u64()?;
        sample.chain = bytes.words(count)?;
    }
    if is(has::RAW) {
        *what = "raw";
        let length = bytes.u32()?;
        sample.raw = bytes.take(length.into())?;
    }
    if is(has::BRANCH_STACK) {
        *what = "branch_stack";
        let count = bytes.u64()?;
        if attr.branch_sample_type & BRANCH_HW_INDEX != 0 {
            bytes.u64()?;
        }
        bytes.take(count.checked_mul(24)?)?;
    }
    fill_rest(sample, bytes, attr, what)
}

/// The fields that only some recordings have.
fn fill_rest<'a>(sample: &mut Sample<'a>, bytes: &mut Bytes<'a>, attr: &Attr, what: &mut &'static str) -> Option<()> {
    let is = |bit| attr.sample_type & bit != 0;
    let registers = |bytes: &mut Bytes<'a>, mask: u64| {
        if bytes.u64()? != 0 {
            bytes.take(u64::from(mask.count_ones()) * 8)?;
        }
        Some(())
    };
    if is(has::REGS_USER) {
        *what = "regs_user";
        registers(bytes, attr.regs_user)?;
    }
    if is(has::STACK_USER) {
        *what = "stack_user";
        let length = bytes.u64()?;
        bytes.take(length)?;
        if length != 0 {
            sample.stack_bytes = bytes.u64()?;
        }
    }
    for bit in [has::WEIGHT | has::WEIGHT_STRUCT, has::DATA_SRC, has::TRANSACTION] {
        if is(bit) {
            *what = "weight";
            bytes.u64()?;
        }
    }
    if is(has::REGS_INTR) {
        *what = "regs_intr";
        registers(bytes, attr.regs_intr)?;
    }
    for bit in [has::PHYS_ADDR, has::CGROUP, has::DATA_PAGE_SIZE, has::CODE_PAGE_SIZE] {
        if is(bit) {
            *what = "phys_addr";
            bytes.u64()?;
        }
    }
    if is(has::AUX) {
        *what = "aux";
        let length = bytes.u64()?;
        bytes.take(length)?;
    }
    Some(())
}

/// Counters that were read together with the sample.
fn skip_read(bytes: &mut Bytes<'_>, format: u64) -> Option<()> {
    let is = |bit: u64| u64::from(format & bit != 0);
    let times = is(READ_ENABLED) + is(READ_RUNNING);
    let each = 1 + is(READ_ID) + is(READ_LOST);
    let words = match format & READ_GROUP {
        0 => times + each,
        _ => bytes.u64()?.checked_mul(each)?.checked_add(times)?,
    };
    bytes.take(words.checked_mul(8)?)?;
    Some(())
}

/// What a record that is no sample ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ids {
    pub(crate) thread: Option<u32>,
    pub(crate) time_ns: Option<u64>,
    pub(crate) cpu: Option<u32>,
}

/// Removes those fields from the end of a body.
pub(crate) fn split_ids<'a>(mut body: Bytes<'a>, attr: &Attr) -> Option<(Bytes<'a>, Ids)> {
    let mut ids = Ids::default();
    if !attr.has_ids() {
        return Some((body, ids));
    }
    let is = |bit| attr.sample_type & bit != 0;
    if is(has::IDENTIFIER) {
        body.u64_from_end()?;
    }
    if is(has::CPU) {
        ids.cpu = halves(&mut body).map(|(cpu, _)| cpu);
    }
    for bit in [has::STREAM_ID, has::ID] {
        if is(bit) {
            body.u64_from_end()?;
        }
    }
    if is(has::TIME) {
        ids.time_ns = Some(body.u64_from_end()?);
    }
    if is(has::TID) {
        ids.thread = halves(&mut body).map(|(_, thread)| thread);
    }
    Some((body, ids))
}

fn halves(body: &mut Bytes<'_>) -> Option<(u32, u32)> {
    let (rest, last) = body.rest.split_last_chunk::<8>()?;
    let mut own = Bytes::new(last, body.endian);
    body.rest = rest;
    Some((own.u32()?, own.u32()?))
}

/// The number by which the event of a record is found; `None` where records have none.
pub(crate) fn event_id(body: Bytes<'_>, is_sample: bool, attr: &Attr) -> Option<u64> {
    let is = |bit| attr.sample_type & bit != 0;
    let mut body = body;
    if is_sample {
        if is(has::IDENTIFIER) {
            return body.u64();
        }
        let before = [has::IP, has::TID, has::TIME, has::ADDR].into_iter().filter(|bit| is(*bit)).count();
        body.take(before as u64 * 8)?;
        return if is(has::ID) { body.u64() } else { None };
    }
    if !attr.has_ids() {
        return None;
    }
    if is(has::IDENTIFIER) {
        return body.u64_from_end();
    }
    for bit in [has::CPU, has::STREAM_ID] {
        if is(bit) {
            body.u64_from_end()?;
        }
    }
    if is(has::ID) { body.u64_from_end() } else { None }
}
