//! Accounts as text, CSV and JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use anytrace_export::cells::Cells;
use serde_json::{Map, Value, json};

use super::{Account, AccountForm, Row};

impl Account {
    /// Writes the rows.
    ///
    /// Lengths are in seconds, or in ticks if the trace does not state how many ticks a second has. CSV and text print
    /// them as the peer does; JSON has the ticks too. `cells` applies to CSV; raw cells are the peer's bytes.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, form: AccountForm, cells: Cells, out: &mut dyn Write) -> io::Result<()> {
        match form {
            AccountForm::Text => self.write_text(out),
            AccountForm::Csv => self.write_csv(cells, out),
            AccountForm::Json => self.write_json(out),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths are divided as the peer divides them: as doubles")]
    fn seconds(&self, ticks: u128) -> f64 {
        match self.facts.cycle_frequency {
            0 => ticks as f64,
            frequency => ticks as f64 / frequency as f64,
        }
    }

    /// Minimum, median, 90th and 99th percentile, maximum, sum.
    fn lengths(&self, row: &Row) -> [f64; 6] {
        let ticks = [row.min, row.median, row.p90, row.p99, row.max].map(u128::from);
        let [min, median, p90, p99, max] = ticks.map(|ticks| self.seconds(ticks));
        [min, median, p90, p99, max, self.seconds(row.sum)]
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "Functions with latencies: {}", self.total)?;
        writeln!(
            out,
            "{:>9} {:>10} [{:>9}, {:>9}, {:>9}, {:>9}, {:>9}] {:>9}  {:<12}",
            "funcid", "count", "min", "med", "90p", "99p", "max", "sum", "function"
        )?;
        for row in &self.rows {
            let [min, median, p90, p99, max, sum] = self.lengths(row);
            let lengths = format!("[{min:>9.6}, {median:>9.6}, {p90:>9.6}, {p99:>9.6}, {max:>9.6}] {sum:>9.6}");
            writeln!(out, "{:>9} {:>10} {lengths}  {}: {}", row.id, row.count, row.place, row.function)?;
        }
        Ok(())
    }

    fn write_csv(&self, cells: Cells, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function")?;
        for row in &self.rows {
            let mut line = format!("{},{}", row.id, row.count);
            for length in self.lengths(row) {
                line.push(',');
                push_exponent(&mut line, length);
            }
            writeln!(out, "{line},{},{}", cells.quoted(&row.place), cells.quoted(&row.function))?;
        }
        Ok(())
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row(row)).collect();
        let frequency = self.facts.cycle_frequency;
        let report = json!({
            "version": 1,
            "format": "xray",
            "unit": if frequency == 0 { "ticks" } else { "seconds" },
            "cycle_frequency": frequency,
            "functions_total": self.total,
            "functions": rows,
            "records": self.summary.records,
            "orphan_exits": self.counts.orphans,
            "skipped_exits": self.counts.skipped,
            "deduced_exits": self.counts.deduced,
            "unfinished_calls": self.counts.unfinished,
            "tail_exits": self.counts.tails,
            "reordered_buffers": self.reordered_buffers,
        });
        serde_json::to_writer_pretty(&mut *out, &report)?;
        out.write_all(b"\n")
    }

    fn row(&self, row: &Row) -> Value {
        let [min, median, p90, p99, max, sum] = self.lengths(row);
        let mut object = Map::new();
        object.insert("id".into(), row.id.into());
        object.insert("function".into(), row.function.as_str().into());
        object.insert("place".into(), row.place.as_str().into());
        object.insert("count".into(), row.count.into());
        let lengths = [("min", min), ("median", median), ("p90", p90), ("p99", p99), ("max", max), ("sum", sum)];
        object.extend(lengths.map(|(key, length)| (key.to_owned(), length.into())));
        let ticks = [row.min, row.median, row.p90, row.p99, row.max, u64::try_from(row.sum).unwrap_or(u64::MAX)];
        let keys = ["min_ticks", "median_ticks", "p90_ticks", "p99_ticks", "max_ticks", "sum_ticks"];
        object.extend(keys.into_iter().zip(ticks).map(|(key, ticks)| (key.to_owned(), ticks.into())));
        object.into()
    }
}

/// A number as C's `%e` has it: six decimals, sign and at least two digits of exponent.
fn push_exponent(line: &mut String, number: f64) {
    let text = format!("{number:.6e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    // Writing to a string cannot fail.
    let _written = write!(line, "{digits}e{sign}{exponent:0>2}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_those_of_c() {
        let of = |number| {
            let mut line = String::new();
            push_exponent(&mut line, number);
            line
        };
        assert_eq!(of(6.008_963_1e-8), "6.008963e-08");
        assert_eq!(of(0.0), "0.000000e+00");
        assert_eq!(of(10.0), "1.000000e+01");
        assert_eq!(of(1.5e-300), "1.500000e-300");
    }
}
