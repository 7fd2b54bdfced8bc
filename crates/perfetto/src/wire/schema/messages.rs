//! The messages in packets whose fields this crate knows by name (`perfetto/trace/**/*.proto`, those of v59). Fields of
//! other messages are bytes.

use super::Kind::{Bytes, Double, Fixed, Message as M, Signed, Text, Unsigned};
use super::{Message, row};

/// `FtraceEventBundle`.
pub(crate) static FTRACE_EVENT_BUNDLE: Message = Message::of(&[
    row(1, "cpu", Unsigned),
    row(2, "event", M(&FTRACE_EVENT)),
    row(3, "lost_events", Unsigned),
    row(4, "compact_sched", M(&FTRACE_EVENT_BUNDLE_COMPACT_SCHED)),
    row(5, "ftrace_clock", Unsigned),
    row(6, "ftrace_timestamp", Signed),
    row(7, "boot_timestamp", Signed),
    row(8, "error", Bytes),
    row(9, "last_read_event_timestamp", Unsigned),
    row(10, "previous_bundle_end_timestamp", Unsigned),
    row(11, "generic_event_descriptors", Bytes),
    row(512, "broken_abi_trace_page", Bytes),
]);

/// `FtraceEvent`.
pub(crate) static FTRACE_EVENT: Message = Message::of(&[
    row(1, "timestamp", Unsigned),
    row(2, "pid", Unsigned),
    row(3, "print", M(&PRINT_FTRACE_EVENT)),
    row(4, "sched_switch", M(&SCHED_SWITCH_FTRACE_EVENT)),
    row(5, "common_flags", Unsigned),
    row(11, "cpu_frequency", Bytes),
    row(13, "cpu_idle", Bytes),
    row(17, "sched_wakeup", M(&SCHED_WAKEUP_FTRACE_EVENT)),
    row(20, "sched_waking", M(&SCHED_WAKING_FTRACE_EVENT)),
    row(80, "tracing_mark_write", Bytes),
    row(114, "sched_wakeup_new", Bytes),
    row(235, "task_newtask", Bytes),
    row(236, "task_rename", Bytes),
]);

/// `PrintFtraceEvent`.
pub(crate) static PRINT_FTRACE_EVENT: Message = Message::of(&[row(1, "ip", Unsigned), row(2, "buf", Text)]);

/// `SchedSwitchFtraceEvent`.
pub(crate) static SCHED_SWITCH_FTRACE_EVENT: Message = Message::of(&[
    row(1, "prev_comm", Text),
    row(2, "prev_pid", Signed),
    row(3, "prev_prio", Signed),
    row(4, "prev_state", Signed),
    row(5, "next_comm", Text),
    row(6, "next_pid", Signed),
    row(7, "next_prio", Signed),
]);

/// `SchedWakeupFtraceEvent`.
pub(crate) static SCHED_WAKEUP_FTRACE_EVENT: Message = Message::of(&[
    row(1, "comm", Text),
    row(2, "pid", Signed),
    row(3, "prio", Signed),
    row(4, "success", Signed),
    row(5, "target_cpu", Signed),
]);

/// `SchedWakingFtraceEvent`.
pub(crate) static SCHED_WAKING_FTRACE_EVENT: Message = Message::of(&[
    row(1, "comm", Text),
    row(2, "pid", Signed),
    row(3, "prio", Signed),
    row(4, "success", Signed),
    row(5, "target_cpu", Signed),
]);

/// `FtraceEventBundle.CompactSched`.
pub(crate) static FTRACE_EVENT_BUNDLE_COMPACT_SCHED: Message = Message::of(&[
    row(1, "switch_timestamp", Bytes),
    row(2, "switch_prev_state", Bytes),
    row(3, "switch_next_pid", Bytes),
    row(4, "switch_next_prio", Bytes),
    row(5, "intern_table", Text),
    row(6, "switch_next_comm_index", Bytes),
    row(7, "waking_timestamp", Bytes),
    row(8, "waking_pid", Bytes),
    row(9, "waking_target_cpu", Bytes),
    row(10, "waking_prio", Bytes),
    row(11, "waking_comm_index", Bytes),
    row(12, "waking_common_flags", Bytes),
]);

/// `ProcessTree`.
pub(crate) static PROCESS_TREE: Message = Message::of(&[
    row(1, "processes", M(&PROCESS_TREE_PROCESS)),
    row(2, "threads", M(&PROCESS_TREE_THREAD)),
    row(3, "collection_end_timestamp", Unsigned),
]);

/// `ProcessTree.Process`.
pub(crate) static PROCESS_TREE_PROCESS: Message = Message::of(&[
    row(1, "pid", Signed),
    row(2, "ppid", Signed),
    row(3, "cmdline", Text),
    row(5, "uid", Signed),
    row(6, "nspid", Signed),
    row(7, "process_start_from_boot", Unsigned),
    row(8, "is_kthread", Unsigned),
    row(9, "cmdline_is_comm", Unsigned),
]);

/// `ProcessTree.Thread`.
pub(crate) static PROCESS_TREE_THREAD: Message =
    Message::of(&[row(1, "tid", Signed), row(2, "name", Text), row(3, "tgid", Signed), row(4, "nstid", Signed)]);

/// `ClockSnapshot`.
pub(crate) static CLOCK_SNAPSHOT: Message =
    Message::of(&[row(1, "clocks", M(&CLOCK_SNAPSHOT_CLOCK)), row(2, "primary_trace_clock", Unsigned)]);

/// `ClockSnapshot.Clock`.
pub(crate) static CLOCK_SNAPSHOT_CLOCK: Message = Message::of(&[
    row(1, "clock_id", Unsigned),
    row(2, "timestamp", Unsigned),
    row(3, "is_incremental", Unsigned),
    row(4, "unit_multiplier_ns", Unsigned),
]);

/// `TrackEvent`.
pub(crate) static TRACK_EVENT: Message = Message::of(&[
    row(1, "timestamp_delta_us", Signed),
    row(2, "thread_time_delta_us", Signed),
    row(3, "category_iids", Unsigned),
    row(4, "debug_annotations", M(&DEBUG_ANNOTATION)),
    row(5, "task_execution", M(&TASK_EXECUTION)),
    row(6, "legacy_event", M(&TRACK_EVENT_LEGACY_EVENT)),
    row(8, "thread_instruction_count_delta", Signed),
    row(9, "type", Unsigned),
    row(10, "name_iid", Unsigned),
    row(11, "track_uuid", Unsigned),
    row(12, "extra_counter_values", Signed),
    row(16, "timestamp_absolute_us", Signed),
    row(17, "thread_time_absolute_us", Signed),
    row(20, "thread_instruction_count_absolute", Signed),
    row(21, "log_message", M(&LOG_MESSAGE)),
    row(22, "categories", Text),
    row(23, "name", Text),
    row(24, "cc_scheduler_state", Bytes),
    row(25, "chrome_user_event", Bytes),
    row(26, "chrome_keyed_service", Bytes),
    row(27, "chrome_legacy_ipc", Bytes),
    row(28, "chrome_histogram_sample", Bytes),
    row(29, "chrome_latency_info", Bytes),
    row(30, "counter_value", Signed),
    row(31, "extra_counter_track_uuids", Unsigned),
    row(32, "chrome_frame_reporter", Bytes),
    row(33, "source_location", M(&SOURCE_LOCATION)),
    row(34, "source_location_iid", Unsigned),
    row(35, "chrome_message_pump", Bytes),
    row(36, "flow_ids_old", Unsigned),
    row(38, "chrome_mojo_event_info", Bytes),
    row(39, "chrome_application_state_info", Bytes),
    row(40, "chrome_renderer_scheduler_state", Bytes),
    row(41, "chrome_window_handle_event_info", Bytes),
    row(42, "terminating_flow_ids_old", Unsigned),
    row(43, "chrome_content_settings_event_info", Bytes),
    row(44, "double_counter_value", Double),
    row(45, "extra_double_counter_track_uuids", Unsigned),
    row(46, "extra_double_counter_values", Double),
    row(47, "flow_ids", Fixed),
    row(48, "terminating_flow_ids", Fixed),
    row(49, "chrome_active_processes", Bytes),
    row(50, "screenshot", Bytes),
    row(52, "correlation_id", Unsigned),
    row(53, "correlation_id_str", Text),
    row(54, "correlation_id_str_iid", Unsigned),
    row(55, "callstack", Bytes),
    row(56, "callstack_iid", Unsigned),
    row(57, "callstack_weight", Double),
]);

/// `DebugAnnotation`.
pub(crate) static DEBUG_ANNOTATION: Message = Message::of(&[
    row(1, "name_iid", Unsigned),
    row(2, "bool_value", Unsigned),
    row(3, "uint_value", Unsigned),
    row(4, "int_value", Signed),
    row(5, "double_value", Double),
    row(6, "string_value", Text),
    row(7, "pointer_value", Unsigned),
    row(8, "nested_value", M(&DEBUG_ANNOTATION_NESTED_VALUE)),
    row(9, "legacy_json_value", Text),
    row(10, "name", Text),
    row(11, "dict_entries", M(&DEBUG_ANNOTATION)),
    row(12, "array_values", M(&DEBUG_ANNOTATION)),
    row(13, "proto_type_name_iid", Unsigned),
    row(14, "proto_value", Bytes),
    row(16, "proto_type_name", Text),
    row(17, "string_value_iid", Unsigned),
]);

/// `DebugAnnotation.NestedValue`.
pub(crate) static DEBUG_ANNOTATION_NESTED_VALUE: Message = Message::of(&[
    row(1, "nested_type", Unsigned),
    row(2, "dict_keys", Text),
    row(3, "dict_values", M(&DEBUG_ANNOTATION_NESTED_VALUE)),
    row(4, "array_values", M(&DEBUG_ANNOTATION_NESTED_VALUE)),
    row(5, "int_value", Signed),
    row(6, "double_value", Double),
    row(7, "bool_value", Unsigned),
    row(8, "string_value", Text),
]);

/// `TaskExecution`.
pub(crate) static TASK_EXECUTION: Message = Message::of(&[row(1, "posted_from_iid", Unsigned)]);

/// `TrackEvent.LegacyEvent`.
pub(crate) static TRACK_EVENT_LEGACY_EVENT: Message = Message::of(&[
    row(1, "name_iid", Unsigned),
    row(2, "phase", Signed),
    row(3, "duration_us", Signed),
    row(4, "thread_duration_us", Signed),
    row(6, "unscoped_id", Unsigned),
    row(7, "id_scope", Text),
    row(8, "bind_id", Unsigned),
    row(9, "use_async_tts", Unsigned),
    row(10, "local_id", Unsigned),
    row(11, "global_id", Unsigned),
    row(12, "bind_to_enclosing", Unsigned),
    row(13, "flow_direction", Unsigned),
    row(14, "instant_event_scope", Unsigned),
    row(15, "thread_instruction_delta", Signed),
    row(18, "pid_override", Signed),
    row(19, "tid_override", Signed),
]);

/// `LogMessage`.
pub(crate) static LOG_MESSAGE: Message =
    Message::of(&[row(1, "source_location_iid", Unsigned), row(2, "body_iid", Unsigned), row(3, "prio", Unsigned)]);

/// `SourceLocation`.
pub(crate) static SOURCE_LOCATION: Message = Message::of(&[
    row(1, "iid", Unsigned),
    row(2, "file_name", Text),
    row(3, "function_name", Text),
    row(4, "line_number", Unsigned),
]);

/// `InternedData`.
pub(crate) static INTERNED_DATA: Message = Message::of(&[
    row(1, "event_categories", M(&EVENT_CATEGORY)),
    row(2, "event_names", M(&EVENT_NAME)),
    row(3, "debug_annotation_names", M(&DEBUG_ANNOTATION_NAME)),
    row(4, "source_locations", M(&SOURCE_LOCATION)),
    row(5, "function_names", M(&INTERNED_STRING)),
    row(6, "frames", Bytes),
    row(7, "callstacks", Bytes),
    row(16, "build_ids", M(&INTERNED_STRING)),
    row(17, "mapping_paths", M(&INTERNED_STRING)),
    row(18, "source_paths", M(&INTERNED_STRING)),
    row(19, "mappings", Bytes),
    row(20, "log_message_body", M(&LOG_MESSAGE_BODY)),
    row(22, "vulkan_memory_keys", M(&INTERNED_STRING)),
    row(23, "graphics_contexts", Bytes),
    row(24, "gpu_specifications", Bytes),
    row(25, "histogram_names", Bytes),
    row(26, "kernel_symbols", M(&INTERNED_STRING)),
    row(27, "debug_annotation_value_type_names", M(&DEBUG_ANNOTATION_VALUE_TYPE_NAME)),
    row(28, "unsymbolized_source_locations", Bytes),
    row(29, "debug_annotation_string_values", M(&INTERNED_STRING)),
    row(31, "v8_js_function_name", Bytes),
    row(32, "v8_js_function", Bytes),
    row(33, "v8_js_script", Bytes),
    row(34, "v8_wasm_script", Bytes),
    row(35, "v8_isolate", Bytes),
    row(43, "correlation_id_str", M(&INTERNED_STRING)),
    row(47, "gpu_counter_descriptors", Bytes),
    row(48, "stack_sample_task_contexts", Bytes),
    row(49, "stack_sample_execution_contexts", Bytes),
    row(50, "stack_sample_counter_descriptors", Bytes),
    row(51, "stack_sample_async_context_descriptors", Bytes),
]);

/// `EventCategory`.
pub(crate) static EVENT_CATEGORY: Message = Message::of(&[row(1, "iid", Unsigned), row(2, "name", Text)]);

/// `EventName`.
pub(crate) static EVENT_NAME: Message = Message::of(&[row(1, "iid", Unsigned), row(2, "name", Text)]);

/// `DebugAnnotationName`.
pub(crate) static DEBUG_ANNOTATION_NAME: Message = Message::of(&[row(1, "iid", Unsigned), row(2, "name", Text)]);

/// `InternedString`.
pub(crate) static INTERNED_STRING: Message = Message::of(&[row(1, "iid", Unsigned), row(2, "str", Bytes)]);

/// `LogMessageBody`.
pub(crate) static LOG_MESSAGE_BODY: Message = Message::of(&[row(1, "iid", Unsigned), row(2, "body", Text)]);

/// `DebugAnnotationValueTypeName`.
pub(crate) static DEBUG_ANNOTATION_VALUE_TYPE_NAME: Message =
    Message::of(&[row(1, "iid", Unsigned), row(2, "name", Text)]);

/// `TraceStats`.
pub(crate) static TRACE_STATS: Message = Message::of(&[
    row(1, "buffer_stats", M(&TRACE_STATS_BUFFER_STATS)),
    row(2, "producers_connected", Unsigned),
    row(3, "producers_seen", Unsigned),
    row(4, "data_sources_registered", Unsigned),
    row(5, "data_sources_seen", Unsigned),
    row(6, "tracing_sessions", Unsigned),
    row(7, "total_buffers", Unsigned),
    row(8, "chunks_discarded", Unsigned),
    row(9, "patches_discarded", Unsigned),
    row(10, "invalid_packets", Unsigned),
    row(11, "filter_stats", Bytes),
    row(12, "flushes_requested", Unsigned),
    row(13, "flushes_succeeded", Unsigned),
    row(14, "flushes_failed", Unsigned),
    row(15, "final_flush_outcome", Unsigned),
    row(17, "chunk_payload_histogram_def", Signed),
    row(18, "writer_stats", Bytes),
]);

/// `TraceStats.BufferStats`.
pub(crate) static TRACE_STATS_BUFFER_STATS: Message = Message::of(&[
    row(1, "bytes_written", Unsigned),
    row(2, "chunks_written", Unsigned),
    row(3, "chunks_overwritten", Unsigned),
    row(4, "write_wrap_count", Unsigned),
    row(5, "patches_succeeded", Unsigned),
    row(6, "patches_failed", Unsigned),
    row(7, "readaheads_succeeded", Unsigned),
    row(8, "readaheads_failed", Unsigned),
    row(9, "abi_violations", Unsigned),
    row(10, "chunks_rewritten", Unsigned),
    row(11, "chunks_committed_out_of_order", Unsigned),
    row(12, "buffer_size", Unsigned),
    row(13, "bytes_overwritten", Unsigned),
    row(14, "bytes_read", Unsigned),
    row(15, "padding_bytes_written", Unsigned),
    row(16, "padding_bytes_cleared", Unsigned),
    row(17, "chunks_read", Unsigned),
    row(18, "chunks_discarded", Unsigned),
    row(19, "trace_writer_packet_loss", Unsigned),
    row(20, "chunks_relocated", Unsigned),
    row(22, "oversized_packets_dropped", Unsigned),
    row(23, "compactions", Unsigned),
    row(24, "compactions_skipped", Unsigned),
]);

/// `ProcessDescriptor`.
pub(crate) static PROCESS_DESCRIPTOR: Message = Message::of(&[
    row(1, "pid", Signed),
    row(2, "cmdline", Text),
    row(3, "legacy_sort_index", Signed),
    row(4, "chrome_process_type", Unsigned),
    row(5, "process_priority", Signed),
    row(6, "process_name", Text),
    row(7, "start_timestamp_ns", Signed),
    row(8, "process_labels", Text),
]);

/// `ThreadDescriptor`.
pub(crate) static THREAD_DESCRIPTOR: Message = Message::of(&[
    row(1, "pid", Signed),
    row(2, "tid", Signed),
    row(3, "legacy_sort_index", Signed),
    row(4, "chrome_thread_type", Unsigned),
    row(5, "thread_name", Text),
    row(6, "reference_timestamp_us", Signed),
    row(7, "reference_thread_time_us", Signed),
    row(8, "reference_thread_instruction_count", Signed),
]);

/// `SystemInfo`.
pub(crate) static SYSTEM_INFO: Message = Message::of(&[
    row(1, "utsname", M(&UTSNAME)),
    row(2, "android_build_fingerprint", Text),
    row(3, "hz", Signed),
    row(4, "tracing_service_version", Text),
    row(5, "android_sdk_version", Unsigned),
    row(6, "page_size", Unsigned),
    row(7, "timezone_off_mins", Signed),
    row(8, "num_cpus", Unsigned),
    row(9, "android_soc_model", Text),
    row(10, "android_hardware_revision", Text),
    row(11, "android_storage_model", Text),
    row(12, "android_ram_model", Text),
    row(13, "android_guest_soc_model", Text),
    row(14, "android_device_manufacturer", Text),
    row(15, "android_serial_console", Text),
    row(16, "system_ram_bytes", Unsigned),
    row(17, "machine_name", Text),
    row(18, "device_tree_compatibles", Text),
]);

/// `Utsname`.
pub(crate) static UTSNAME: Message =
    Message::of(&[row(1, "sysname", Text), row(2, "version", Text), row(3, "release", Text), row(4, "machine", Text)]);

/// `Trigger`.
pub(crate) static TRIGGER: Message = Message::of(&[
    row(1, "trigger_name", Text),
    row(2, "producer_name", Text),
    row(3, "trusted_producer_uid", Signed),
    row(4, "stop_delay_ms", Unsigned),
]);

/// `TracePacketDefaults`.
pub(crate) static TRACE_PACKET_DEFAULTS: Message = Message::of(&[
    row(11, "track_event_defaults", M(&TRACK_EVENT_DEFAULTS)),
    row(12, "perf_sample_defaults", Bytes),
    row(58, "timestamp_clock_id", Unsigned),
    row(99, "v8_code_defaults", Bytes),
    row(100, "stack_sample_defaults", Bytes),
]);

/// `TrackEventDefaults`.
pub(crate) static TRACK_EVENT_DEFAULTS: Message = Message::of(&[
    row(11, "track_uuid", Unsigned),
    row(31, "extra_counter_track_uuids", Unsigned),
    row(45, "extra_double_counter_track_uuids", Unsigned),
]);

/// `TrackDescriptor`.
pub(crate) static TRACK_DESCRIPTOR: Message = Message::of(&[
    row(1, "uuid", Unsigned),
    row(2, "name", Text),
    row(3, "process", M(&PROCESS_DESCRIPTOR)),
    row(4, "thread", M(&THREAD_DESCRIPTOR)),
    row(5, "parent_uuid", Unsigned),
    row(6, "chrome_process", Bytes),
    row(7, "chrome_thread", Bytes),
    row(8, "counter", M(&COUNTER_DESCRIPTOR)),
    row(9, "disallow_merging_with_system_tracks", Unsigned),
    row(10, "static_name", Text),
    row(11, "child_ordering", Unsigned),
    row(12, "sibling_order_rank", Signed),
    row(13, "atrace_name", Text),
    row(14, "description", Text),
    row(15, "sibling_merge_behavior", Unsigned),
    row(16, "sibling_merge_key", Text),
    row(17, "sibling_merge_key_int", Unsigned),
    row(18, "state", Bytes),
    row(19, "process_ordering", Unsigned),
    row(20, "thread_ordering", Unsigned),
]);

/// `CounterDescriptor`.
pub(crate) static COUNTER_DESCRIPTOR: Message = Message::of(&[
    row(1, "type", Unsigned),
    row(2, "categories", Text),
    row(3, "unit", Unsigned),
    row(4, "unit_multiplier", Signed),
    row(5, "is_incremental", Unsigned),
    row(6, "unit_name", Text),
    row(7, "y_axis_share_key", Text),
]);

/// `TracingServiceEvent`.
pub(crate) static TRACING_SERVICE_EVENT: Message = Message::of(&[
    row(1, "all_data_sources_started", Unsigned),
    row(2, "tracing_started", Unsigned),
    row(3, "all_data_sources_flushed", Unsigned),
    row(4, "read_tracing_buffers_completed", Unsigned),
    row(5, "tracing_disabled", Unsigned),
    row(6, "seized_for_bugreport", Unsigned),
    row(7, "slow_starting_data_sources", Bytes),
    row(8, "last_flush_slow_data_sources", Bytes),
    row(9, "flush_started", Unsigned),
    row(10, "clone_started", Unsigned),
    row(11, "buffer_cloned", Unsigned),
]);

/// `TraceUuid`.
pub(crate) static TRACE_UUID: Message = Message::of(&[row(1, "msb", Signed), row(2, "lsb", Signed)]);
