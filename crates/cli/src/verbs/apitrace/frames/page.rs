//! The page: totals, a bar for each frame's time, pictures.

use std::fmt::Write;

use anytrace_core::text::{grouped, xml};
use anytrace_replay::{Frame, Replayed};

/// Where the pictures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pictures {
    /// In the page.
    Inside,
    /// In files beside it.
    Beside,
}

/// What the page shows.
pub(super) struct Page<'a> {
    pub(super) name: &'a str,
    pub(super) done: &'a Replayed,
    pub(super) pictures: Pictures,
}

const STYLE: &str = "\
<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n\
:root { color-scheme: light dark; --text: #15181b; --dim: #5b6570; --line: #d5dade; --bar: #2f6fb3; --back: #fff; }\n\
@media (prefers-color-scheme: dark) { :root { --text: #e6eaee; --dim: #9aa5b1; --line: #343c44; --bar: #6fa8dc; --back: #15181b; } }\n\
body { font: 14px system-ui, sans-serif; margin: 24px; color: var(--text); background: var(--back); }\n\
h1 { font-size: 20px; margin: 0 0 .2em; overflow-wrap: anywhere; } h2 { font-size: 16px; margin: 2em 0 .5em; }\n\
p { color: var(--dim); margin: .3em 0; }\n\
svg { display: block; width: 100%; height: 120px; } svg rect { fill: var(--bar); }\n\
.frames { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 16px; }\n\
figure { margin: 0; border: 1px solid var(--line); padding: 6px; }\n\
figure:target { outline: 3px solid var(--bar); }\n\
img { display: block; max-width: 100%; height: auto; background: #000; }\n\
figcaption { color: var(--dim); font-variant-numeric: tabular-nums; margin-top: 4px; } figcaption b { color: var(--text); }\n\
</style>\n";

/// Bars at most; of more frames the slowest of each group is shown.
const BARS: usize = 800;

/// The file of a frame's picture.
pub(super) fn file_name(frame: u64) -> String {
    format!("frame-{frame:010}.png")
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let frames = &self.done.strip;
        let title = xml(self.name);
        let mut out =
            format!("<!doctype html>\n<html lang=\"en\">\n<head>\n<title>{title}: frames</title>\n{STYLE}</head>\n");
        let _ = writeln!(out, "<body>\n<h1>{title}</h1>");
        let (calls, draws) = frames.iter().fold((0_u128, 0_u128), |(calls, draws), frame| {
            (calls + u128::from(frame.count), draws + u128::from(frame.draws))
        });
        let seconds: f64 = frames.iter().map(|frame| frame.seconds).sum();
        let _ = writeln!(
            out,
            "<p>{} frames · {} calls · {} draws · {seconds:.2} s by {}</p>",
            grouped(frames.len() as u128),
            grouped(calls),
            grouped(draws),
            xml(&self.done.renderer)
        );
        bars(&mut out, frames);
        let with = frames.iter().filter(|frame| frame.picture.is_some());
        let count = with.clone().count();
        let _ = writeln!(out, "<h2>Frames</h2>");
        if count < frames.len() {
            let _ = writeln!(out, "<p>{} of {} are shown: see --pictures</p>", grouped(count as u128), frames.len());
        }
        out.push_str("<div class=\"frames\">\n");
        with.for_each(|frame| self.figure(&mut out, frame));
        out.push_str("</div>\n</body>\n</html>\n");
        out
    }

    fn figure(&self, out: &mut String, frame: &Frame) {
        let Some((width, height, bytes)) = &frame.picture else { return };
        let source = match self.pictures {
            Pictures::Inside => format!("data:image/png;base64,{}", base64_simd::STANDARD.encode_to_string(bytes)),
            Pictures::Beside => file_name(frame.number),
        };
        let Frame { number, calls: (first, last), count, draws, seconds, .. } = frame;
        let _ = writeln!(
            out,
            "<figure id=\"f{number}\"><img src=\"{source}\" width=\"{width}\" height=\"{height}\" loading=\"lazy\" \
             alt=\"frame {number}\"><figcaption><b>{number}</b> · calls {first}–{last} ({}) · {} draws · {:.2} ms\
             </figcaption></figure>",
            grouped(u128::from(*count)),
            grouped(u128::from(*draws)),
            seconds * 1e3
        );
    }
}

/// A bar for each frame's time, or for the slowest of several.
fn bars(out: &mut String, frames: &[Frame]) {
    let group = frames.len().div_ceil(BARS).max(1);
    let slowest: Vec<&Frame> = frames
        .chunks(group)
        .filter_map(|group| group.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds)))
        .collect();
    let most = slowest.iter().fold(0.0, |most: f64, frame| most.max(frame.seconds));
    if most <= 0.0 {
        return;
    }
    let of = if group == 1 { String::new() } else { format!(", the slowest of each {group}") };
    let _ = writeln!(out, "<h2>Time of frames{of}: at most {:.2} ms (square root)</h2>", most * 1e3);
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"time of each frame\">",
        slowest.len()
    );
    for (at, frame) in slowest.iter().enumerate() {
        // Most frames take a small part of the slowest one's time.
        let height = ((frame.seconds / most).sqrt() * 100.0).max(0.5);
        let bar = format!(
            "<rect x=\"{at}\" y=\"{1:.2}\" width=\"0.9\" height=\"{height:.2}\"><title>frame {0}: {2:.2} ms, {3} \
             draws</title></rect>",
            frame.number,
            100.0 - height,
            frame.seconds * 1e3,
            frame.draws
        );
        let _ = match frame.picture {
            Some(_) => writeln!(out, "<a href=\"#f{}\">{bar}</a>", frame.number),
            None => writeln!(out, "{bar}"),
        };
    }
    out.push_str("</svg>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_page_and_every_frame_has_a_bar() {
        let frame = |number, picture| Frame {
            number,
            calls: (number * 10, number * 10 + 9),
            count: 10,
            draws: 2,
            seconds: 0.002,
            picture,
        };
        let done = Replayed {
            strip: vec![frame(0, Some((4, 2, b"png".to_vec()))), frame(1, None)],
            renderer: "<llvm&pipe>".to_owned(),
            ..Replayed::default()
        };
        let page = Page { name: "<script>.trace", done: &done, pictures: Pictures::Inside }.html();
        assert!(page.contains("&lt;script&gt;.trace") && !page.contains("<script>"), "{page}");
        assert!(page.contains("20 calls · 4 draws · 0.00 s by &lt;llvm&amp;pipe&gt;"), "{page}");
        assert!(page.contains("src=\"data:image/png;base64,cG5n\" width=\"4\" height=\"2\""), "{page}");
        assert_eq!((page.matches("<rect ").count(), page.matches("<figure ").count()), (2, 1));
        assert!(page.contains("1 of 2 are shown"));
        let beside = Page { name: "x", done: &done, pictures: Pictures::Beside }.html();
        assert!(beside.contains("src=\"frame-0000000000.png\""));
    }
}
