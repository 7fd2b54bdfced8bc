//! Colors of graphs: two of the ColorBrewer schemes (Brewer, Harrower), interpolated by hue, saturation and value.

/// Nine colors from pale orange to dark red: small to large (OrRd).
const SEQUENTIAL: [u32; 9] = [0xfff7ec, 0xfee8c8, 0xfdd49e, 0xfdbb84, 0xfc8d59, 0xef6548, 0xd7301f, 0xb30000, 0x7f0000];

/// Eleven colors from pink through gray to green: less to more (PiYG).
const DIVERGING: [u32; 11] =
    [0x8e0152, 0xc51b7d, 0xde77ae, 0xf1b6da, 0xfde0ef, 0xf7f7f7, 0xe6f5d0, 0xb8e186, 0x7fbc41, 0x4d9221, 0x276419];

/// Color of a share, 0 to 1, as `#RRGGBB`.
pub(crate) fn sequential(share: f64) -> String {
    between(&SEQUENTIAL, share)
}

/// Color of a change, -1 to 1, as `#RRGGBB`.
pub(crate) fn diverging(change: f64) -> String {
    between(&DIVERGING, (change + 1.0) / 2.0)
}

fn between(colors: &[u32], place: f64) -> String {
    let last = colors.len() - 1;
    let place = if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) } * last as f64;
    // Within 0 to 10 because of the line above.
    let at = (place as usize).min(last - 1);
    let part = place - at as f64;
    let [from, to] = [colors[at], colors[at + 1]].map(Hsv::of);
    format!("#{:06X}", from.toward(&to, part).rgb())
}

/// Hue in sixths of the circle, saturation and value from 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Hsv {
    hue: f64,
    saturation: f64,
    value: f64,
}

impl Hsv {
    fn of(rgb: u32) -> Self {
        let [red, green, blue] = [16, 8, 0].map(|shift| f64::from(rgb >> shift & 0xff) / 255.0);
        let (max, min) = (red.max(green).max(blue), red.min(green).min(blue));
        let spread = max - min;
        let hue = if spread <= 0.0 {
            0.0
        } else if red >= max {
            ((green - blue) / spread).rem_euclid(6.0)
        } else if green >= max {
            (blue - red) / spread + 2.0
        } else {
            (red - green) / spread + 4.0
        };
        Self { hue, saturation: if max > 0.0 { spread / max } else { 0.0 }, value: max }
    }

    /// The color at a fraction of the way to another, the shorter way around the circle.
    fn toward(&self, to: &Self, part: f64) -> Self {
        let mut turn = to.hue - self.hue;
        if turn > 3.0 {
            turn -= 6.0;
        } else if turn < -3.0 {
            turn += 6.0;
        }
        Self {
            hue: (self.hue + turn * part).rem_euclid(6.0),
            saturation: self.saturation + (to.saturation - self.saturation) * part,
            value: self.value + (to.value - self.value) * part,
        }
    }

    fn rgb(&self) -> u32 {
        let chroma = self.value * self.saturation;
        let second = chroma * (1.0 - (self.hue % 2.0 - 1.0).abs());
        let [red, green, blue] = match self.hue as u32 {
            0 => [chroma, second, 0.0],
            1 => [second, chroma, 0.0],
            2 => [0.0, chroma, second],
            3 => [0.0, second, chroma],
            4 => [second, 0.0, chroma],
            _ => [chroma, 0.0, second],
        };
        let base = self.value - chroma;
        // Each is within 0 to 1 except for rounding errors, and `as` saturates at both ends.
        [red, green, blue].into_iter().fold(0, |all, part| all << 8 | u32::from(((part + base) * 255.0).round() as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_colors_of_the_scheme_are_at_their_places() {
        let places: Vec<_> = (0..9).map(|n| sequential(f64::from(n) / 8.0)).collect();
        assert_eq!((places[0].as_str(), places[4].as_str(), places[8].as_str()), ("#FFF7EC", "#FC8D59", "#7F0000"));
        assert_eq!([-1.0, 0.0, 1.0].map(diverging), ["#8E0152", "#F7F7F7", "#276419"]);
        assert_eq!([-7.0, f64::INFINITY].map(diverging), ["#8E0152", "#276419"]);
        assert_eq!(sequential(f64::NAN), "#FFF7EC");
    }

    #[test]
    fn colors_between_are_those_of_recorded_graphs() {
        // real/threads4.graph-kd.dot, and graphs of llvm-xray 19.
        let share = |value: f64, max: f64| sequential((value / max).sqrt());
        assert_eq!(share(400.0, 1200.0), "#F4744E");
        assert_eq!(share(4.0, 1200.0), "#FFF0DB");
        assert_eq!(share(1.900635e-4, 1.016128e-2), "#FEE6C4");
        assert_eq!([-0.25, 0.3604, -0.55].map(diverging), ["#FAD5E9", "#C1E594", "#E386B9"]);
    }
}
