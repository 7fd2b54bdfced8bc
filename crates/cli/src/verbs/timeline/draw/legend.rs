//! The legend: names with their letters and colors.

use anstyle::AnsiColor;
use anytrace_analysis::directory::Directory;
use anytrace_analysis::overview::Picture;
use anytrace_core::span::NameId;

use super::{Look, cut};
use crate::paint::{self, Paint};
use crate::units::{Times, counted, percent};

/// Names in the legend, each with a letter.
const LEGEND: usize = 12;

/// Colors of the legend's names, in turn.
const COLORS: [AnsiColor; 6] =
    [AnsiColor::Blue, AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Magenta, AnsiColor::Cyan, AnsiColor::Red];

pub(super) fn legend(picture: &Picture, directory: &Directory, look: &Look) -> String {
    let all: u128 = picture.names.iter().map(|(_, own)| own).sum();
    let times = Times(directory.source().unit);
    let room = look.width.saturating_sub(4 + 7 + 13);
    let mut out = String::new();
    for (rank, &(name, own)) in picture.names.iter().take(LEGEND).enumerate() {
        let style = style(Some(rank));
        let share = percent(own as f64, all as f64);
        let time = times.length(own);
        let shown = cut(&directory.shown_name(name), room);
        out.push_str(&format!("  {style}{}{style:#} {share:>6} {time:>11}  {shown}\n", letter(Some(rank))));
    }
    let rest: u128 = picture.names.iter().skip(LEGEND).map(|(_, own)| own).sum();
    if picture.names.len() > LEGEND {
        let (share, time) = (percent(rest as f64, all as f64), times.length(rest));
        let more = cut(&counted((picture.names.len() - LEGEND) as u64, "further name"), room);
        out.push_str(&format!("  {} {share:>6} {time:>11}  {more}\n", letter(None)));
    }
    out
}

/// Place of a name in the legend; `None` past its end.
pub(super) fn rank(name: NameId, picture: &Picture) -> Option<usize> {
    picture.names.iter().take(LEGEND).position(|(known, _)| *known == name)
}

pub(super) fn style(rank: Option<usize>) -> Paint {
    match rank {
        Some(rank) => paint::color(COLORS[rank % COLORS.len()]),
        None => paint::DIM,
    }
}

pub(super) fn letter(rank: Option<usize>) -> char {
    rank.and_then(|rank| char::from_u32(u32::from('A') + u32::try_from(rank).ok()?)).unwrap_or('~')
}
