//! What is written reads back the same, in every layout and version.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::{Endian, Input, OpenOptions};
use anytrace_xray::record::{
    BasicBody, BasicRecord, BitOrder, Body, CustomTime, Function, FunctionKind, HEADER_BYTES, Header, Metadata, Orders,
};
use anytrace_xray::{Layout, LayoutForm, Reader, Record, Writer, parse};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 256, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() }
}

fn orders() -> [Orders; 3] {
    let llvm_big = Orders { endian: Endian::Big, bits: BitOrder::Low };
    [Orders::of(Endian::Little), Orders::of(Endian::Big), llvm_big]
}

fn fdr(version: u16, orders: Orders) -> Layout {
    let header = Header { version, type_code: 1, ..Header::default() };
    Layout { form: LayoutForm::Fdr(header), orders, record_bytes_max: 1000 }
}

/// The bytes of one record, without those of the header.
fn written(record: &Record<'_>, layout: &Layout) -> Vec<u8> {
    let mut writer = Writer::with_layout(Vec::new(), layout);
    writer.write(record).unwrap();
    writer.finish().unwrap().split_off(HEADER_BYTES)
}

fn kind(number: u8) -> FunctionKind {
    FunctionKind::from_number(number % 4).unwrap()
}

fn body(which: u8, version: u16, number: u64, data: &[u8]) -> Body<'_> {
    let (low, high) = (number as u32, (number >> 32) as u32);
    match which % 10 {
        0 => Body::NewBuffer { thread: low.cast_signed() },
        1 => Body::EndOfBuffer,
        2 => Body::NewCpu { cpu: low as u16, tsc: number },
        3 => Body::TscWrap { tsc: number },
        4 => Body::WallTime { seconds: number, micros: high },
        5 => {
            let time = match version {
                0..=3 => CustomTime::Absolute { tsc: number },
                4 => CustomTime::OnCpu { tsc: number, cpu: low as u16 },
                _ => CustomTime::Delta { delta: low.cast_signed() },
            };
            Body::CustomEvent { time, data }
        }
        6 => Body::CallArgument { value: number },
        7 => Body::BufferExtents { bytes: number },
        8 => Body::TypedEvent { delta: low.cast_signed(), event_type: high as u16, data },
        _ => Body::Pid { process: low.cast_signed() },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn function_records_come_back(number in 0_u8..4, id in 0_u32..1 << 28, delta: u32) {
        for orders in orders() {
            // With LLVM's bit positions in big-endian words bit 20 of the id falls on the discriminant.
            let id = if orders.is_llvm_big() { id & 0xf_ffff } else { id };
            let (function, layout) = (Record::Function(Function { kind: kind(number), id, delta }), fdr(5, orders));
            let bytes = written(&function, &layout);
            prop_assert_eq!(parse(&bytes, &layout).ok(), Some((function, 8)));
        }
    }

    #[test]
    fn metadata_records_come_back(which: u8, version in 1_u16..6, number: u64, data in prop::collection::vec(any::<u8>(), 1..40), garbage: [u8; 15]) {
        for orders in orders() {
            let (body, layout) = (body(which, version, number, &data), fdr(version, orders));
            let record = Record::Metadata(Metadata { body, reserved: &garbage });
            if matches!(body, Body::EndOfBuffer) && version > 1 {
                prop_assert!(Writer::with_layout(Vec::new(), &layout).write(&record).is_err());
                continue;
            }
            let bytes = written(&record, &layout);
            let (record, used) = parse(&bytes, &layout).unwrap();
            prop_assert_eq!(used, bytes.len());
            let Record::Metadata(metadata) = record else { panic!("not metadata") };
            prop_assert_eq!(metadata.body, body);
            prop_assert_eq!(metadata.reserved, &garbage[..metadata.reserved.len()]);
        }
    }

    #[test]
    fn basic_records_and_headers_come_back(number: u64, other: u64, which in 0_u8..5, padding: [u8; 8]) {
        let body = if which == 4 {
            BasicBody::Argument { value: number, pad: [padding[0], padding[1]] }
        } else {
            BasicBody::Function { kind: kind(which), cpu: padding[2], tsc: number }
        };
        let record = BasicRecord { body, id: (other as u32).cast_signed(), thread: (other >> 32) as u32, process: 3, padding };
        let header = Header { version: 3, type_code: 0, flags: other as u32, cycle_frequency: number, buffer_size: other, reserved: number };
        for endian in [Endian::Little, Endian::Big] {
            let layout = Layout { form: LayoutForm::Basic(header), orders: Orders::of(endian), ..Layout::default() };
            let record = Record::Basic(record);
            let bytes = written(&record, &layout);
            prop_assert_eq!(parse(&bytes, &layout).ok(), Some((record, 32)));
            let bytes = Writer::with_layout(Vec::new(), &layout).finish().unwrap();
            let reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
            prop_assert_eq!(*reader.layout(), layout);
        }
    }
}
