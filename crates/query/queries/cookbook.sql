-- slowest-calls (spans)
-- Which spans took longest, and where were they called from?
SELECT name, duration, unit, thread, start, stack_path(stack) AS stack
FROM spans ORDER BY duration DESC, seq LIMIT 10

-- time-by-name (spans)
-- Which names take most time of their own?
SELECT name, count(*) AS spans, sum(self) AS own, sum(duration) AS inclusive, max(duration) AS longest
FROM spans GROUP BY name ORDER BY own DESC, name LIMIT 20

-- time-by-stack (spans)
-- Which stacks take most time of their own?
SELECT stack_path(stack) AS stack, own, spans
FROM (SELECT stack, sum(self) AS own, count(*) AS spans FROM spans GROUP BY stack)
ORDER BY own DESC, stack LIMIT 20

-- time-by-thread (spans)
-- How much time does each thread spend in its outermost spans?
SELECT process, thread, count(*) AS spans, sum(duration) AS busy, min(start) AS first, max(start + duration) AS last
FROM spans WHERE depth = 0 GROUP BY process, thread ORDER BY busy DESC, thread

-- deepest (spans)
-- Where is the call tree deepest?
SELECT depth, name, thread, start, duration FROM spans ORDER BY depth DESC, seq LIMIT 10

-- call-percentiles (xray)
-- How are the durations of each function distributed?
SELECT name, count(*) AS calls, percentile(duration, 0.5) AS p50, percentile(duration, 0.99) AS p99, max(duration) AS longest
FROM calls GROUP BY name ORDER BY longest DESC, name LIMIT 20

-- calls-by-time (xray)
-- How many calls begin in each hundredth of the trace, and on which thread?
SELECT bucket(start, greatest((SELECT (max(start) - min(start)) / 100 FROM calls), 1)) AS time, thread, count(*) AS calls
FROM calls GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 200

-- unfinished-calls (xray)
-- Which calls were still open where the trace ends?
SELECT thread, depth, name, start FROM calls WHERE flags LIKE '%open%' ORDER BY thread, depth LIMIT 50

-- tail-calls (xray)
-- Which functions are left by a jump to another?
SELECT name, count(*) AS calls FROM calls WHERE flags LIKE '%tail%' GROUP BY name ORDER BY calls DESC, name LIMIT 20

-- recursive (xray)
-- Which functions call themselves directly?
SELECT inner_call.name, count(*) AS calls, max(inner_call.depth) AS deepest
FROM calls AS inner_call JOIN calls AS outer_call ON inner_call.parent = outer_call.seq AND inner_call.thread = outer_call.thread
WHERE inner_call.function_id = outer_call.function_id
GROUP BY inner_call.name ORDER BY calls DESC, inner_call.name LIMIT 20

-- migrations (xray)
-- Which threads began calls on several processors?
SELECT thread, count(DISTINCT cpu) AS processors, count(*) AS calls FROM calls GROUP BY thread ORDER BY processors DESC, thread

-- slowest-events (heph)
-- Which events took longest?
SELECT description, stream, substream, start_ns, end_ns - start_ns AS duration_ns
FROM packets ORDER BY duration_ns DESC, seq LIMIT 10

-- starved (heph)
-- Which actor waited longest between two of its events?
SELECT stream, substream, max(gap) AS longest_gap_ns, count(*) AS events
FROM (SELECT stream, substream, start_ns - lag(end_ns) OVER (PARTITION BY stream, substream ORDER BY start_ns, seq) AS gap FROM packets)
WHERE substream <> 0 GROUP BY stream, substream ORDER BY longest_gap_ns DESC NULLS LAST, stream, substream LIMIT 10

-- events-by-description (heph)
-- What does the runtime spend its time on?
SELECT description, count(*) AS events, sum(end_ns - start_ns) AS total_ns, max(end_ns - start_ns) AS longest_ns
FROM packets GROUP BY description ORDER BY total_ns DESC, description LIMIT 20

-- lost-events (heph)
-- Where were events lost?
SELECT stream, after_counter, missing FROM loss ORDER BY missing DESC, stream, after_counter LIMIT 20

-- attribute-values (heph)
-- Which attributes are there, and how do their numbers range?
SELECT key, type, count(*) AS rows, min(coalesce(int, CAST(uint AS BIGINT))) AS least, max(coalesce(int, CAST(uint AS BIGINT))) AS most
FROM attributes GROUP BY key, type ORDER BY rows DESC, key, type

-- events-by-stream (heph)
-- How busy is each worker?
SELECT stream, count(*) AS events, sum(end_ns - start_ns) AS busy_ns, max(end_ns) - min(start_ns) AS span_ns
FROM packets GROUP BY stream ORDER BY busy_ns DESC, stream

-- most-called (apitrace)
-- Which functions are called most?
SELECT function, count(*) AS calls, count(DISTINCT frame) AS frames FROM calls GROUP BY function ORDER BY calls DESC, function LIMIT 20

-- frames-by-calls (apitrace)
-- Which frames have most calls?
SELECT frame, first_call, calls FROM frames ORDER BY calls DESC, frame LIMIT 10

-- redundant-binds (apitrace)
-- Which frames bind what is bound already?
SELECT frame, function, count(*) AS redundant
FROM (SELECT calls.frame, calls.function, args.uint AS object,
    lag(args.uint) OVER (PARTITION BY calls.thread, calls.function ORDER BY calls.call) AS before
  FROM calls JOIN args ON args.call = calls.call
  WHERE calls.function IN ('glUseProgram', 'glBindVertexArray', 'glActiveTexture') AND args.position = 0)
WHERE object = before GROUP BY frame, function ORDER BY redundant DESC, frame, function LIMIT 20

-- last-calls (apitrace)
-- What was called before the trace ends, such as before a crash?
SELECT call, thread, function, CASE WHEN leave_seq IS NULL THEN 'did not return' ELSE '' END AS state
FROM calls ORDER BY call DESC LIMIT 20

-- largest-uploads (apitrace)
-- Which calls carry most data?
SELECT blobs.call, calls.function, calls.frame, sum(blobs.bytes) AS bytes
FROM blobs JOIN calls ON calls.call = blobs.call GROUP BY blobs.call, calls.function, calls.frame ORDER BY bytes DESC, blobs.call LIMIT 10

-- same-uploads (apitrace)
-- Which data are uploaded more than once?
SELECT hex(hash) AS hash, bytes, count(*) AS times, min(call) AS first_call FROM blobs
GROUP BY hash, bytes HAVING count(*) > 1 ORDER BY bytes * count(*) DESC, first_call LIMIT 10

-- transitions-by-kind (casemate)
-- What does the trace consist of, by thread?
SELECT kind, tid, count(*) AS transitions FROM transitions GROUP BY kind, tid ORDER BY transitions DESC, kind, tid LIMIT 20

-- breaches (casemate)
-- Which rules were broken, and where?
SELECT rule, severity, count(*) AS findings, min(seq) AS first_seq FROM breaches GROUP BY rule, severity ORDER BY findings DESC, rule

-- writes-of-an-entry (casemate)
-- Which descriptors are written most, and by how many threads?
SELECT hex(address) AS address, count(*) AS writes, count(DISTINCT tid) AS threads, min(seq) AS first_seq, max(seq) AS last_seq
FROM transitions WHERE kind = 'mem-write' GROUP BY address ORDER BY writes DESC, address LIMIT 10

-- lock-holders (casemate)
-- Which thread held which lock longest, in transitions?
SELECT tid, hex(address) AS lock, max(held) AS longest, count(*) AS times
FROM (SELECT tid, address, kind, seq, lead(seq) OVER (PARTITION BY tid, address ORDER BY seq) - seq AS held
  FROM transitions WHERE kind IN ('lock', 'unlock'))
WHERE kind = 'lock' GROUP BY tid, address ORDER BY longest DESC NULLS LAST, tid, lock LIMIT 10

-- source-lines (casemate)
-- Which lines of source code make most transitions?
SELECT src, kind, count(*) AS transitions FROM transitions GROUP BY src, kind ORDER BY transitions DESC, src, kind LIMIT 20

-- hot-lines (cacheray)
-- Which cache lines are touched most?
SELECT hex(address / CAST(64 AS BIGINT UNSIGNED) * CAST(64 AS BIGINT UNSIGNED)) AS line, count(*) AS accesses, count(DISTINCT thread) AS threads
FROM accesses GROUP BY 1 ORDER BY accesses DESC, line LIMIT 10

-- shared-lines (cacheray)
-- Which cache lines do several threads write?
SELECT hex(line) AS line, count(DISTINCT thread) AS threads, count(*) AS writes
FROM (SELECT address & CAST(18446744073709551552 AS BIGINT UNSIGNED) AS line, thread FROM accesses WHERE kind = 'write')
GROUP BY line HAVING count(DISTINCT thread) > 1 ORDER BY writes DESC, line LIMIT 10

-- accesses-by-thread (cacheray)
-- What does each thread read and write?
SELECT thread, kind, count(*) AS accesses, sum(size) AS bytes FROM accesses GROUP BY thread, kind ORDER BY accesses DESC, thread, kind

-- memory-by-type (cacheray)
-- Which types take most memory?
SELECT type, regions, bytes FROM types ORDER BY bytes DESC, type LIMIT 20

-- never-freed (cacheray)
-- Which regions were never removed?
SELECT type, count(*) AS regions, sum(elements) AS elements FROM regions WHERE removed_seq IS NULL
GROUP BY type ORDER BY regions DESC, type LIMIT 20

-- accesses-of-a-type (cacheray)
-- Who touched memory of each type while it lived?
SELECT regions.type, accesses.thread, accesses.kind, count(*) AS accesses
FROM accesses JOIN regions ON accesses.address >= regions.address
  AND accesses.address < regions.address + greatest(regions.element_bytes * regions.elements, regions.element_bytes)
  AND accesses.seq > regions.added_seq AND (regions.removed_seq IS NULL OR accesses.seq < regions.removed_seq)
GROUP BY regions.type, accesses.thread, accesses.kind ORDER BY accesses DESC, regions.type, accesses.thread, accesses.kind LIMIT 20

-- mix (lackey)
-- How many instructions, reads and writes are there?
SELECT kind, count(*) AS accesses, sum(size) AS bytes FROM accesses GROUP BY kind ORDER BY accesses DESC, kind

-- hot-pages (lackey)
-- Which pages are touched most?
SELECT hex(address & CAST(18446744073709547520 AS BIGINT UNSIGNED)) AS page, count(*) AS accesses,
  sum(CASE WHEN kind IN ('write', 'modify') THEN 1 ELSE 0 END) AS writes
FROM accesses WHERE kind <> 'fetch' GROUP BY 1 ORDER BY accesses DESC, page LIMIT 10

-- hot-code (lackey)
-- Which instructions are executed most?
SELECT hex(address) AS instruction, count(*) AS times FROM accesses WHERE kind = 'fetch' GROUP BY address ORDER BY times DESC, instruction LIMIT 10

-- footprint (lackey)
-- How many different lines of 64 bytes does each part of the trace touch?
SELECT bucket(seq, 100000) AS record, count(DISTINCT address & CAST(18446744073709551552 AS BIGINT UNSIGNED)) AS lines
FROM accesses GROUP BY 1 ORDER BY 1 LIMIT 100
