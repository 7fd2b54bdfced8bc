//! How the values of options are written.

use super::*;

#[test]
fn ranges_are_half_open_unless_they_say_so() {
    assert_eq!(number_range("3..5"), Ok(3..5));
    assert_eq!(number_range("3..=5"), Ok(3..6));
    assert_eq!(number_range("..5"), Ok(0..5));
    assert_eq!(number_range("0x10.."), Ok(16..u64::MAX));
    assert_eq!(number_range("7"), Ok(7..8));
    assert_eq!(number_range("3-5"), Ok(3..6));
    assert_eq!(number_range("3-"), Ok(3..u64::MAX));
    assert_eq!(number_range("3+5"), Ok(3..8));
    assert!(number_range("5..3").is_err() && number_range("a..b").is_err() && number_range("").is_err());
}

#[test]
fn sets_are_ranges_with_steps() {
    let numbers = |text: &str| {
        let set = values::number_set(text, &[]).unwrap();
        (0..40).filter(|number| set.contains(*number)).collect::<Vec<_>>()
    };
    assert_eq!(numbers("7"), [7]);
    assert_eq!(numbers("1,3,10-12"), [1, 3, 10, 11, 12]);
    assert_eq!(numbers("30../4,3..=4,3"), [3, 4, 30, 34, 38]);
    assert_eq!(numbers("*/13"), [0, 13, 26, 39]);
    assert_eq!(numbers("5+2,..2"), [0, 1, 5, 6]);
    for wrong in ["", ",", "1,", "x", "3-1", "1-5/0", "1-5/", "1-5/draw", "1/2/3"] {
        assert!(values::number_set(wrong, &["frame"]).is_err(), "{wrong}");
    }
    let set = values::number_set("1-2/frame,9", &["frame"]).unwrap();
    assert!(set.contains_where(2, |word| word == "frame") && set.contains(9) && !set.contains(2));
    assert!(values::number_set("frame", &["frame"]).unwrap().contains_where(77, |_| true));
    assert!(values::number_set("frame", &[]).is_err());
}

#[test]
fn times_carry_their_unit() {
    assert_eq!(time_range("5..1.5ms"), Ok((TimeBound::Native(5), TimeBound::Nanoseconds(1_500_000))));
    assert_eq!(time_range("2s.."), Ok((TimeBound::Nanoseconds(2_000_000_000), TimeBound::Open)));
    assert_eq!(time_range("2us-5us"), Ok((TimeBound::Nanoseconds(2_000), TimeBound::Nanoseconds(5_001))));
    assert_eq!(time_range("2..=5"), Ok((TimeBound::Native(2), TimeBound::Native(6))));
    assert_eq!(time_range("5"), Ok((TimeBound::Native(5), TimeBound::Native(6))));
    assert_eq!(time_range("5-"), Ok((TimeBound::Native(5), TimeBound::Open)));
    assert_eq!(time_range("2us+500ns"), Ok((TimeBound::Nanoseconds(2_000), TimeBound::Nanoseconds(2_500))));
    assert!(time_range("2us+5").is_err());
    assert!(time_range("").is_err() && time_range("1.xms..").is_err());
    assert!(time_range("5..1").is_err() && time_range("2us..1999ns").is_err() && time_range("5..5").is_ok());
}

#[test]
fn no_rows_are_all_rows() {
    assert_eq!((rows("0"), rows("7")), (Ok(usize::MAX), Ok(7)));
    assert!(rows("-1").is_err() && rows("x").is_err());
}

#[test]
fn sizes_have_suffixes() {
    assert_eq!(byte_count("64k"), Ok(65_536));
    assert!(byte_count("0").is_err() && byte_count("x").is_err() && byte_count("99999999999G").is_err());
}
