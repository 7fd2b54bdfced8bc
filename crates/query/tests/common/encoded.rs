//! An engine as a cluster is one, in this process: plans become bytes and plans again, parts are read by another `Access`,
//! and what was wrong with the traces comes back as metrics.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anytrace_core::index::{self, Index, Part};
use anytrace_core::{Collect, Error, Format, Input, InputOptions, OpenOptions};
use anytrace_query::codec::PhysicalCodec;
use anytrace_query::{Access, Engine, TraceFile, receive};
use async_trait::async_trait;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, execute_stream_partitioned};
use datafusion_proto::physical_plan::{AsExecutionPlan, DefaultPhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::TryStreamExt;

/// Bytes between the marks of indexes that are made.
const EVERY_BYTES: u64 = 512;

/// Reads files, makes indexes, and remembers the parts.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    pub(crate) parts: Mutex<Vec<(String, u64, Option<u64>)>>,
    pub(crate) made: AtomicUsize,
}

impl Access for Elsewhere {
    fn made_index(&self, path: &Path, format: &dyn Format) -> std::result::Result<Arc<Index>, Error> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let open = || Input::open(path, InputOptions::default());
        let (how, mut damage) = (OpenOptions::default(), Collect::default());
        index::build_by(format, &open, &how, EVERY_BYTES, &mut damage).map(Arc::new)
    }

    fn note(&self, path: &Path, part: &Part, _length: u64) {
        let from = part.from.as_ref().map_or(0, |mark| mark.offset);
        self.parts.lock().unwrap().push((path.display().to_string(), from, part.until));
    }
}

/// Runs plans that were bytes.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) access: Arc<Elsewhere>,
}

#[async_trait]
impl Engine for Encoded {
    async fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        files: &[Arc<TraceFile>],
    ) -> Result<Vec<SendableRecordBatchStream>> {
        let codec = PhysicalCodec::new(Arc::clone(&self.access) as _, Arc::new(DefaultPhysicalExtensionCodec {}));
        let schema = plan.schema();
        let mut bytes = Vec::new();
        PhysicalPlanNode::try_from_physical_plan(plan, &codec)?.try_encode(&mut bytes)?;
        let decoded = PhysicalPlanNode::try_decode(&bytes)?.try_into_physical_plan(&context, &codec)?;
        let mut made = Vec::new();
        for partition in execute_stream_partitioned(Arc::clone(&decoded), context)? {
            let rows: Vec<_> = partition.try_collect().await?;
            let rows = futures::stream::iter(rows.into_iter().map(Ok));
            made.push(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows)) as SendableRecordBatchStream);
        }
        decoded.apply(|node| {
            let metrics = node.is::<DataSourceExec>().then(|| node.metrics()).flatten();
            for metric in metrics.iter().flat_map(|metrics| metrics.iter()) {
                if let MetricValue::Count { name, count } = metric.value() {
                    receive(name, count.value() as u64, files.iter().map(AsRef::as_ref));
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(made)
    }

    async fn cancel(&self) {}

    fn progress(&self) -> String {
        String::new()
    }
}
