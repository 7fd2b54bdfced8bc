/*
 * casemate.h: checks the page tables of a hypervisor for break-before-make while it runs.
 *
 * Arm requires that a live page-table entry is made invalid, and dropped from every TLB, before it gets certain other
 * values. This library follows the steps of a program that matter for that rule (writes to tables, barriers, TLB
 * maintenance, system registers, locks) and reports the step that breaks it, or one of the related rules. It is the
 * engine of the command `anytrace casemate check`: the same steps get the same verdict.
 *
 * How to use it: give a block of memory to casemate_initialise, then describe each step, in the order in which the
 * processors made them, by casemate_step or by one of the functions below it.
 *
 *  - Memory: the block, and nothing else. Count 7 KiB for each page of tables; locks, roots and entries that are not
 *    clean take little. If it does not suffice, the verdict is CASEMATE_UNKNOWN, and further steps are refused.
 *  - The library needs memcpy, memmove, memset and memcmp, and nothing else; the archive contains slow ones for
 *    programs that have none. It uses no floating point and no vector registers (target x86_64-unknown-none or
 *    aarch64-unknown-none-softfloat), never panics, and takes no locks of its own.
 *  - Stack: at most 8 KiB below each call.
 *  - One call at a time: the steps of all processors need an order anyway, so the caller holds a lock around them. A
 *    call that begins while another one is at work, also one from a callback, does nothing and returns CASEMATE_BUSY.
 */
#ifndef ANYTRACE_CASEMATE_H
#define ANYTRACE_CASEMATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a step was, and what all of them were: the verdict. */
enum casemate_result {
    /* No rule is broken. */
    CASEMATE_OK = 0,
    /* A rule is broken. Unless CASEMATE_GO_ON is set, checking has stopped. */
    CASEMATE_VIOLATION = 1,
    /* Not known: something happened that is not modelled, or memory ran out. */
    CASEMATE_UNKNOWN = 2,
    /* Refused: checking stopped at an earlier step. */
    CASEMATE_STOPPED = 3,
    /* Refused: a number of the step has no meaning, or there is no checker. */
    CASEMATE_INVALID = 4,
    /* Refused: another call is at work. */
    CASEMATE_BUSY = 5
};

/* Sets of rules. */
enum casemate_rules {
    /* The rules of the architecture. */
    CASEMATE_ARCHITECTURE = 0,
    /* The same, but a live entry may not change in place at all. */
    CASEMATE_STRICT = 1,
    /* The behavior of the reference checker, version 3.0.2. */
    CASEMATE_COMPAT = 2
};

/* Flags of struct casemate_options. */
enum casemate_flag {
    /* Writes need no lock, and barriers and TLBIs count for all entries. */
    CASEMATE_RACY = 1,
    /* Accesses to memory that was not initialized are ignored. */
    CASEMATE_IGNORE_UNINITIALISED = 2,
    /* Registers have no value until they are written. */
    CASEMATE_NO_SYSREG = 4,
    /* Continue after a violation, as if the step had been correct. */
    CASEMATE_GO_ON = 8
};

/* Bits of rules_on and rules_off: the rules in which the sets differ, as `anytrace casemate rules` describes them. */
enum casemate_rule {
    CASEMATE_RULE_AF_INVERTED = 1 << 0,
    CASEMATE_RULE_IDENTICAL_TABLE_REWRITE = 1 << 1,
    CASEMATE_RULE_MEM_SET_WORD = 1 << 2,
    CASEMATE_RULE_MEM_SET_PAGE = 1 << 3,
    CASEMATE_RULE_STAGE_BLIND_IDS = 1 << 4,
    CASEMATE_RULE_BY_ID_PROMOTED = 1 << 5,
    CASEMATE_RULE_IDS_ASID_ZERO = 1 << 6,
    CASEMATE_RULE_NO_VTTBR_IS_SLOT_0 = 1 << 7,
    CASEMATE_RULE_TTL_IGNORED = 1 << 8,
    CASEMATE_RULE_LAST_LEVEL_IS_3 = 1 << 9,
    CASEMATE_RULE_CONCATENATED_UNSUPPORTED = 1 << 10,
    CASEMATE_RULE_SET_OWNER_ROOT_ALIGNED_EMPTY = 1 << 11,
    CASEMATE_RULE_REACHABILITY_ASSERT = 1 << 12,
    CASEMATE_RULE_READS_IGNORED = 1 << 13,
    CASEMATE_RULE_TABLE_LIMITS = 1 << 14,
    CASEMATE_RULE_PAGE_LIMIT = 1 << 15,
    CASEMATE_RULE_UNREAD_BASE_ABORTS = 1 << 16,
    CASEMATE_RULE_ACTING_GEOMETRY = 1 << 17,
    CASEMATE_RULE_NSH_FIRES = 1 << 18,
    CASEMATE_RULE_LOCAL_TLBI_FIRES = 1 << 19,
    CASEMATE_RULE_THREAD_OWNED_STOPS_TABLE = 1 << 20,
    CASEMATE_RULE_ANY_ATTRIBUTE = 1 << 21,
    CASEMATE_RULE_STALE_IGNORED = 1 << 22,
    CASEMATE_RULE_GRANULE_UNSUPPORTED = 1 << 23,
    CASEMATE_RULE_IDS_ARE_WIDE = 1 << 24,
    CASEMATE_RULE_OTHER_TREES_UNKNOWN = 1 << 25,
    CASEMATE_RULE_REUSE_IGNORED = 1 << 26,
    CASEMATE_RULE_CONTIGUOUS_IGNORED = 1 << 27
};

struct casemate_options {
    uint32_t rules;     /* enum casemate_rules */
    uint32_t flags;     /* enum casemate_flag */
    uint32_t bbm;       /* The level of FEAT_BBM: 0, 1 or 2. */
    uint32_t rules_on;  /* enum casemate_rule */
    uint32_t rules_off; /* enum casemate_rule */
    uint32_t reserved;  /* 0 */
    /* Decides the places of addresses in hash tables. A random number keeps guests from choosing addresses that make
     * steps slow; 0 is a fixed one. */
    uint64_t seed;
};

/* Each of them may be null. They are called with the library at work: they must not call it. */
struct casemate_callbacks {
    /* Given to each of them. */
    void *context;
    /* Takes a line of text: each violation and warning. The line ends with a zero that length does not count. */
    void (*log)(void *context, const char *line, size_t length);
    /* Called when checking stops, at a violation or for want of memory, with the last line. The library is no longer at
     * work then, and the function need not return. */
    void (*abort)(void *context, const char *line);
    /* Writes the name of an address, of at most size bytes, for the lines; returns its length, or 0 for no name. */
    size_t (*symbol)(void *context, uint64_t address, char *name, size_t size);
};

/* A checker; at the beginning of its block of memory. */
struct casemate_checker;

/*
 * Makes a checker in a block of memory, which it uses until the caller takes the block back. options and callbacks may
 * be null: the rules of the architecture, and nothing is called. Returns null if the block is too small (at least
 * 32 KiB; a megabyte suffices for about 150 pages), or if an option has no meaning.
 */
struct casemate_checker *casemate_initialise(void *memory, size_t bytes, const struct casemate_options *options,
                                             const struct casemate_callbacks *callbacks);

/* Kinds of step, and what their fields are; other fields are ignored. */
enum casemate_kind {
    CASEMATE_MEM_WRITE = 1,
    CASEMATE_MEM_READ = 2,
    CASEMATE_MEM_INIT = 3,
    CASEMATE_MEM_FREE = 4,
    CASEMATE_MEM_SET = 5,
    CASEMATE_BARRIER = 6,
    CASEMATE_TLBI = 7,
    CASEMATE_SYSREG_WRITE = 8,
    CASEMATE_HINT = 9,
    CASEMATE_LOCK = 10,
    CASEMATE_UNLOCK = 11,
    CASEMATE_TRYLOCK = 12,
    CASEMATE_MEM_ATOMIC = 13
};

/* Memory orders of CASEMATE_MEM_WRITE (the first three) and CASEMATE_MEM_ATOMIC (all but CASEMATE_PAGE). */
enum casemate_order {
    CASEMATE_PLAIN = 0,
    CASEMATE_RELEASE = 1,
    CASEMATE_PAGE = 2,
    CASEMATE_ACQUIRE = 3,
    CASEMATE_ACQ_REL = 4
};

/* Barriers. */
enum casemate_barrier {
    CASEMATE_ISB = 0,
    CASEMATE_DSB_ISH = 1,
    CASEMATE_DSB_ISHST = 2,
    CASEMATE_DSB_NSH = 3,
    CASEMATE_DSB_SY = 4,
    CASEMATE_DSB_OSH = 5,
    CASEMATE_DSB_OSHST = 6,
    CASEMATE_DSB_ST = 7,
    CASEMATE_DSB_NSHST = 8,
    CASEMATE_DSB_ISHLD = 9,
    CASEMATE_DSB_NSHLD = 10,
    CASEMATE_DSB_OSHLD = 11,
    CASEMATE_DSB_LD = 12,
    CASEMATE_DSB_ISHNXS = 13,
    CASEMATE_DSB_NSHNXS = 14,
    CASEMATE_DSB_OSHNXS = 15,
    CASEMATE_DSB_SYNXS = 16
};

/* Operations of TLB maintenance, to which a form is added: CASEMATE_TLBI_VAE2 + CASEMATE_TLBI_IS. */
enum casemate_tlbi {
    CASEMATE_TLBI_VMALLS12E1 = 0,
    CASEMATE_TLBI_ALLE1 = 6,
    CASEMATE_TLBI_ALLE2 = 12,
    CASEMATE_TLBI_VMALLE1 = 18,
    CASEMATE_TLBI_IPAS2E1 = 24,
    CASEMATE_TLBI_IPAS2LE1 = 30,
    CASEMATE_TLBI_VAE2 = 36,
    CASEMATE_TLBI_VALE2 = 42,
    CASEMATE_TLBI_VAE1 = 48,
    CASEMATE_TLBI_VALE1 = 54,
    CASEMATE_TLBI_VAAE1 = 60,
    CASEMATE_TLBI_VAALE1 = 66,
    CASEMATE_TLBI_ASIDE1 = 72,
    CASEMATE_TLBI_RIPAS2E1 = 78,
    CASEMATE_TLBI_RIPAS2LE1 = 84,
    CASEMATE_TLBI_RVAE2 = 90,
    CASEMATE_TLBI_RVALE2 = 96,
    CASEMATE_TLBI_RVAE1 = 102,
    CASEMATE_TLBI_RVALE1 = 108,
    CASEMATE_TLBI_RVAAE1 = 114,
    CASEMATE_TLBI_RVAALE1 = 120,
    CASEMATE_TLBI_ALLE3 = 126,
    CASEMATE_TLBI_VAE3 = 132,
    CASEMATE_TLBI_VALE3 = 138,
    CASEMATE_TLBI_RVAE3 = 144,
    CASEMATE_TLBI_RVALE3 = 150
};

enum casemate_tlbi_form {
    CASEMATE_TLBI_LOCAL = 0,
    CASEMATE_TLBI_IS = 1,
    CASEMATE_TLBI_OS = 2,
    CASEMATE_TLBI_NXS = 3,
    CASEMATE_TLBI_ISNXS = 4,
    CASEMATE_TLBI_OSNXS = 5
};

/* System registers. */
enum casemate_sysreg {
    CASEMATE_VTTBR_EL2 = 0,
    CASEMATE_TTBR0_EL2 = 1,
    CASEMATE_VTCR_EL2 = 2,
    CASEMATE_HCR_EL2 = 3,
    CASEMATE_TCR_EL2 = 4,
    CASEMATE_SCTLR_EL2 = 5,
    CASEMATE_MAIR_EL2 = 6,
    CASEMATE_TTBR1_EL2 = 7,
    CASEMATE_TTBR0_EL1 = 8,
    CASEMATE_TTBR1_EL1 = 9,
    CASEMATE_TCR_EL1 = 10,
    CASEMATE_SCTLR_EL1 = 11,
    CASEMATE_MAIR_EL1 = 12
};

/* Hints. */
enum casemate_hint {
    CASEMATE_SET_ROOT_LOCK = 0,
    CASEMATE_SET_OWNER_ROOT = 1,
    CASEMATE_RELEASE_TABLE = 2,
    CASEMATE_SET_PTE_THREAD_OWNER = 3
};

/* Instead of an operation or a register: one that is not above and may matter. The verdict becomes unknown. Give its name to
 * casemate_sysreg_name or casemate_tlbi_name instead: most registers do not matter. */
#define CASEMATE_OTHER UINT32_MAX

/*
 * kind                   what                    address           value      extra
 * CASEMATE_MEM_WRITE     enum casemate_order     of the word       written
 * CASEMATE_MEM_ATOMIC    enum casemate_order     of the word       written    read
 * CASEMATE_MEM_READ                              of the word       read
 * CASEMATE_MEM_INIT                              first             bytes
 * CASEMATE_MEM_FREE                              first             bytes
 * CASEMATE_MEM_SET                               first             bytes      the byte
 * CASEMATE_BARRIER       enum casemate_barrier
 * CASEMATE_TLBI          enum casemate_tlbi                        operand
 * CASEMATE_SYSREG_WRITE  enum casemate_sysreg                      written
 * CASEMATE_HINT          enum casemate_hint      location          value
 * CASEMATE_LOCK, CASEMATE_UNLOCK, CASEMATE_TRYLOCK   of the lock
 */
struct casemate_step {
    uint32_t kind;
    uint32_t thread; /* The processor. */
    uint32_t what;
    uint32_t reserved; /* 0 */
    uint64_t address;
    uint64_t value;
    uint64_t extra;
};

/* Checks a step. */
int casemate_step(struct casemate_checker *checker, const struct casemate_step *step);

/* Checks a step whose TLBI (0) or register (1) is given by its name in any case, as a trace has it. A name that the checker
 * does not know is taken as in a trace: registers that change no translation, such as vbar_el2, are accepted, and others
 * make the verdict unknown. A name has at most 23 letters, digits and `_`. */
int casemate_step_name(struct casemate_checker *checker, uint32_t thread, int is_register, const char *name,
                       uint64_t value);

/* The verdict of all steps until now: the first of them that was not CASEMATE_OK, or CASEMATE_OK. */
int casemate_verdict(struct casemate_checker *checker);

/* A rule that a step broke, or a warning about the step. */
struct casemate_report {
    char code[48];     /* casemate/bbm-valid-valid */
    char message[112]; /* The reference's text. */
    uint32_t is_error;
    uint32_t has_location;
    uint64_t location; /* The word, table or lock. */
    uint64_t more;     /* Further places where the step broke the same rule. */
    /* For a change of a live entry: its values, and the bits that decide that it needs a break. */
    uint64_t old_value;
    uint64_t new_value;
    uint64_t deciding_bits;
};

/* The report with a number from 0 on, of the last step; returns 1, or 0 if there is none. */
int casemate_report(struct casemate_checker *checker, size_t number, struct casemate_report *report);

/* How much of its block a checker uses. */
struct casemate_memory {
    uint64_t bytes;
    uint64_t used_bytes;
    uint64_t peak_bytes;
};

/* Returns 1, or 0 if there is no checker. */
int casemate_memory(struct casemate_checker *checker, struct casemate_memory *memory);

/* The steps as functions. */

static inline int casemate_take(struct casemate_checker *checker, uint32_t kind, uint32_t thread, uint32_t what,
                                uint64_t address, uint64_t value, uint64_t extra)
{
    struct casemate_step step = {kind, thread, what, 0, address, value, extra};
    return casemate_step(checker, &step);
}

static inline int casemate_write(struct casemate_checker *checker, uint32_t thread, enum casemate_order order,
                                 uint64_t address, uint64_t value)
{
    return casemate_take(checker, CASEMATE_MEM_WRITE, thread, order, address, value, 0);
}

static inline int casemate_atomic(struct casemate_checker *checker, uint32_t thread, enum casemate_order order,
                                  uint64_t address, uint64_t value, uint64_t read)
{
    return casemate_take(checker, CASEMATE_MEM_ATOMIC, thread, order, address, value, read);
}

static inline int casemate_read(struct casemate_checker *checker, uint32_t thread, uint64_t address, uint64_t value)
{
    return casemate_take(checker, CASEMATE_MEM_READ, thread, 0, address, value, 0);
}

static inline int casemate_init(struct casemate_checker *checker, uint32_t thread, uint64_t address, uint64_t bytes)
{
    return casemate_take(checker, CASEMATE_MEM_INIT, thread, 0, address, bytes, 0);
}

static inline int casemate_free(struct casemate_checker *checker, uint32_t thread, uint64_t address, uint64_t bytes)
{
    return casemate_take(checker, CASEMATE_MEM_FREE, thread, 0, address, bytes, 0);
}

static inline int casemate_set(struct casemate_checker *checker, uint32_t thread, uint64_t address, uint64_t bytes,
                               uint8_t byte)
{
    return casemate_take(checker, CASEMATE_MEM_SET, thread, 0, address, bytes, byte);
}

static inline int casemate_barrier(struct casemate_checker *checker, uint32_t thread, enum casemate_barrier barrier)
{
    return casemate_take(checker, CASEMATE_BARRIER, thread, barrier, 0, 0, 0);
}

static inline int casemate_tlbi(struct casemate_checker *checker, uint32_t thread, uint32_t operation,
                                uint64_t operand)
{
    return casemate_take(checker, CASEMATE_TLBI, thread, operation, 0, operand, 0);
}

static inline int casemate_sysreg(struct casemate_checker *checker, uint32_t thread, uint32_t sysreg, uint64_t value)
{
    return casemate_take(checker, CASEMATE_SYSREG_WRITE, thread, sysreg, 0, value, 0);
}

static inline int casemate_tlbi_name(struct casemate_checker *checker, uint32_t thread, const char *name,
                                     uint64_t operand)
{
    return casemate_step_name(checker, thread, 0, name, operand);
}

static inline int casemate_sysreg_name(struct casemate_checker *checker, uint32_t thread, const char *name,
                                       uint64_t value)
{
    return casemate_step_name(checker, thread, 1, name, value);
}

static inline int casemate_hint(struct casemate_checker *checker, uint32_t thread, enum casemate_hint hint,
                                uint64_t location, uint64_t value)
{
    return casemate_take(checker, CASEMATE_HINT, thread, hint, location, value, 0);
}

static inline int casemate_lock(struct casemate_checker *checker, uint32_t thread, uint64_t address)
{
    return casemate_take(checker, CASEMATE_LOCK, thread, 0, address, 0, 0);
}

static inline int casemate_unlock(struct casemate_checker *checker, uint32_t thread, uint64_t address)
{
    return casemate_take(checker, CASEMATE_UNLOCK, thread, 0, address, 0, 0);
}

static inline int casemate_trylock(struct casemate_checker *checker, uint32_t thread, uint64_t address)
{
    return casemate_take(checker, CASEMATE_TRYLOCK, thread, 0, address, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
