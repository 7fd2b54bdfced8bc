/*
 * Replays steps through the checker, and prints what each of them broke.
 *
 * replay CASES: a line of CASES is `rules flags bbm rules_on rules_off kibibytes path`; the file at the path contains
 * struct casemate_step after struct casemate_step. replay -t CASES replays each case five times, without reports, and
 * prints the processor time a step of the fastest run. replay -s CASES prints the bytes of stack that the deepest step
 * needs.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "casemate.h"

struct trace {
    struct casemate_step *steps;
    size_t count;
};

static struct trace load(const char *path)
{
    struct trace trace = {NULL, 0};
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) {
        perror(path);
        exit(2);
    }
    long bytes = ftell(file);
    rewind(file);
    trace.count = (size_t)bytes / sizeof *trace.steps;
    trace.steps = malloc((size_t)bytes + 1);
    if (!trace.steps || fread(trace.steps, sizeof *trace.steps, trace.count, file) != trace.count) {
        perror(path);
        exit(2);
    }
    fclose(file);
    return trace;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void count_line(void *context, const char *line, size_t length)
{
    if (strlen(line) != length)
        abort();
    ++*(size_t *)context;
}

static struct casemate_checker *start(void *block, size_t bytes, const struct casemate_options *options, size_t *lines)
{
    struct casemate_callbacks callbacks = {lines, count_line, NULL, NULL};
    struct casemate_checker *checker = casemate_initialise(block, bytes, options, &callbacks);
    if (!checker) {
        fprintf(stderr, "no checker\n");
        exit(2);
    }
    return checker;
}

static void replay(struct casemate_checker *checker, const struct trace *trace, int goes_on)
{
    for (size_t at = 0; at < trace->count; ++at) {
        int result = casemate_step(checker, &trace->steps[at]);
        struct casemate_report report;
        size_t number = 0;
        if (result == CASEMATE_STOPPED) {
            printf("%zu result %d\n", at, result);
            break;
        }
        for (; casemate_report(checker, number, &report); ++number)
            printf("%zu %d %s %d %" PRIx64 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "|%s\n", at, result, report.code,
                   report.has_location ? 1 : 0, report.location, report.more, report.old_value, report.new_value,
                   report.deciding_bits, report.message);
        if (result != CASEMATE_OK && number == 0) {
            printf("%zu result %d\n", at, result);
            break;
        }
        if (result == CASEMATE_VIOLATION && !goes_on) {
            if (casemate_step(checker, &trace->steps[at]) != CASEMATE_STOPPED)
                abort();
            break;
        }
    }
}

static void measure(void *block, size_t bytes, const struct casemate_options *options, const struct trace *trace)
{
    double best = 1e9;
    struct casemate_memory memory = {0, 0, 0};
    for (int run = 0; run < 5; ++run) {
        size_t lines = 0;
        struct casemate_checker *checker = start(block, bytes, options, &lines);
        double begin = seconds();
        for (size_t at = 0; at < trace->count; ++at)
            casemate_step(checker, &trace->steps[at]);
        double time = seconds() - begin;
        best = time < best ? time : best;
        casemate_memory(checker, &memory);
        if (casemate_verdict(checker) != CASEMATE_OK)
            printf("verdict %d, ", casemate_verdict(checker));
    }
    printf("%zu steps, %.1f ns a step, peak %" PRIu64 " bytes\n", trace->count, best / (double)trace->count * 1e9,
           memory.peak_bytes);
}

#define STACK_BYTES (256 * 1024)

struct job {
    struct casemate_checker *checker;
    struct trace trace;
};

static void *walk(void *job)
{
    struct job *all = job;
    for (size_t at = 0; at < all->trace.count; ++at)
        casemate_step(all->checker, &all->trace.steps[at]);
    return NULL;
}

/* The bytes of stack that a thread needs for a job: those that no longer have the value they were filled with. */
static size_t depth(struct job *job)
{
    unsigned char *stack = aligned_alloc(4096, STACK_BYTES);
    pthread_attr_t attributes;
    pthread_t thread;
    size_t unused = 0;
    if (!stack)
        exit(2);
    memset(stack, 0xa5, STACK_BYTES);
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, STACK_BYTES) ||
        pthread_create(&thread, &attributes, walk, job) || pthread_join(thread, NULL))
        exit(2);
    while (unused < STACK_BYTES && stack[unused] == 0xa5)
        ++unused;
    pthread_attr_destroy(&attributes);
    free(stack);
    return STACK_BYTES - unused;
}

int main(int argc, char **argv)
{
    int is_timed = argc == 3 && strcmp(argv[1], "-t") == 0;
    int is_stack = argc == 3 && strcmp(argv[1], "-s") == 0;
    struct job nothing = {NULL, {NULL, 0}};
    size_t deepest = 0, shallow = is_stack ? depth(&nothing) : 0;
    FILE *cases = argc == 2 + (is_timed || is_stack) ? fopen(argv[argc - 1], "r") : NULL;
    struct casemate_options options = {0, 0, 0, 0, 0, 0, 0};
    size_t kibibytes;
    char path[4096];
    if (!cases) {
        fprintf(stderr, "replay [-t|-s] CASES\n");
        return 2;
    }
    while (fscanf(cases, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNx32 " %" SCNx32 " %zu %4095s", &options.rules,
                  &options.flags, &options.bbm, &options.rules_on, &options.rules_off, &kibibytes, path) == 7) {
        struct trace trace = load(path);
        /* As long as the block is, so that a sanitizer sees the first byte past it. */
        void *block = malloc(kibibytes * 1024);
        if (!block)
            return 2;
        if (is_timed) {
            measure(block, kibibytes * 1024, &options, &trace);
        } else if (is_stack) {
            size_t lines = 0;
            struct job job = {start(block, kibibytes * 1024, &options, &lines), trace};
            size_t bytes = depth(&job) - shallow;
            deepest = bytes > deepest ? bytes : deepest;
        } else {
            size_t lines = 0;
            struct casemate_checker *checker = start(block, kibibytes * 1024, &options, &lines);
            replay(checker, &trace, (options.flags & CASEMATE_GO_ON) != 0);
            printf("verdict %d\n", casemate_verdict(checker));
        }
        free(block);
        free(trace.steps);
    }
    fclose(cases);
    if (is_stack)
        printf("%zu\n", deepest);
    return 0;
}
