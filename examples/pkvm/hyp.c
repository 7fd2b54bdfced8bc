/* A page-table change as a hypervisor makes it, and the records of it, without a C library.
 *
 * Everything above `main` can be used in a hypervisor: it needs a function that writes a character (a UART, a ring
 * buffer), and one counter. Records are in the positional form: (NAME ID CPU FIELDS "FILE:LINE").
 */
#include <stdint.h>

/* What a hypervisor has of its own: here standard output of a model. */
int putchar(int character);

static uint64_t trace_next;

static void trace_text(const char *text)
{
	while (*text)
		putchar(*text++);
}

static void trace_number(uint64_t number, unsigned base)
{
	char digits[20];
	unsigned count = 0;

	do {
		digits[count++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (count)
		putchar(digits[--count]);
}

static void trace_hex(uint64_t number)
{
	trace_text(" 0x");
	trace_number(number, 16);
}

/* On several CPUs, take the number with an atomic add, and keep one lock from here to `trace_end`: the lines must come
 * in the order of the numbers. */
static void trace_begin(const char *name, unsigned cpu)
{
	putchar('(');
	trace_text(name);
	putchar(' ');
	trace_number(trace_next++, 10);
	putchar(' ');
	trace_number(cpu, 10);
}

static void trace_end(const char *file, unsigned line)
{
	trace_text(" \"");
	trace_text(file);
	putchar(':');
	trace_number(line, 10);
	trace_text("\")\n");
}

#define TRACE(cpu, name, fields) (trace_begin(name, cpu), fields, trace_end(__FILE__, __LINE__))
#define TRACE_INIT(cpu, at, size) TRACE(cpu, "mem-init", (trace_hex(at), trace_hex(size)))
#define TRACE_WRITE(cpu, order, at, value) \
	TRACE(cpu, "mem-write", (trace_text(" " order), trace_hex(at), trace_hex(value)))
#define TRACE_DSB(cpu, kind) TRACE(cpu, "barrier", trace_text(" dsb " kind))
#define TRACE_TLBI(cpu, op) TRACE(cpu, "tlbi", trace_text(" " op))
#define TRACE_TLBI_AT(cpu, op, value) TRACE(cpu, "tlbi", (trace_text(" " op), trace_hex(value)))
#define TRACE_SYSREG(cpu, name, value) TRACE(cpu, "sysreg-write", (trace_text(" " name), trace_hex(value)))
#define TRACE_HINT(cpu, kind, at, value) TRACE(cpu, "hint", (trace_text(" " kind), trace_hex(at), trace_hex(value)))
#define TRACE_LOCK(cpu, at) TRACE(cpu, "lock", trace_hex(at))
#define TRACE_UNLOCK(cpu, at) TRACE(cpu, "unlock", trace_hex(at))

/* The model: a stage 2 tree of VMID 1 whose last table is at 0x44000. */
enum { POOL = 0x41000, ROOT = 0x41000, TABLE = 0x44000, LOCK = 0x90000 };

static void set_up(unsigned cpu)
{
	TRACE_INIT(cpu, POOL, 0x4000);
	TRACE_HINT(cpu, "set_root_lock", ROOT, LOCK);
	TRACE_WRITE(cpu, "plain", ROOT, 0x42003);
	TRACE_WRITE(cpu, "plain", ROOT + 0x1000, 0x43003);
	TRACE_WRITE(cpu, "plain", ROOT + 0x2000, TABLE | 3);
	for (unsigned each = 0; each < 2; each++)
		TRACE_SYSREG(each, "vttbr_el2", UINT64_C(1) << 48 | ROOT);
}

/* Maps a page of the guest elsewhere. */
static void remap(unsigned cpu, uint64_t page, uint64_t to, int has_tlbi)
{
	uint64_t entry = TABLE + 8 * page;

	TRACE_LOCK(cpu, LOCK);
	TRACE_WRITE(cpu, "release", entry, 0);
	TRACE_DSB(cpu, "ishst");
	if (has_tlbi) {
		TRACE_TLBI_AT(cpu, "ipas2e1is", page);
		TRACE_DSB(cpu, "ish");
		TRACE_TLBI(cpu, "vmalle1is");
	}
	TRACE_DSB(cpu, "ish");
	TRACE_WRITE(cpu, "release", entry, to | 0x7c3);
	TRACE_UNLOCK(cpu, LOCK);
}

int main(int count, char **words)
{
	(void)words;
	set_up(0);
	for (uint64_t turn = 0; turn < 6; turn++)
		remap(turn % 2, turn % 3, 0x80000 + 0x1000 * turn, count < 2 || turn < 4);
	return 0;
}
