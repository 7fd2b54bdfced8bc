//! What a scan found, on its way to the process that made the plan: as counters among the metrics of the scan. Those of a
//! task that ended well are stored with the job, once however often the task was tried.

use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder};
use serde_json::json;

use crate::input::{DamageSink, Finding, TraceFile};

/// Begins the name of a counter that is a diagnostic; JSON follows.
const DIAGNOSTIC: &str = "anytrace-diagnostic:";

/// Begins the name of a counter of diagnostics that are not sent; the name of the file follows.
const OTHERS: &str = "anytrace-others:";

/// Longest text of a diagnostic that is sent, in bytes.
const TEXT_MAX: usize = 4096;

/// Adds what a scan found to its metrics, if another process is to have it.
pub(crate) fn send(file: &TraceFile, damage: DamageSink<'_>, metrics: &ExecutionPlanMetricsSet, partition: usize) {
    let (found, others) = damage.finish();
    for finding in found {
        MetricBuilder::new(metrics).counter(encode(&file.name, &finding), partition).add(1);
    }
    if others > 0 {
        let others = usize::try_from(others).unwrap_or(usize::MAX);
        MetricBuilder::new(metrics).counter(format!("{OTHERS}{}", file.name), partition).add(others);
    }
}

fn encode(name: &str, finding: &Finding) -> String {
    let mut text = finding.text.clone();
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    let json = json!({
        "file": name, "offset": finding.offset, "code": finding.code, "error": finding.is_error, "text": text,
    });
    format!("{DIAGNOSTIC}{json}")
}

/// Adds what a counter of a scan says to the file that it is about. Other counters say nothing.
#[cfg(feature = "codec")]
pub fn receive<'a>(name: &str, count: u64, files: impl IntoIterator<Item = &'a TraceFile>) {
    let mut files = files.into_iter();
    if let Some(of) = name.strip_prefix(OTHERS) {
        if let Some(file) = files.find(|file| file.name == of) {
            file.find_others(count);
        }
        return;
    }
    let Some(json) =
        name.strip_prefix(DIAGNOSTIC).and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
    else {
        return;
    };
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    if let (Some(of), Some(code), Some(text)) = (text("file"), text("code"), text("text"))
        && let Some(file) = files.find(|file| file.name == of)
    {
        let offset = json["offset"].as_u64().unwrap_or(0);
        file.find(Finding { offset, code, is_error: json["error"].as_bool().unwrap_or(true), text });
    }
}
