//! Plans as bytes: what Ballista sends from one machine to another.
//!
//! A physical plan's leaf names the traces, the parts of them that are read, and what the readers know where a part
//! begins. A logical plan names the traces of a table. Each message begins with the version of the program that made it:
//! readers of another version may see other rows, so a program refuses the plans of another version.

mod message;

use std::fmt;
use std::sync::Arc;

use anytrace_core::tables;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, HigherOrderUDF, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::{parse_protobuf_file_scan_config, parse_table_schema_from_proto};
use datafusion_proto::physical_plan::to_proto::serialize_file_scan_config;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::FileScanExecConf;
use prost::Message;

use crate::access::Access;
use crate::functions;
use crate::input::TraceFile;
use crate::provider::{TraceTable, tables_of};
use crate::source::{Part, TraceSource};
use message::{FileMessage, FunctionMessage, PartMessage, ScanMessage, TableMessage, damaged};

/// Begins every message of ours; other nodes are the inner codec's.
const MAGIC: &[u8] = b"anytrace\0";

/// The version of the messages and of the readers that plans rely on.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Encodes and decodes physical plans.
#[derive(Debug)]
pub struct PhysicalCodec {
    access: Arc<dyn Access>,
    inner: Arc<dyn PhysicalExtensionCodec>,
}

impl PhysicalCodec {
    /// A codec whose decoded plans read traces by `access`; `inner` has all other nodes.
    pub fn new(access: Arc<dyn Access>, inner: Arc<dyn PhysicalExtensionCodec>) -> Self {
        Self { access, inner }
    }
}

/// Encodes and decodes logical plans.
#[derive(Debug)]
pub struct LogicalCodec {
    access: Arc<dyn Access>,
    inner: Arc<dyn LogicalExtensionCodec>,
}

impl LogicalCodec {
    /// A codec whose decoded tables read traces by `access`; `inner` has all other nodes.
    pub fn new(access: Arc<dyn Access>, inner: Arc<dyn LogicalExtensionCodec>) -> Self {
        Self { access, inner }
    }
}

/// Magic, version with its length before it, message.
fn seal(message: &impl Message, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(MAGIC);
    buffer.push(u8::try_from(VERSION.len()).unwrap_or(u8::MAX));
    buffer.extend_from_slice(VERSION.as_bytes());
    // Into a vector: it cannot be too short.
    buffer.extend_from_slice(&message.encode_to_vec());
}

/// The message, if it is one of ours.
///
/// # Errors
/// When a program of another version made it.
fn unseal<M: Message + Default>(buffer: &[u8]) -> Result<Option<M>> {
    let Some(rest) = buffer.strip_prefix(MAGIC) else { return Ok(None) };
    let parts = rest.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    let (version, body) = parts.ok_or_else(|| damaged("it ends in its version"))?;
    if version != VERSION.as_bytes() {
        let version = anytrace_core::text::printable(&String::from_utf8_lossy(version));
        return Err(DataFusionError::Plan(format!(
            "the plan is of version {version} of anytrace, this program is version {VERSION}; the client, the scheduler \
             and all executors must have the same version"
        )));
    }
    M::decode(body).map(Some).map_err(damaged)
}

fn files_of(messages: &[FileMessage], access: &Arc<dyn Access>) -> Result<Vec<Arc<TraceFile>>> {
    let open = |message: &FileMessage| {
        let file = TraceFile::remote(message.identity()?, Arc::clone(access));
        file.map(Arc::new).map_err(|error| DataFusionError::Plan(error.to_string()))
    };
    messages.iter().map(open).collect()
}

fn encode_scan(
    config: &FileScanConfig,
    source: &TraceSource,
    codec: &PhysicalCodec,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<ScanMessage> {
    let mut known: Vec<Arc<TraceFile>> = Vec::new();
    let mut message = ScanMessage {
        config: serialize_file_scan_config(config, codec, converter)?.encode_to_vec(),
        table: source.name.to_owned(),
        filter: Some((&source.filter).into()),
        ..ScanMessage::default()
    };
    for piece in config.file_groups.iter().flat_map(|group| group.files()) {
        let part = piece.extensions.get::<Part>();
        let part = part.ok_or_else(|| DataFusionError::Internal("a part of a scan without its trace".to_owned()))?;
        // Parts of a file follow each other.
        let number = known.iter().rposition(|file| Arc::ptr_eq(file, &part.file)).unwrap_or_else(|| {
            known.push(Arc::clone(&part.file));
            message.files.push(part.file.identity().into());
            known.len() - 1
        });
        if let crate::input::Range::Part(range) = &part.range
            && let (Some(shared), Some(file)) = (&range.shared, message.files.get_mut(number))
            && file.shared.is_none()
        {
            file.shared = Some(shared.to_vec());
        }
        message.parts.push(PartMessage::new(u32::try_from(number).map_err(damaged)?, &part.range));
    }
    Ok(message)
}

fn decode_scan(
    message: ScanMessage,
    codec: &PhysicalCodec,
    context: &TaskContext,
    converter: &dyn PhysicalProtoConverterExtension,
) -> Result<Arc<dyn ExecutionPlan>> {
    let config = FileScanExecConf::decode(message.config.as_slice()).map_err(damaged)?;
    let files = files_of(&message.files, &codec.access)?;
    let shared: Vec<Option<Arc<[u8]>>> =
        message.files.iter().map(|file| file.shared.as_deref().map(Arc::from)).collect();
    let parts = message.parts.iter().map(|part| {
        let number = usize::try_from(part.file).map_err(damaged)?;
        let file = files.get(number).ok_or_else(|| damaged(format!("it has no file {number}")))?;
        let named = file.format.map(tables::all).unwrap_or_default();
        let table = named.into_iter().find(|table| table.name == message.table);
        let table = table.ok_or_else(|| damaged(format!("{} has no table {}", file.name, message.table)))?;
        let range = part.range(shared.get(number).and_then(Option::as_ref))?;
        Ok(Part { file: Arc::clone(file), table, range })
    });
    let parts = parts.collect::<Result<Vec<Part>>>()?;
    // A scan without parts never asks for a name.
    let name = parts.first().map_or("", |part| part.table.name);
    let schema = parse_table_schema_from_proto(&config)?;
    let filter = message.filter.map(Into::into).unwrap_or_default();
    let source: Arc<dyn FileSource> = Arc::new(TraceSource::new(name, schema, filter));
    let context = PhysicalPlanDecodeContext::new(context, codec);
    let mut config = parse_protobuf_file_scan_config(&config, &context, converter, source)?;
    let mut parts = parts.into_iter();
    for group in &mut config.file_groups {
        let pieces = group.files().iter().map(|piece| {
            let part = parts.next().ok_or_else(|| damaged("it has more files than parts"))?;
            Ok(piece.clone().with_extension(part))
        });
        *group = pieces.collect::<Result<Vec<_>>>()?.into();
    }
    // Otherwise a group that is done takes parts of others.
    let config = FileScanConfigBuilder::from(config).with_preserve_order(true).build();
    Ok(DataSourceExec::from_data_source(config))
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match unseal::<ScanMessage>(buffer)? {
            Some(message) => decode_scan(message, self, context, converter),
            None => self.inner.try_decode(buffer, inputs, context, converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let scan = node.downcast_ref::<DataSourceExec>().and_then(|leaf| leaf.downcast_to_file_source::<TraceSource>());
        match scan {
            Some((config, source)) => seal(&encode_scan(config, source, self, converter)?, buffer),
            None => return self.inner.try_encode(node, buffer, converter),
        }
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        decode_function(name, buffer, &self.access)?.map_or_else(|| self.inner.try_decode_udf(name, buffer), Ok)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        if encode_function(function, buffer) { Ok(()) } else { self.inner.try_encode_udf(function, buffer) }
    }

    fn try_decode_higher_order_function(&self, name: &str, buffer: &[u8]) -> Result<Arc<HigherOrderUDF>> {
        self.inner.try_decode_higher_order_function(name, buffer)
    }

    fn try_encode_higher_order_function(&self, function: &HigherOrderUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_higher_order_function(function, buffer)
    }

    fn try_decode_udaf(&self, name: &str, buffer: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, buffer)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, buffer)
    }

    fn try_decode_udwf(&self, name: &str, buffer: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, buffer)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, buffer)
    }
}

/// Encodes one of our functions; false for others.
fn encode_function(function: &ScalarUDF, buffer: &mut Vec<u8>) -> bool {
    let Some(files) = functions::files_of(function) else { return false };
    seal(&FunctionMessage { files: files.iter().map(|file| file.identity().into()).collect() }, buffer);
    true
}

fn decode_function(name: &str, buffer: &[u8], access: &Arc<dyn Access>) -> Result<Option<Arc<ScalarUDF>>> {
    let Some(message) = unseal::<FunctionMessage>(buffer)? else { return Ok(None) };
    let function = functions::named(name, &files_of(&message.files, access)?);
    function.map(|function| Some(Arc::new(function))).ok_or_else(|| damaged(format!("there is no function {name}")))
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, buffer: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.inner.try_decode(buffer, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode(node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        buffer: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(message) = unseal::<TableMessage>(buffer)? else {
            return self.inner.try_decode_table_provider(buffer, name, schema, context);
        };
        let files = files_of(&message.files, &self.access)?;
        let tables = tables_of(&files, message.has_file_column, message.part_bytes);
        let table = tables.into_iter().find(|table| table.table.name == message.table);
        let table = table.ok_or_else(|| damaged(format!("there is no table {}", message.table)))?;
        if fingerprint(&table.schema()) != message.schema {
            return Err(damaged(format!("the table {} has other columns here", message.table)));
        }
        Ok(Arc::new(table))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let any: &dyn std::any::Any = table.as_ref();
        let Some(own) = any.downcast_ref::<TraceTable>() else {
            return self.inner.try_encode_table_provider(name, table, buffer);
        };
        let message = TableMessage {
            table: own.table.name.to_owned(),
            files: own.files().map(|file| file.identity().into()).collect(),
            has_file_column: own.has_file_column(),
            part_bytes: own.part_bytes(),
            schema: fingerprint(&own.schema()),
        };
        seal(&message, buffer);
        Ok(())
    }

    fn try_decode_udf(&self, name: &str, buffer: &[u8]) -> Result<Arc<ScalarUDF>> {
        decode_function(name, buffer, &self.access)?.map_or_else(|| self.inner.try_decode_udf(name, buffer), Ok)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        if encode_function(function, buffer) { Ok(()) } else { self.inner.try_encode_udf(function, buffer) }
    }
}

/// Columns and types as text.
fn fingerprint(schema: &SchemaRef) -> String {
    struct Fields<'a>(&'a SchemaRef);
    impl fmt::Display for Fields<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut fields = self.0.fields().iter();
            fields.try_for_each(|field| write!(f, "{} {} {};", field.name(), field.data_type(), field.is_nullable()))
        }
    }
    Fields(schema).to_string()
}
