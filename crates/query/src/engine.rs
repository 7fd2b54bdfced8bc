//! What runs plans elsewhere than in this process.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use datafusion::prelude::SessionConfig;

use crate::access::{Access, Files};
use crate::input::TraceFile;

/// Runs plans on other machines.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// Changes how statements are planned, for plans that it can run.
    fn configure(&self, config: SessionConfig) -> SessionConfig {
        config
    }

    /// Runs a plan and returns its partitions in their order. What was wrong with the traces is reported to `files`
    /// before the last row is returned.
    ///
    /// # Errors
    /// When the plan cannot be run.
    async fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        files: &[Arc<TraceFile>],
    ) -> Result<Vec<SendableRecordBatchStream>>;

    /// Ends what is running.
    async fn cancel(&self);

    /// How far it is, in a few words for a person.
    fn progress(&self) -> String;
}

/// Where and how statements run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What runs plans; this process where there is none.
    pub engine: Option<Arc<dyn Engine>>,
    /// How traces are read.
    pub access: Arc<dyn Access>,
    /// Bytes of a part; as many parts as partitions where there is no number.
    pub part_bytes: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Self { engine: None, access: Arc::new(Files), part_bytes: None }
    }
}
