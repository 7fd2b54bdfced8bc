//! Packets of a recording, byte by byte: a sender of our own shares no code with the recorder.

/// What begins a part of the session.
pub(super) fn session(id: u64, part: u64) -> Vec<u8> {
    metadata("anytrace.session", &[id_of(id), text("program", "our own"), number("part", part)].concat())
}

/// What the session's only stream, number 1, has recorded.
pub(super) fn account(id: u64, recorded: u64, is_closed: bool) -> Vec<u8> {
    let streams = [array("stream", 1), array("recorded", recorded), array("dropped", 0), array("lost", 0)];
    let all = [number("all_streams", 1), number("all_recorded", recorded)];
    let value = [id_of(id), number("closed", is_closed.into()), streams.concat(), all.concat()];
    metadata("anytrace.account", &value.concat())
}

/// An event of stream 1.
pub(super) fn event(counter: u64) -> Vec<u8> {
    event_of(1, counter)
}

/// An event of a stream.
pub(super) fn event_of(stream: u32, counter: u64) -> Vec<u8> {
    let words = [0xC1FC_1FB7, 42 + 7, stream, counter as u32];
    let mut packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [0, counter, counter].iter().for_each(|word| packet.extend_from_slice(&word.to_be_bytes()));
    packet.extend_from_slice(&short("counted"));
    packet
}

fn metadata(option: &str, value: &[u8]) -> Vec<u8> {
    let option = short(option);
    let size = 8 + option.len() + value.len();
    [&0x75D1_1D4D_u32.to_be_bytes()[..], &(size as u32).to_be_bytes(), &option, value].concat()
}

fn id_of(id: u64) -> Vec<u8> {
    text("id", &format!("{id:032x}"))
}

/// A string with its length.
fn short(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    [short(name), vec![4], short(value)].concat()
}

fn number(name: &str, value: u64) -> Vec<u8> {
    [short(name), vec![1], value.to_be_bytes().to_vec()].concat()
}

/// An array with one element.
fn array(name: &str, value: u64) -> Vec<u8> {
    [short(name), vec![0x81, 0, 1], value.to_be_bytes().to_vec()].concat()
}
