/* Every function, callback and refusal of the interface. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "casemate.h"

#define CHECK(is_true)                                                        \
    do {                                                                      \
        if (!(is_true)) {                                                     \
            printf("line %d: %s is false\n", __LINE__, #is_true);             \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* What the callbacks heard. */
static struct {
    struct casemate_checker *checker;
    char line[256];
    int lines, aborts, busy;
    jmp_buf back;
    int jumps;
} heard;

static void take_line(void *context, const char *line, size_t length)
{
    CHECK(context == &heard && strlen(line) == length && length < sizeof heard.line);
    memcpy(heard.line, line, length + 1);
    ++heard.lines;
    /* From a callback, every function refuses. */
    struct casemate_memory memory;
    struct casemate_report report;
    heard.busy += casemate_lock(heard.checker, 0, 1) == CASEMATE_BUSY
                  && casemate_sysreg_name(heard.checker, 0, "vbar_el2", 1) == CASEMATE_BUSY;
    heard.busy += casemate_verdict(heard.checker) == CASEMATE_BUSY;
    heard.busy += casemate_memory(heard.checker, &memory) == 0 && casemate_report(heard.checker, 0, &report) == 0;
    heard.busy += casemate_initialise(&memory, sizeof memory, NULL, NULL) == NULL;
}

static void stop(void *context, const char *line)
{
    CHECK(context == &heard && strcmp(line, heard.line) == 0);
    ++heard.aborts;
    /* The library is not at work any more. */
    CHECK(casemate_verdict(heard.checker) != CASEMATE_BUSY);
    if (heard.jumps)
        longjmp(heard.back, 1);
}

static size_t name(void *context, uint64_t address, char *text, size_t size)
{
    CHECK(context == &heard);
    if (address == 0x9000)
        return 0;
    return (size_t)snprintf(text, size, "lock\n%d", (int)(address >> 12));
}

static const struct casemate_callbacks callbacks = {&heard, take_line, stop, name};

static struct casemate_checker *start(void *block, size_t bytes, uint32_t flags)
{
    struct casemate_options options = {CASEMATE_ARCHITECTURE, flags, 0, 0, 0, 0, 12345};
    memset(&heard, 0, sizeof heard);
    heard.checker = casemate_initialise(block, bytes, &options, &callbacks);
    return heard.checker;
}

/* A root of stage 2 at `base` with one page mapped; three tables below it. */
static void tree(struct casemate_checker *checker, uint64_t base)
{
    CHECK(casemate_init(checker, 0, base, 0x4000) == CASEMATE_OK);
    for (int level = 0; level < 3; ++level)
        CHECK(casemate_write(checker, 0, CASEMATE_PLAIN, base + 0x1000 * level, (base + 0x1000 * (level + 1)) | 3) == 0);
    CHECK(casemate_write(checker, 0, CASEMATE_PLAIN, base + 0x3000, 0x800007c3) == CASEMATE_OK);
    CHECK(casemate_hint(checker, 0, CASEMATE_SET_ROOT_LOCK, base, base + 8) == CASEMATE_OK);
    CHECK(casemate_sysreg(checker, 0, CASEMATE_VTTBR_EL2, base | base << 36) == CASEMATE_OK);
}

/* Breaks, invalidates and makes the page again. */
static int round_of(struct casemate_checker *checker, uint64_t base, uint32_t operation)
{
    int result = casemate_lock(checker, 0, base + 8);
    result |= casemate_write(checker, 0, CASEMATE_PLAIN, base + 0x3000, 0);
    result |= casemate_barrier(checker, 0, CASEMATE_DSB_ISH);
    result |= casemate_tlbi(checker, 0, operation, 0);
    result |= casemate_barrier(checker, 0, CASEMATE_DSB_ISH);
    result |= casemate_write(checker, 0, CASEMATE_RELEASE, base + 0x3000, 0x900007c3);
    return result | casemate_unlock(checker, 0, base + 8);
}

static void violations(void *block, size_t bytes)
{
    struct casemate_report report;
    struct casemate_checker *checker = start(block, bytes, 0);
    tree(checker, 0x40000);
    CHECK(round_of(checker, 0x40000, CASEMATE_TLBI_VMALLS12E1 + CASEMATE_TLBI_IS) == CASEMATE_OK);
    CHECK(casemate_verdict(checker) == CASEMATE_OK && heard.lines == 0);
    CHECK(casemate_report(checker, 0, &report) == 0);
    CHECK(casemate_lock(checker, 3, 0x7000) == CASEMATE_OK);
    CHECK(casemate_lock(checker, 4, 0x7000) == CASEMATE_VIOLATION);
    CHECK(heard.lines == 1 && heard.aborts == 1 && heard.busy == 4);
    CHECK(strcmp(heard.line, "casemate: step 16, thread 4: error: Tried to lock a component that was alerady held "
                             "[casemate/lock-held] at 0x7000 (lock?7)") == 0);
    CHECK(casemate_report(checker, 0, &report) == 1 && casemate_report(checker, 1, &report) == 0);
    CHECK(casemate_report(checker, 0, NULL) == 0);
    CHECK(strcmp(report.code, "casemate/lock-held") == 0 && report.is_error == 1 && report.location == 0x7000);
    CHECK(casemate_lock(checker, 4, 0x8000) == CASEMATE_STOPPED && casemate_verdict(checker) == CASEMATE_VIOLATION);

    /* A change of the output address without a break. */
    checker = start(block, bytes, CASEMATE_GO_ON | CASEMATE_RACY);
    tree(checker, 0x40000);
    CHECK(casemate_write(checker, 0, CASEMATE_PLAIN, 0x43000, 0x900007c3) == CASEMATE_VIOLATION);
    CHECK(strstr(heard.line, "BBM valid->valid [casemate/bbm-valid-valid] at 0x43000 (lock?67): 0x800007c3 -> 0x900007c3"));
    CHECK(casemate_report(checker, 0, &report) == 1 && report.old_value == 0x800007c3 && report.new_value == 0x900007c3);
    CHECK(report.deciding_bits == 0x10000000);
    /* It goes on, and forgets nothing. */
    CHECK(casemate_lock(checker, 0, 0x9000) == CASEMATE_OK && casemate_lock(checker, 1, 0x9000) == CASEMATE_VIOLATION);
    CHECK(strstr(heard.line, "at 0x9000") && !strchr(strstr(heard.line, "at 0x9000"), '('));
    CHECK(casemate_verdict(checker) == CASEMATE_VIOLATION && heard.aborts == 0 && heard.lines == 2);
}

static void unknowns(void *block, size_t bytes)
{
    struct casemate_checker *checker = start(block, bytes, CASEMATE_GO_ON);
    CHECK(casemate_sysreg(checker, 0, CASEMATE_OTHER, 1) == CASEMATE_UNKNOWN && casemate_verdict(checker) == 2);
    /* What is a violation after that may be none. */
    CHECK(casemate_unlock(checker, 0, 8) == CASEMATE_UNKNOWN && casemate_verdict(checker) == CASEMATE_UNKNOWN);
    checker = start(block, bytes, CASEMATE_GO_ON);
    CHECK(casemate_tlbi(checker, 0, CASEMATE_OTHER, 1) == CASEMATE_UNKNOWN && heard.lines == 1);
    /* By name, in any case: known ones, those that do not matter, others, and what is no name. */
    checker = start(block, bytes, CASEMATE_GO_ON);
    CHECK(casemate_sysreg_name(checker, 0, "HCR_EL2", 1) == CASEMATE_OK);
    CHECK(casemate_sysreg_name(checker, 0, "vbar_el2", 1) == CASEMATE_OK);
    CHECK(casemate_tlbi_name(checker, 0, "vmalls12e1is", 0) == CASEMATE_OK);
    CHECK(casemate_verdict(checker) == CASEMATE_OK);
    CHECK(casemate_sysreg_name(checker, 0, "", 1) == CASEMATE_INVALID);
    CHECK(casemate_sysreg_name(checker, 0, "3x", 1) == CASEMATE_INVALID);
    CHECK(casemate_sysreg_name(checker, 0, "twenty_three_characters", 1) == CASEMATE_UNKNOWN);
    CHECK(casemate_sysreg_name(checker, 0, "twenty_four__characters_", 1) == CASEMATE_INVALID);
    CHECK(casemate_sysreg_name(checker, 0, NULL, 1) == CASEMATE_INVALID);
    CHECK(casemate_sysreg_name(NULL, 0, "vbar_el2", 1) == CASEMATE_INVALID);
    CHECK(casemate_tlbi_name(checker, 0, "vmallws2e1is", 0) == CASEMATE_UNKNOWN && heard.lines == 2);
}

static void refusals(char *block, size_t bytes)
{
    struct casemate_options options = {CASEMATE_COMPAT, 0, 0, 0, 0, 0, 0};
    struct casemate_step step = {0, 0, 0, 0, 0, 0, 0};
    CHECK(casemate_initialise(NULL, bytes, NULL, NULL) == NULL);
    CHECK(casemate_initialise(block, bytes, NULL, NULL) != NULL);
    struct casemate_checker *checker = casemate_initialise(block + 5, bytes - 5, &options, NULL);
    CHECK(checker && (char *)checker > block && (char *)checker < block + 80);
    CHECK(casemate_step(NULL, &step) == CASEMATE_INVALID && casemate_step(checker, NULL) == CASEMATE_INVALID);
    CHECK(casemate_step(checker, &step) == CASEMATE_INVALID && casemate_verdict(NULL) == CASEMATE_INVALID);
    CHECK(casemate_memory(NULL, NULL) == 0 && casemate_memory(checker, NULL) == 0);
    CHECK(casemate_tlbi(checker, 0, 156, 0) == CASEMATE_INVALID && casemate_verdict(checker) == CASEMATE_OK);
    /* Without callbacks, a violation is a result alone. */
    CHECK(casemate_unlock(checker, 0, 8) == CASEMATE_VIOLATION && casemate_lock(checker, 0, 8) == CASEMATE_STOPPED);
    struct casemate_options bad[] = {
        {3, 0, 0, 0, 0, 0, 0}, {0, 16, 0, 0, 0, 0, 0}, {0, 0, 3, 0, 0, 0, 0},
        {0, 0, 0, 1u << 31, 0, 0, 0}, {0, 0, 0, 1, 1, 0, 0}, {0, 0, 0, 0, 0, 1, 0},
    };
    for (size_t at = 0; at < sizeof bad / sizeof *bad; ++at)
        CHECK(casemate_initialise(block, bytes, &bad[at], NULL) == NULL);
    /* Rules are switched one by one. */
    options.rules = CASEMATE_ARCHITECTURE;
    options.rules_on = CASEMATE_RULE_MEM_SET_PAGE;
    checker = casemate_initialise(block, bytes, &options, NULL);
    CHECK(casemate_init(checker, 0, 0x1000, 0x1000) == CASEMATE_OK);
    CHECK(casemate_set(checker, 0, 0x1000, 8, 0) == CASEMATE_VIOLATION);
    options.rules_on = 0;
    checker = casemate_initialise(block, bytes, &options, NULL);
    CHECK(casemate_init(checker, 0, 0x1000, 0x1000) == CASEMATE_OK);
    CHECK(casemate_set(checker, 0, 0x1000, 8, 0xff) == CASEMATE_OK);
    CHECK(casemate_read(checker, 0, 0x1000, UINT64_MAX) == CASEMATE_OK);
    CHECK(casemate_atomic(checker, 0, CASEMATE_ACQ_REL, 0x1000, 1, UINT64_MAX) == CASEMATE_OK);
    CHECK(casemate_atomic(checker, 0, CASEMATE_PAGE, 0x1000, 1, 1) == CASEMATE_INVALID);
    CHECK(casemate_free(checker, 0, 0x1000, 0x1000) == CASEMATE_OK);
    CHECK(casemate_trylock(checker, 0, 8) == CASEMATE_OK && casemate_trylock(checker, 0, 8) == CASEMATE_OK);
}

/* With each size of block: either no checker, or all of the trees, or an orderly end. */
static void shortages(size_t most)
{
    int none = 0, some = 0, all = 0;
    for (size_t bytes = 0; bytes <= most; bytes += bytes < 40000 ? 997 : 40009) {
        void *block = malloc(bytes + 1);
        struct casemate_checker *checker = start(block, bytes, 0);
        if (!checker) {
            CHECK(all + some == 0);
            ++none;
            free(block);
            continue;
        }
        int result = CASEMATE_OK;
        for (uint64_t base = 1; base <= 40 && result == CASEMATE_OK; ++base) {
            uint64_t first = base * 0x10000;
            result = casemate_init(checker, 0, first, 0x4000);
            for (int level = 0; level < 4 && result == CASEMATE_OK; ++level)
                result = casemate_write(checker, 0, CASEMATE_PLAIN, first + 0x1000 * level,
                                        (first + 0x1000 * (level + 1)) | (level < 3 ? 3 : 0x7c3));
            if (result == CASEMATE_OK)
                result = casemate_hint(checker, 0, CASEMATE_SET_ROOT_LOCK, first, first + 8);
            if (result == CASEMATE_OK)
                result = casemate_sysreg(checker, 0, CASEMATE_VTTBR_EL2, first | base << 48);
            if (result == CASEMATE_OK)
                result = round_of(checker, first, CASEMATE_TLBI_ALLE1 + CASEMATE_TLBI_IS);
        }
        struct casemate_memory memory;
        CHECK(casemate_memory(checker, &memory) == 1);
        CHECK(memory.used_bytes <= memory.peak_bytes && memory.peak_bytes <= memory.bytes && memory.bytes <= bytes);
        if (result == CASEMATE_OK) {
            CHECK(casemate_verdict(checker) == CASEMATE_OK && heard.lines == 0);
            ++all;
        } else {
            /* round_of joins CASEMATE_UNKNOWN and the CASEMATE_STOPPED of what follows. */
            CHECK((result & CASEMATE_UNKNOWN) && casemate_verdict(checker) == CASEMATE_UNKNOWN);
            CHECK(strstr(heard.line, "out of memory") && heard.lines == 1 && heard.aborts == 1);
            CHECK(casemate_lock(checker, 0, 1) == CASEMATE_STOPPED);
            ++some;
        }
        free(block);
    }
    CHECK(none > 5 && some > 5 && all > 5);
}

int main(void)
{
    size_t bytes = 1 << 20;
    char *block = malloc(bytes);
    violations(block, bytes);
    unknowns(block, bytes);
    refusals(block, bytes);
    /* The abort callback need not return. */
    struct casemate_checker *checker = start(block, bytes, 0);
    if (setjmp(heard.back) == 0) {
        heard.jumps = 1;
        casemate_unlock(checker, 0, 0x5000);
        CHECK(0);
    }
    CHECK(casemate_verdict(checker) == CASEMATE_VIOLATION);
    free(block);
    shortages(2000000);
    puts("fine");
    return 0;
}
