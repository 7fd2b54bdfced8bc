/*
 * casemate_trace.h: writes traces of page-table events, in the format of `anytrace casemate check`, from a program
 * without a C library: a hypervisor, a kernel, firmware.
 *
 * A record goes into a ring buffer of its CPU; no lock is taken, and no CPU waits for another. A reader, on any CPU,
 * takes the records out in the order in which they were made:
 *
 *     static _Alignas(64) unsigned char memory[1 << 20];
 *     struct cmt_session *trace = cmt_init(memory, sizeof memory, CPUS, CMT_KEYED);
 *     ...
 *     CMT_MEM_WRITE(trace, cpu, "release", &entry, value);     on each CPU
 *     ...
 *     cmt_drain(trace, emit, context, 0);                      now and then, on one CPU
 *     cmt_drain(trace, emit, context, 1);                      at the end, when no CPU writes any more
 *
 * Where another program can see the memory, that program can be the reader, and cmt_drain is not called:
 *
 *     anytrace casemate collect --follow /dev/shm/trace -o hyp.log
 *
 * It ends after `cmt_close(trace)`, or when the process that `cmt_process(trace, pid)` named is gone. Without
 * `--follow` it reads an image of the memory, of a machine that crashed, say.
 *
 * What each CPU must keep: one writer at a time. Where interrupts or NMIs make records too, switch interrupts off
 * around the macros, or give each context a ring of its own and its CPU's number as `tid`.
 *
 * Nothing is lost silently: a record that finds its ring full is counted, and the next call of `cmt_drain` writes a
 * comment with the count, before any further record. `anytrace casemate check` then says `unknown`, never `ok`.
 *
 * C11 or C++11, GCC or clang (for their __atomic operations, on 64-bit integers). The memory is the caller's.
 */
#ifndef CASEMATE_TRACE_H
#define CASEMATE_TRACE_H

#include <stddef.h>
#include <stdint.h>

/* The longest record, in bytes. Names of files are cut at their beginning so that no record is longer. */
#define CMT_RECORD_BYTES 512
#define CMT_FILE_BYTES 200

/* The smallest ring: some records of the greatest length. */
#define CMT_RING_BYTES_MIN 4096

/* Forms of the records: short, or with the name of each field. */
#define CMT_POSITIONAL 0
#define CMT_KEYED 1

/* The layout, version 1, which readers outside the program rely on. All numbers are in the byte order of the program.
 *
 *     byte 0                      struct cmt_session, 192 bytes
 *     byte 192 + i * stride       struct cmt_ring of ring i, 128 bytes; stride = 128 + ring_bytes
 *     byte 320 + i * stride       its bytes: the one at position p is at p modulo ring_bytes
 *
 * Positions count the bytes since the beginning and are multiples of 16. From `tail` to `head` a ring has records, each
 * a struct cmt_frame, then the text, then zeros to a multiple of 16 bytes. */
#define CMT_MAGIC UINT64_C(0x3145434152544d43)

/* A ring: its bytes follow it. Each half of 64 bytes is written by one side only. */
struct cmt_ring {
	/* Written by the CPU: bytes written and records dropped since the beginning, and `tail` as the CPU saw it last. */
	uint64_t head;
	uint64_t dropped;
	uint64_t taken;
	uint64_t unused_writer[5];
	/* Written by the reader: bytes read, twice, because a reader in another program may not be able to write a number
	 * at once; drops reported. */
	uint64_t tail;
	uint64_t tail_again;
	uint64_t reported;
	uint64_t unused_reader[5];
};

/* All rings, and what they have in common. */
struct cmt_session {
	uint64_t magic; /* CMT_MAGIC, once the rest is valid: the characters "CMTRACE1" on a little-endian machine */
	uint32_t rings;
	uint32_t ring_bytes; /* a power of two, from 4096 to 2^30 */
	uint32_t form;
	uint32_t closed; /* 1: no CPU writes any more */
	uint64_t session; /* how often this memory was prepared */
	uint64_t process; /* the process that writes, 0 where there is none */
	uint64_t unused_common[3];
	uint64_t next; /* the number of the next record */
	uint64_t unused_next[7];
	uint64_t drained; /* written by the reader: the number of the next record to take out */
	uint64_t unused_reader[7];
};

/* A record in a ring: its number, the length of its text, and by what a reader knows that both are complete. */
struct cmt_frame {
	uint64_t number;
	uint32_t length;
	uint32_t check;
};

/* A record in the making. */
struct cmt_line {
	char text[CMT_RECORD_BYTES];
	size_t length;
};

/* A field: a word, a number, or none. */
struct cmt_field {
	const char *key; /* without one, both forms have the value alone */
	const char *word;
	uint64_t number;
	int kind; /* 0 none, 1 word, 2 number */
};

static inline struct cmt_field cmt_none(void)
{
	struct cmt_field field = { 0, 0, 0, 0 };
	return field;
}

static inline struct cmt_field cmt_word(const char *key, const char *word)
{
	struct cmt_field field = { 0, 0, 0, 1 };
	field.key = key;
	field.word = word;
	return field;
}

static inline struct cmt_field cmt_number(const char *key, uint64_t number)
{
	struct cmt_field field = { 0, 0, 0, 2 };
	field.key = key;
	field.number = number;
	return field;
}

static inline void cmt_character(struct cmt_line *line, char character)
{
	if (line->length < CMT_RECORD_BYTES)
		line->text[line->length++] = character;
}

static inline void cmt_text(struct cmt_line *line, const char *text)
{
	while (*text)
		cmt_character(line, *text++);
}

static inline void cmt_digits(struct cmt_line *line, uint64_t number, unsigned base)
{
	char digits[20];
	unsigned count = 0;

	do {
		digits[count++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (count)
		cmt_character(line, digits[--count]);
}

static inline void cmt_put_field(struct cmt_line *line, uint32_t form, struct cmt_field field)
{
	int has_key = form == CMT_KEYED && field.key != 0;

	if (field.kind == 0)
		return;
	cmt_text(line, has_key ? " (" : " ");
	if (has_key) {
		cmt_text(line, field.key);
		cmt_character(line, ' ');
	}
	if (field.kind == 1) {
		cmt_text(line, field.word);
	} else {
		cmt_text(line, "0x");
		cmt_digits(line, field.number, 16);
	}
	if (has_key)
		cmt_character(line, ')');
}

/* The place in the source: the end of the file's name, without characters that would end the string. */
static inline void cmt_put_source(struct cmt_line *line, uint32_t form, const char *file, unsigned number)
{
	size_t length = 0;

	while (file[length])
		length++;
	if (length > CMT_FILE_BYTES)
		file += length - CMT_FILE_BYTES;
	cmt_text(line, form == CMT_KEYED ? " (src \"" : " \"");
	for (; *file; file++) {
		int is_plain = (unsigned char)*file >= ' ' && *file != '"' && *file != '\\';
		cmt_character(line, is_plain ? *file : '_');
	}
	cmt_character(line, ':');
	cmt_digits(line, number, 10);
	cmt_text(line, form == CMT_KEYED ? "\")" : "\"");
}

static inline struct cmt_ring *cmt_ring_of(struct cmt_session *session, uint32_t ring)
{
	size_t stride = sizeof(struct cmt_ring) + session->ring_bytes;

	return (struct cmt_ring *)(void *)((unsigned char *)(session + 1) + stride * ring);
}

/* The check of a record at a position: over the eight-byte words of its padded text. */
static inline uint32_t cmt_check(uint64_t at, const struct cmt_frame *frame, const char *text, size_t padded)
{
	uint64_t check = frame->number * UINT64_C(0x9e3779b97f4a7c15) + (at ^ (uint64_t)frame->length << 48);

	for (size_t each = 0; each + 8 <= padded; each += 8) {
		uint64_t word;

		__builtin_memcpy(&word, text + each, 8);
		check = (check ^ word) * UINT64_C(0xff51afd7ed558ccd);
		check ^= check >> 32;
	}
	return (uint32_t)(check >> 32);
}

/* True where a ring has room for the longest record. What the reader wrote counts if both of its numbers agree. */
static inline int cmt_has_room(struct cmt_session *session, struct cmt_ring *ring, uint64_t head)
{
	uint64_t most = session->ring_bytes - (sizeof(struct cmt_frame) + CMT_RECORD_BYTES);

	if (head - ring->taken <= most)
		return 1;
	for (int tries = 0; tries < 8; tries++) {
		uint64_t again = __atomic_load_n(&ring->tail_again, __ATOMIC_ACQUIRE);
		uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);

		if (tail == again && tail - ring->taken <= head - ring->taken) {
			ring->taken = tail;
			break;
		}
	}
	return head - ring->taken <= most;
}

static inline void cmt_set_tail(struct cmt_ring *ring, uint64_t tail)
{
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	__atomic_store_n(&ring->tail_again, tail, __ATOMIC_RELEASE);
}

/* Copies to or from a ring. */
static inline void cmt_copy_in(struct cmt_session *session, struct cmt_ring *ring, uint64_t at, const void *from,
			       size_t length)
{
	unsigned char *bytes = (unsigned char *)(ring + 1);
	const unsigned char *source = (const unsigned char *)from;

	for (size_t each = 0; each < length; each++)
		bytes[(at + each) & (session->ring_bytes - 1)] = source[each];
}

static inline void cmt_copy_out(struct cmt_session *session, struct cmt_ring *ring, uint64_t at, void *to, size_t length)
{
	const unsigned char *bytes = (const unsigned char *)(ring + 1);
	unsigned char *target = (unsigned char *)to;

	for (size_t each = 0; each < length; each++)
		target[each] = bytes[(at + each) & (session->ring_bytes - 1)];
}

/* Prepares `bytes` of memory, aligned to 64, for a ring per CPU. Returns 0 if they are too few or not aligned: each CPU
 * needs a ring of a power of two of at least CMT_RING_BYTES_MIN bytes, and 128 bytes. */
static inline struct cmt_session *cmt_init(void *memory, size_t bytes, uint32_t cpus, uint32_t form)
{
	struct cmt_session *session = (struct cmt_session *)memory;
	size_t each, size = CMT_RING_BYTES_MIN;
	uint64_t earlier = 0;

	if (((uintptr_t)memory & 63) || cpus == 0 || bytes < sizeof(struct cmt_session))
		return 0;
	each = (bytes - sizeof(struct cmt_session)) / cpus;
	if (each < sizeof(struct cmt_ring) + size)
		return 0;
	while (size < ((size_t)1 << 30) && 2 * size + sizeof(struct cmt_ring) <= each)
		size *= 2;
	if (__atomic_load_n(&session->magic, __ATOMIC_ACQUIRE) == CMT_MAGIC)
		earlier = session->session;
	/* A reader that looks meanwhile finds nothing. */
	__atomic_store_n(&session->magic, 0, __ATOMIC_SEQ_CST);
	session->rings = cpus;
	session->ring_bytes = (uint32_t)size;
	session->form = form;
	session->closed = 0;
	session->session = earlier + 1;
	session->process = 0;
	session->next = 0;
	session->drained = 0;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		struct cmt_ring *ring = cmt_ring_of(session, cpu);
		ring->head = ring->dropped = ring->taken = 0;
		ring->tail = ring->tail_again = ring->reported = 0;
	}
	__atomic_store_n(&session->magic, CMT_MAGIC, __ATOMIC_SEQ_CST);
	return session;
}

/* Names the process that writes, as the reader sees it: the reader ends when that process is gone. */
static inline void cmt_process(struct cmt_session *session, uint64_t process)
{
	__atomic_store_n(&session->process, process, __ATOMIC_RELEASE);
}

/* No CPU writes any more: the reader ends when it has taken everything. */
static inline void cmt_close(struct cmt_session *session)
{
	__atomic_store_n(&session->closed, 1, __ATOMIC_RELEASE);
}

/* Makes a record. The macros below call it. `ring` is that of the CPU; `cpu` is the record's `tid`. */
static inline void cmt_record(struct cmt_session *session, uint32_t number_of_ring, uint32_t cpu, const char *name,
			      struct cmt_field a, struct cmt_field b, struct cmt_field c, struct cmt_field d,
			      struct cmt_field e, const char *file, unsigned number)
{
	struct cmt_ring *ring;
	struct cmt_frame frame;
	struct cmt_line line;
	uint64_t head;
	size_t padded;
	uint32_t form;

	if (session == 0 || number_of_ring >= session->rings)
		return;
	ring = cmt_ring_of(session, number_of_ring);
	form = session->form;
	head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
	/* Room first, then a number: every number that was taken appears in its ring. */
	if (!cmt_has_room(session, ring, head)) {
		uint64_t dropped = __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED);
		__atomic_store_n(&ring->dropped, dropped + 1, __ATOMIC_RELEASE);
		return;
	}
	frame.number = __atomic_fetch_add(&session->next, 1, __ATOMIC_ACQ_REL);
	line.length = 0;
	cmt_character(&line, '(');
	cmt_text(&line, name);
	cmt_text(&line, form == CMT_KEYED ? " (id " : " ");
	cmt_digits(&line, frame.number, 10);
	cmt_text(&line, form == CMT_KEYED ? ") (tid " : " ");
	cmt_digits(&line, cpu, 10);
	if (form == CMT_KEYED)
		cmt_character(&line, ')');
	cmt_put_field(&line, form, a);
	cmt_put_field(&line, form, b);
	cmt_put_field(&line, form, c);
	cmt_put_field(&line, form, d);
	cmt_put_field(&line, form, e);
	cmt_put_source(&line, form, file, number);
	cmt_text(&line, ")\n");
	padded = (line.length + 15) & ~(size_t)15;
	for (size_t each = line.length; each < padded; each++)
		line.text[each] = 0;
	frame.length = (uint32_t)line.length;
	frame.check = cmt_check(head, &frame, line.text, padded);
	cmt_copy_in(session, ring, head, &frame, sizeof frame);
	cmt_copy_in(session, ring, head + sizeof frame, line.text, padded);
	head += sizeof frame + padded;
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
}

/* Where the trace goes: called with complete lines. */
typedef void cmt_emit(void *context, const char *text, size_t length);

static inline void cmt_emit_loss(cmt_emit *emit, void *context, const char *before, uint64_t count, const char *after)
{
	struct cmt_line line;

	line.length = 0;
	cmt_text(&line, "; ");
	cmt_text(&line, before);
	cmt_digits(&line, count, 10);
	cmt_text(&line, after);
	/* The comment by which a checker knows that its verdict cannot be `ok`. */
	cmt_text(&line, "\n; anytrace: records were lost here\n");
	emit(context, line.text, line.length);
}

/* Takes out the records of all CPUs in the order of their numbers, as far as they are complete; one caller at a time.
 * With `is_final`, no CPU writes any more: records that a CPU began and did not finish are reported as lost. Returns how
 * many records were taken out. */
static inline uint64_t cmt_drain(struct cmt_session *session, cmt_emit *emit, void *context, int is_final)
{
	struct cmt_line line;
	uint64_t count = 0;

	for (;;) {
		struct cmt_ring *first = 0;
		struct cmt_frame frame = { 0, 0, 0 };
		uint64_t next = session->drained, lowest = 0;

		for (uint32_t each = 0; each < session->rings; each++) {
			struct cmt_ring *ring = cmt_ring_of(session, each);
			uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
			struct cmt_frame found;

			if (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) == tail)
				continue;
			cmt_copy_out(session, ring, tail, &found, sizeof found);
			if (first == 0 || found.number < lowest) {
				first = ring;
				frame = found;
				lowest = found.number;
			}
		}
		/* Another CPU is still at work on the record before, unless nobody is at work any more. */
		if (first != 0 && lowest != next && !is_final)
			first = 0;
		/* A drop that happened before a record is seen before that record is written. */
		for (uint32_t each = 0; each < session->rings; each++) {
			struct cmt_ring *ring = cmt_ring_of(session, each);
			uint64_t dropped = __atomic_load_n(&ring->dropped, __ATOMIC_ACQUIRE);

			if (dropped != ring->reported) {
				cmt_emit_loss(emit, context, "a full ring dropped ", dropped - ring->reported, " records");
				ring->reported = dropped;
			}
		}
		if (first == 0)
			break;
		if (lowest != next)
			cmt_emit_loss(emit, context, "a CPU did not finish ", lowest - next, " records");
		line.length = frame.length < CMT_RECORD_BYTES ? frame.length : CMT_RECORD_BYTES;
		next = __atomic_load_n(&first->tail, __ATOMIC_RELAXED) + sizeof frame;
		cmt_copy_out(session, first, next, line.text, line.length);
		cmt_set_tail(first, next + ((line.length + 15) & ~(size_t)15));
		session->drained = lowest + 1;
		emit(context, line.text, line.length);
		count++;
	}
	if (is_final && session->drained != __atomic_load_n(&session->next, __ATOMIC_ACQUIRE)) {
		uint64_t next = __atomic_load_n(&session->next, __ATOMIC_ACQUIRE);
		cmt_emit_loss(emit, context, "a CPU did not finish ", next - session->drained, " records");
		session->drained = next;
	}
	return count;
}

/* One macro per kind of record. `cpu` is the number of the ring and the record's `tid`. Addresses are integers. */
#define CMT_RECORD(s, cpu, name, a, b, c, d, e) \
	cmt_record((s), (cpu), (cpu), (name), (a), (b), (c), (d), (e), __FILE__, __LINE__)
#define CMT_1(s, cpu, name, a) CMT_RECORD(s, cpu, name, a, cmt_none(), cmt_none(), cmt_none(), cmt_none())
#define CMT_2(s, cpu, name, a, b) CMT_RECORD(s, cpu, name, a, b, cmt_none(), cmt_none(), cmt_none())
#define CMT_3(s, cpu, name, a, b, c) CMT_RECORD(s, cpu, name, a, b, c, cmt_none(), cmt_none())

/* order: "plain", "release", "page" */
#define CMT_MEM_WRITE(s, cpu, order, address, value) \
	CMT_3(s, cpu, "mem-write", cmt_word("mem-order", order), cmt_number("address", address), cmt_number("value", value))
#define CMT_MEM_READ(s, cpu, address, value) \
	CMT_2(s, cpu, "mem-read", cmt_number("address", address), cmt_number("value", value))
#define CMT_MEM_INIT(s, cpu, address, size) \
	CMT_2(s, cpu, "mem-init", cmt_number("address", address), cmt_number("size", size))
#define CMT_MEM_FREE(s, cpu, address, size) \
	CMT_2(s, cpu, "mem-free", cmt_number("address", address), cmt_number("size", size))
#define CMT_MEM_SET(s, cpu, address, size, value) \
	CMT_3(s, cpu, "mem-set", cmt_number("address", address), cmt_number("size", size), cmt_number("value", value))
/* op: "cmpxchg", "swp", "ldadd", …; value: the word afterwards; read: the word before */
#define CMT_MEM_ATOMIC(s, cpu, op, order, address, value, read) \
	CMT_RECORD(s, cpu, "mem-atomic", cmt_word("op", op), cmt_word("mem-order", order), cmt_number("address", address), \
		   cmt_number("value", value), cmt_number("read", read))
/* kind: "ish", "ishst", "nsh", "sy", … */
#define CMT_DSB(s, cpu, kind) CMT_2(s, cpu, "barrier", cmt_word(0, "dsb"), cmt_word("kind", kind))
#define CMT_ISB(s, cpu) CMT_1(s, cpu, "barrier", cmt_word(0, "isb"))
/* op: "vmalls12e1is", "alle1is", …; with an operand: "ipas2e1is", "vae2is", … */
#define CMT_TLBI(s, cpu, op) CMT_1(s, cpu, "tlbi", cmt_word(0, op))
#define CMT_TLBI_VALUE(s, cpu, op, value) CMT_2(s, cpu, "tlbi", cmt_word(0, op), cmt_number("value", value))
/* name: "vttbr_el2", "ttbr0_el2", "vtcr_el2", … */
#define CMT_SYSREG_WRITE(s, cpu, name, value) \
	CMT_2(s, cpu, "sysreg-write", cmt_word("sysreg", name), cmt_number("value", value))
/* kind: "set_root_lock", "set_owner_root", "release_table", "set_pte_thread_owner" */
#define CMT_HINT(s, cpu, kind, location, value) \
	CMT_3(s, cpu, "hint", cmt_word("kind", kind), cmt_number("location", location), cmt_number("value", value))
#define CMT_LOCK(s, cpu, address) CMT_1(s, cpu, "lock", cmt_number("address", address))
#define CMT_TRYLOCK(s, cpu, address) CMT_1(s, cpu, "trylock", cmt_number("address", address))
#define CMT_UNLOCK(s, cpu, address) CMT_1(s, cpu, "unlock", cmt_number("address", address))

#endif
