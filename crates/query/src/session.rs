//! Files, tables, views and functions of one session, and how a statement is run.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anytrace_core::table::Table;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::ParamValues;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream_partitioned};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use datafusion::sql::parser::{DFParser, Statement};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::engine::Engine;
use crate::functions;
use crate::grouping::GroupByNumber;
use crate::input::TraceFile;
use crate::output::{self, How};
use crate::provider::{TraceTable, tables_of};

/// Rows of a batch between operators.
const BATCH_ROWS: usize = 8192;

/// Fewest rows of a batch where memory is limited.
const BATCH_ROWS_MIN: usize = 256;

/// Bytes of a row that has attributes.
const ROW_BYTES: usize = 256;

/// Least memory that a statement can be limited to.
pub const MEMORY_BYTES_MIN: u64 = 8 << 20;

/// Least memory of a partition: where there is less, there are fewer partitions.
const PARTITION_BYTES_MIN: usize = 8 << 20;

/// Most bytes that a sort sets aside for merging.
const MERGE_BYTES_MAX: usize = 10 << 20;

/// Batches of a partition that wait for their turn.
const WAITING_MAX: usize = 4;

/// Views for those who know Perfetto's names, on traces with spans.
const VIEWS: [(&str, &str); 3] = [
    (
        "slice",
        "SELECT seq AS id, start AS ts, duration AS dur, track AS track_id, name, depth, parent AS parent_id, stack AS \
         stack_id, attributes AS args",
    ),
    ("thread", "SELECT DISTINCT thread AS utid, thread AS tid, process AS upid"),
    ("process", "SELECT DISTINCT process AS upid, process AS pid"),
];

/// How statements are run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The schema of each file, in the order of the files; `None`, as of files beyond the last, is the one whose name is
    /// left out.
    pub schemas: Vec<Option<String>>,
    /// Partitions of a plan, at least 1.
    pub partitions: usize,
    /// Bytes that operators may use before they spill to disk, at least [`MEMORY_BYTES_MIN`].
    pub memory_bytes: Option<u64>,
    /// Where they spill: the folder for temporary files if none is given. Files are removed when they are read, but not
    /// when the process ends before.
    pub spill_folder: Option<PathBuf>,
    /// Values of `$1`, `$2`, or of `$name` where each is `name=value`.
    pub parameters: Vec<String>,
    /// Bytes of a part of a trace that another process reads; as many parts as partitions where there is no number.
    pub part_bytes: Option<u64>,
}

impl Default for Options {
    /// All files in one schema, a partition for each processor, no limit on memory.
    fn default() -> Self {
        let partitions = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            schemas: Vec::new(),
            partitions,
            memory_bytes: None,
            spill_folder: None,
            parameters: Vec::new(),
            part_bytes: None,
        }
    }
}

/// How a statement is divided so that it works in a limited memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    partitions: usize,
    batch_rows: usize,
    /// What each sort sets aside for merging what it spilled.
    merge_bytes: Option<usize>,
}

impl Room {
    /// A sort merges at least two spilled runs, with a batch of each and their copies in memory. So a partition has room
    /// for 32 batches of usual rows, and a quarter of its memory is for the merge.
    fn of(memory_bytes: u64, partitions: usize) -> Result<Self> {
        if memory_bytes < MEMORY_BYTES_MIN {
            let (least, given) = (MEMORY_BYTES_MIN >> 20, memory_bytes);
            return Err(DataFusionError::Plan(format!("--memory: expected at least {least}M, found {given}")));
        }
        let bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        // The engine joins a single partition by hash, in memory.
        let partitions = partitions.max(2).min(bytes / PARTITION_BYTES_MIN).max(1);
        let own = bytes / partitions;
        Ok(Self {
            partitions,
            batch_rows: (own / 32 / ROW_BYTES).clamp(BATCH_ROWS_MIN, BATCH_ROWS),
            merge_bytes: Some((own / 4).min(MERGE_BYTES_MAX)),
        })
    }
}

/// Traces as tables, and what statements on them run in.
pub struct Session {
    context: SessionContext,
    files: Vec<Arc<TraceFile>>,
    /// The tables of each schema; the schema without a name is the default.
    tables: Vec<(Option<String>, Vec<Table>)>,
    parameters: Option<ParamValues>,
    part_bytes: Option<u64>,
    engine: Option<Arc<dyn Engine>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Session {
    /// A session on files that were opened.
    ///
    /// # Errors
    /// For a schema that DataFusion refuses.
    pub async fn new(options: &Options, files: Vec<Arc<TraceFile>>) -> Result<Self> {
        Self::with_engine(options, files, None).await
    }

    /// As [`Self::new`]; `engine` runs the plans of statements that read traces.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub async fn with_engine(
        options: &Options,
        files: Vec<Arc<TraceFile>>,
        engine: Option<Arc<dyn Engine>>,
    ) -> Result<Self> {
        let mut runtime = RuntimeEnvBuilder::new();
        let mut room = Room { partitions: options.partitions, batch_rows: BATCH_ROWS, merge_bytes: None };
        if let Some(bytes) = options.memory_bytes {
            room = Room::of(bytes, options.partitions)?;
            let pool = FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX));
            runtime = runtime.with_memory_pool(Arc::new(pool));
        }
        let folders = options.spill_folder.as_ref().map(|folder| DiskManagerMode::Directories(vec![folder.clone()]));
        let disk = DiskManagerBuilder::default().with_mode(folders.unwrap_or(DiskManagerMode::OsTmpDirectory));
        let runtime = runtime.with_disk_manager_builder(disk);
        let mut config = SessionConfig::new()
            .with_target_partitions(room.partitions)
            .with_batch_size(room.batch_rows)
            // Rows keep the order of the trace: parts of a scan are consecutive, and nothing deals them out anew.
            .with_round_robin_repartition(false)
            .with_information_schema(true);
        if let Some(bytes) = room.merge_bytes {
            config.options_mut().execution.sort_spill_reservation_bytes = bytes;
            // A hash join keeps one side in memory, whatever its size; sorted sides are merged from disk.
            config.options_mut().optimizer.prefer_hash_join = false;
        }
        if let Some(engine) = &engine {
            config = engine.configure(config);
        }
        let state =
            SessionStateBuilder::new_with_default_features().with_config(config).with_runtime_env(runtime.build_arc()?);
        // In other processes names have other numbers; where memory is limited, all of it must be counted.
        let state = if engine.is_none() && options.memory_bytes.is_none() {
            state.with_physical_optimizer_rule(Arc::new(GroupByNumber))
        } else {
            state
        };
        let context = SessionContext::new_with_state(state.build());
        functions::register(&context, &files);
        let parameters = parameters(&options.parameters);
        let part_bytes = options.part_bytes;
        let mut session = Self { context, files, tables: Vec::new(), parameters, part_bytes, engine };
        let mut schemas = options.schemas.clone();
        schemas.resize(session.files.len(), None);
        session.register(&schemas).await?;
        Ok(session)
    }

    async fn register(&mut self, schemas: &[Option<String>]) -> Result<()> {
        let mut names: Vec<Option<String>> = Vec::new();
        for name in schemas {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        for name in names {
            let own = self.files.iter().zip(schemas).filter(|(_, schema)| **schema == name);
            let own: Vec<Arc<TraceFile>> = own.map(|(file, _)| Arc::clone(file)).collect();
            let tables = tables_of(&own, own.len() > 1, self.part_bytes);
            let known = tables.iter().map(|table| table.table).collect();
            self.add_schema(name.as_deref(), tables).await?;
            self.tables.push((name, known));
        }
        Ok(())
    }

    async fn add_schema(&self, name: Option<&str>, tables: Vec<TraceTable>) -> Result<()> {
        let has_spans = tables.iter().any(|table| table.table.name == "spans");
        let has_file = tables.first().is_some_and(TraceTable::has_file_column);
        if let Some(name) = name {
            let schema: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
            let missing = || DataFusionError::Internal("no default catalog".to_owned());
            let catalog = self.context.catalog("datafusion").ok_or_else(missing)?;
            catalog.register_schema(name, schema)?;
        }
        let quoted = |table: &str| match name {
            Some(name) => format!("\"{}\".\"{table}\"", name.replace('"', "\"\"")),
            None => format!("\"{table}\""),
        };
        for table in tables {
            self.context.register_table(quoted(table.table.name), Arc::new(table))?;
        }
        for (view, columns) in VIEWS.iter().filter(|_| has_spans) {
            let file = if has_file { ", file" } else { "" };
            let sql = format!("CREATE VIEW {} AS {columns}{file} FROM {}", quoted(view), quoted("spans"));
            self.context.sql(&sql).await?;
        }
        Ok(())
    }

    /// The tables of each schema.
    pub fn tables(&self) -> &[(Option<String>, Vec<Table>)] {
        &self.tables
    }

    /// A table by its name, with its schema's before it where it has one.
    pub fn table(&self, name: &str) -> Option<&Table> {
        let of = |(schema, tables): &'_ (Option<String>, Vec<Table>)| {
            let own = match schema {
                None => Some(name),
                Some(schema) => name.strip_prefix(schema.as_str()).and_then(|rest| rest.strip_prefix('.')),
            };
            own.and_then(|own| tables.iter().position(|table| table.name == own))
        };
        self.tables.iter().find_map(|one| one.1.get(of(one)?))
    }

    /// The files.
    pub fn files(&self) -> &[Arc<TraceFile>] {
        &self.files
    }

    /// A table of the default schema, as DataFusion sees it.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn provider(&self, name: &str) -> Result<Arc<dyn TableProvider>> {
        self.context.table_provider(name).await
    }

    /// What runs the plans of statements, if not this process.
    pub fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.engine.clone()
    }

    /// Ends what an engine is running.
    pub async fn cancel(&self) {
        if let Some(engine) = &self.engine {
            engine.cancel().await;
        }
    }

    /// Plans a statement and starts it.
    async fn start(&self, statement: Statement, explain: bool) -> Result<(SchemaRef, Batches)> {
        let state = self.context.state();
        let plan = state.statement_to_plan(statement).await?;
        let plan = match &self.parameters {
            Some(values) => plan.with_param_values(values.clone())?,
            None => plan,
        };
        // Files are written by `-o`, whole or not at all; views and tables of other files may be made.
        SQLOptions::new().with_allow_dml(false).verify_plan(&plan)?;
        let mut frame = self.context.execute_logical_plan(plan).await?;
        if explain {
            frame = frame.explain(false, false)?;
        }
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let partitions = match &self.engine {
            None => frame.execute_stream_partitioned().await?,
            Some(engine) => {
                let task = Arc::new(frame.task_ctx());
                let plan = frame.create_physical_plan().await?;
                match leaves(&plan) {
                    Leaves::Traces => engine.run(plan, task, &self.files).await?,
                    Leaves::Others => execute_stream_partitioned(plan, task)?,
                    Leaves::Both => return Err(DataFusionError::NotImplemented(MIXED.to_owned())),
                }
            }
        };
        Ok((schema, in_order(partitions)))
    }

    /// The rows of a single statement, in order; none of one that makes a view.
    ///
    /// # Errors
    /// For SQL that is wrong, and for what keeps it from being carried out. Damage of a trace is none: see
    /// [`TraceFile::damage`].
    pub async fn rows(&self, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let mut statements = DFParser::parse_sql(sql)?;
        let (Some(statement), true) = (statements.pop_front(), statements.is_empty()) else {
            return Err(DataFusionError::Plan("expected one statement".to_owned()));
        };
        let (schema, batches) = self.start(statement, false).await?;
        Ok((schema, batches.try_collect().await?))
    }

    /// Runs statements one after the other and writes the result of each that has one.
    ///
    /// # Errors
    /// As [`Self::rows`], and when `out` fails.
    pub async fn run(&self, sql: &str, explain: bool, how: How, out: &mut (dyn Write + Send)) -> Result<()> {
        let statements = DFParser::parse_sql(sql)?;
        if statements.is_empty() {
            return Err(DataFusionError::Plan("the query is empty".to_owned()));
        }
        for statement in statements {
            let (schema, mut batches) = self.start(statement, explain).await?;
            if schema.fields().is_empty() {
                // A view or a table was made.
                continue;
            }
            let mut results = output::begin(how, &schema, out)?;
            while let Some(batch) = batches.next().await {
                let batch: RecordBatch = batch?;
                results.batch(&batch)?;
            }
            results.finish()?;
        }
        Ok(())
    }
}

/// Why a statement cannot run on a cluster.
const MIXED: &str = "a statement on a cluster reads traces or information_schema, not both";

/// What a plan reads.
enum Leaves {
    Traces,
    Others,
    Both,
}

fn leaves(plan: &Arc<dyn ExecutionPlan>) -> Leaves {
    let (mut traces, mut others) = (false, false);
    // Cannot fail: the closure does not.
    let _ = plan.apply(|node| {
        if node.children().is_empty() {
            let is_constant = node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>();
            traces |= node.is::<DataSourceExec>();
            others |= !node.is::<DataSourceExec>() && !is_constant;
        }
        // What is shown is the plan, not its rows.
        others |= node.is::<ExplainExec>() || node.is::<AnalyzeExec>();
        Ok(TreeNodeRecursion::Continue)
    });
    match (traces, others) {
        (true, true) if plan.is::<ExplainExec>() || plan.is::<AnalyzeExec>() => Leaves::Others,
        (true, true) => Leaves::Both,
        (true, false) => Leaves::Traces,
        (false, _) => Leaves::Others,
    }
}

/// The batches of a result.
type Batches = BoxStream<'static, Result<RecordBatch>>;

/// All partitions of a result, one after the other. They are computed side by side; those whose turn has not come stop
/// when a few of their batches wait.
fn in_order(partitions: Vec<SendableRecordBatchStream>) -> Batches {
    if let [_] = partitions.as_slice() {
        return futures::stream::iter(partitions).flatten().boxed();
    }
    let running = partitions.into_iter().map(|mut partition| {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        // Dropped with the stream, which ends the task.
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Some(batch) = partition.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        futures::stream::unfold((receiver, tasks), |(mut receiver, mut tasks)| async move {
            if let Some(batch) = receiver.recv().await {
                return Some((batch, (receiver, tasks)));
            }
            let ended = tasks.join_next().await?;
            ended.err().map(|error| (Err(DataFusionError::External(Box::new(error))), (receiver, tasks)))
        })
    });
    let running: Vec<_> = running.collect();
    futures::stream::iter(running).flatten().boxed()
}

/// Values of `$1`, `$2`, or of `$name` where they are given as `name=value`.
fn parameters(given: &[String]) -> Option<ParamValues> {
    if given.is_empty() {
        return None;
    }
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let named = given.iter().map(|text| {
        let (name, value) = text.split_once('=').filter(|(name, _)| is_name(name))?;
        Some((name.to_owned(), scalar(value)))
    });
    match named.collect::<Option<Vec<_>>>() {
        Some(named) => Some(ParamValues::from(named)),
        None => Some(ParamValues::from(given.iter().map(|text| scalar(text)).collect::<Vec<_>>())),
    }
}

/// A number where it looks like one.
fn scalar(text: &str) -> ScalarValue {
    if let Ok(value) = text.parse::<i64>() {
        return ScalarValue::Int64(Some(value));
    }
    if let Ok(value) = text.parse::<u64>() {
        return ScalarValue::UInt64(Some(value));
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => ScalarValue::Float64(Some(value)),
        _ => ScalarValue::Utf8(Some(text.to_owned())),
    }
}
