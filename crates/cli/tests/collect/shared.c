/* Threads that play CPUs and write into a file that another program reads. Arguments: the file, the number of CPUs, the
 * bytes of a ring, the records of each CPU (0: until it is killed), and how: `wait` for room, `drop` what finds none, or
 * `leave` without closing the trace.
 *
 * The oracle: under a lock the CPUs count to address 0x1000, and each CPU counts to an address of its own. At the end it
 * prints how many records were made, and how many were dropped.
 */
#include "casemate_trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct cmt_session *trace;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t common;
static unsigned long each_makes;
static int waits;

static void wait_for_room(uint32_t cpu)
{
	struct cmt_ring *ring = cmt_ring_of(trace, cpu);

	while (waits && ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) > trace->ring_bytes / 2)
		sched_yield();
}

static void *run(void *argument)
{
	uint32_t cpu = (uint32_t)(uintptr_t)argument;

	for (uint64_t count = 0; each_makes == 0 || count < each_makes; count++) {
		wait_for_room(cpu);
		if (count % 8 == 0) {
			pthread_mutex_lock(&lock);
			CMT_MEM_WRITE(trace, cpu, "plain", 0x1000, common++);
			pthread_mutex_unlock(&lock);
		} else {
			CMT_MEM_WRITE(trace, cpu, "release", 0x2000 + 8 * cpu, count);
		}
	}
	return 0;
}

int main(int count, char **words)
{
	uint32_t cpus = (uint32_t)atoi(words[2]);
	size_t bytes = sizeof(struct cmt_session) + cpus * (sizeof(struct cmt_ring) + (size_t)atol(words[3]));
	pthread_t threads[64];
	uint64_t dropped = 0;
	int file = open(words[1], O_RDWR | O_CREAT, 0600);
	void *memory;

	if (count != 6 || cpus > 64 || file < 0 || ftruncate(file, (off_t)bytes))
		return 2;
	memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED)
		return 3;
	each_makes = strtoul(words[4], 0, 10);
	waits = strcmp(words[5], "drop") != 0;
	trace = cmt_init(memory, bytes, cpus, CMT_KEYED);
	if (!trace)
		return 4;
	cmt_process(trace, (uint64_t)getpid());
	for (uintptr_t cpu = 0; cpu < cpus; cpu++)
		if (pthread_create(&threads[cpu], 0, run, (void *)cpu))
			return 5;
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		pthread_join(threads[cpu], 0);
		dropped += cmt_ring_of(trace, cpu)->dropped;
	}
	if (strcmp(words[5], "leave") != 0)
		cmt_close(trace);
	printf("%llu made, %llu dropped\n", (unsigned long long)(cpus * each_makes), (unsigned long long)dropped);
	return 0;
}
