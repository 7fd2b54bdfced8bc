/* Threads that play CPUs and change page tables under a lock, and a reader. Arguments: the form (keyed, positional), the
 * bytes of a ring, the rounds of each CPU, and `slow` for a reader that comes only at the end.
 */
#include "casemate_trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = 4, ROOT = 0x41000, TABLE = 0x44000, LOCK = 0x90000 };

static struct cmt_session *trace;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned rounds;
static int running = CPUS;

static void emit(void *context, const char *text, size_t length)
{
	fwrite(text, 1, length, (FILE *)context);
}

/* Every macro once: what a checker makes of them is in the test. */
static void each_kind(uint32_t cpu)
{
	CMT_MEM_INIT(trace, cpu, 0x70000, 0x1000);
	CMT_MEM_SET(trace, cpu, 0x70000, 0x1000, 0);
	CMT_MEM_READ(trace, cpu, 0x70008, 0);
	CMT_MEM_ATOMIC(trace, cpu, "cmpxchg", "acq_rel", 0x70008, 5, 0);
	CMT_ISB(trace, cpu);
	CMT_TLBI(trace, cpu, "alle1is");
	CMT_TRYLOCK(trace, cpu, 0x91000);
	CMT_UNLOCK(trace, cpu, 0x91000);
	CMT_HINT(trace, cpu, "set_owner_root", 0x70000, 0x41000);
	CMT_MEM_FREE(trace, cpu, 0x70000, 0x1000);
}

static void *run(void *argument)
{
	uint32_t cpu = (uint32_t)(uintptr_t)argument;

	for (unsigned round = 0; round < rounds; round++) {
		uint64_t page = round % 512, entry = TABLE + 8 * page;

		pthread_mutex_lock(&lock);
		CMT_LOCK(trace, cpu, LOCK);
		CMT_MEM_WRITE(trace, cpu, "release", entry, 0);
		CMT_DSB(trace, cpu, "ishst");
		CMT_TLBI_VALUE(trace, cpu, "ipas2e1is", page);
		CMT_DSB(trace, cpu, "ish");
		CMT_TLBI(trace, cpu, "vmalle1is");
		CMT_DSB(trace, cpu, "ish");
		CMT_MEM_WRITE(trace, cpu, "release", entry, (0x80000 + 0x1000 * (uint64_t)cpu) | 0x7c3);
		CMT_UNLOCK(trace, cpu, LOCK);
		pthread_mutex_unlock(&lock);
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	return 0;
}

int main(int count, char **words)
{
	pthread_t threads[CPUS];
	uint32_t form = count > 1 && strcmp(words[1], "keyed") == 0 ? CMT_KEYED : CMT_POSITIONAL;
	size_t ring = count > 2 ? (size_t)atol(words[2]) : 65536;
	size_t bytes = sizeof(struct cmt_session) + CPUS * (sizeof(struct cmt_ring) + ring);
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	int is_slow = count > 4 && strcmp(words[4], "slow") == 0;

	rounds = count > 3 ? (unsigned)atoi(words[3]) : 100;
	/* What does not fit is refused, not trimmed. */
	if (cmt_init(memory, 1000, CPUS, form) || cmt_init((char *)memory + 8, bytes - 8, 1, form))
		return 3;
	trace = cmt_init(memory, bytes, CPUS, form);
	if (!trace || trace->ring_bytes != ring)
		return 4;
	CMT_LOCK(trace, CPUS, LOCK); /* there is no such ring: nothing happens */
	CMT_MEM_INIT(trace, 0, ROOT, 0x4000);
	CMT_HINT(trace, 0, "set_root_lock", ROOT, LOCK);
	CMT_MEM_WRITE(trace, 0, "plain", ROOT, 0x42003);
	CMT_MEM_WRITE(trace, 0, "plain", ROOT + 0x1000, 0x43003);
	CMT_MEM_WRITE(trace, 0, "plain", ROOT + 0x2000, TABLE | 3);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		CMT_SYSREG_WRITE(trace, cpu, "vttbr_el2", UINT64_C(1) << 48 | ROOT);
	each_kind(1);
	for (uintptr_t cpu = 0; cpu < CPUS; cpu++)
		if (pthread_create(&threads[cpu], 0, run, (void *)cpu))
			return 5;
	while (!is_slow && __atomic_load_n(&running, __ATOMIC_ACQUIRE))
		cmt_drain(trace, emit, stdout, 0);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		pthread_join(threads[cpu], 0);
	cmt_drain(trace, emit, stdout, 1);
	free(memory);
	return fflush(stdout) ? 6 : 0;
}
