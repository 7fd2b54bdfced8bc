/*
 * Steps a checker of page tables through a file of steps, and prints the seconds of processor time that the steps after
 * the set-up took, and the KiB that the process grew by.
 *
 * linked FILE FROM RULES: FILE is an array of struct step, FROM the number of the first step that is timed, RULES the
 * set of rules. Without PEER the checker is the library of recorders/casemate; with it, the C library of
 * rems-project/casemate, by its public interface, with the options that its own checker of logs uses, and RULES is
 * ignored.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "casemate.h"

/* The fields and the numbers of struct casemate_step of recorders/casemate. */
struct step {
    uint32_t kind, thread, what, reserved;
    uint64_t address, value, extra;
};

/* The number of the step that is being checked. */
static size_t now;

static void stop(const char *message)
{
    fprintf(stderr, "step %zu: %s\n", now, message);
    exit(1);
}

#ifdef PEER

enum kind { WRITE = 1, READ, INIT, FREE, SET, BARRIER, TLBI, SYSREG, HINT, LOCK, UNLOCK, TRYLOCK };

static const enum dxb_kind dsbs[] = {DxB_ish, DxB_ish, DxB_ishst, DxB_nsh};
static const enum ghost_sysreg_kind sysregs[] = {SYSREG_VTTBR,    SYSREG_TTBR_EL2, SYSREG_VTCR_EL2,
                                                 SYSREG_HCR_EL2,  SYSREG_TCR_EL2,  SYSREG_SCTLR_EL2,
                                                 SYSREG_MAIR_EL2};
static const enum ghost_hint_kind hints[] = {GHOST_HINT_SET_ROOT_LOCK, GHOST_HINT_SET_OWNER_ROOT,
                                             GHOST_HINT_RELEASE_TABLE, GHOST_HINT_SET_PTE_THREAD_OWNER};
static uint64_t thread;

uint64_t casemate_cpu_id(void)
{
    return thread;
}

/* What a register is before it is written, as in the reference's checker of logs. */
static uint64_t initial(enum ghost_sysreg_kind sysreg)
{
    switch (sysreg) {
    case SYSREG_VTCR_EL2:
    case SYSREG_TCR_EL2:
        return 16;
    case SYSREG_HCR_EL2:
    case SYSREG_SCTLR_EL2:
        return 1;
    default:
        return 0;
    }
}

static void start(uint32_t rules)
{
    struct ghost_driver driver = {.abort = stop, .read_sysreg = initial};
    struct casemate_options options = CASEMATE_DEFAULT_OPTS;
    (void)rules;
    options.enable_checking = true;
    options.check_opts.promote_TLBI_by_id = true;
    /* Pages of it that are never touched take no memory. */
    size_t bytes = (size_t)4 << 30;
    void *block = malloc(bytes);
    initialise_ghost_driver(&driver);
    if (!block || initialise_casemate_model(&options, 0, 0, block, bytes))
        stop("no memory");
}

static void tlbi(uint32_t what, uint64_t value)
{
    struct src_loc place = {__FILE__, __func__, __LINE__};
    switch (what) {
    case 0:
        __casemate_model_step_tlbi(thread, place, TLBI_vmalls12e1);
        break;
    case 1:
        __casemate_model_step_tlbi(thread, place, TLBI_vmalls12e1is);
        break;
    case 7:
        __casemate_model_step_tlbi(thread, place, TLBI_alle1is);
        break;
    case 13:
        __casemate_model_step_tlbi(thread, place, TLBI_alle2is);
        break;
    case 18:
        __casemate_model_step_tlbi(thread, place, TLBI_vmalle1);
        break;
    case 19:
        __casemate_model_step_tlbi(thread, place, TLBI_vmalle1is);
        break;
    case 25:
        __casemate_model_step_tlbi_reg(thread, place, TLBI_ipas2e1is, value);
        break;
    case 37:
        __casemate_model_step_tlbi_reg(thread, place, TLBI_vae2is, value);
        break;
    case 43:
        __casemate_model_step_tlbi_reg(thread, place, TLBI_vale2is, value);
        break;
    default:
        stop("the library does not know the TLBI");
    }
}

static void take(const struct step *step)
{
    struct src_loc place = {__FILE__, __func__, __LINE__};
    thread = step->thread;
    switch ((enum kind)step->kind) {
    case WRITE:
        __casemate_model_step_write(thread, place, step->what ? WMO_release : WMO_plain, step->address, step->value);
        break;
    case READ:
        __casemate_model_step_read(thread, place, step->address, step->value);
        break;
    case INIT:
        __casemate_model_step_init(thread, place, step->address, step->value);
        break;
    case FREE:
        __casemate_model_step_free(thread, place, step->address, step->value);
        break;
    case SET:
        __casemate_model_step_memset(thread, place, step->address, step->extra, step->value);
        break;
    case BARRIER:
        if (step->what == 0)
            __casemate_model_step_isb(thread, place);
        else if (step->what < sizeof dsbs / sizeof *dsbs)
            __casemate_model_step_dsb(thread, place, dsbs[step->what]);
        else
            stop("the library does not know the barrier");
        break;
    case TLBI:
        tlbi(step->what, step->value);
        break;
    case SYSREG:
        if (step->what >= sizeof sysregs / sizeof *sysregs)
            stop("the library does not know the register");
        __casemate_model_step_msr(thread, place, sysregs[step->what], step->value);
        break;
    case HINT:
        __casemate_model_step_hint(thread, place, hints[step->what & 3], step->address, step->value);
        break;
    case LOCK:
        __casemate_model_step_lock(thread, place, step->address);
        break;
    case UNLOCK:
        __casemate_model_step_unlock(thread, place, step->address);
        break;
    case TRYLOCK:
        __casemate_model_step_trylock(thread, place, step->address);
        break;
    default:
        stop("the library does not know the step");
    }
}

#else

_Static_assert(sizeof(struct step) == sizeof(struct casemate_step), "struct step is struct casemate_step");

static struct casemate_checker *checker;

static void print_line(void *context, const char *line, size_t length)
{
    (void)context;
    (void)length;
    stop(line);
}

static void start(uint32_t rules)
{
    struct casemate_callbacks callbacks = {.log = print_line};
    struct casemate_options options = {.rules = rules};
    /* Pages of it that are never touched take no memory. */
    size_t bytes = (size_t)4 << 30;
    void *block = malloc(bytes);
    checker = block ? casemate_initialise(block, bytes, &options, &callbacks) : NULL;
    if (!checker)
        stop("no checker");
}

static void take(const struct step *step)
{
    struct casemate_step copy = {step->kind,    step->thread, step->what, step->reserved,
                                 step->address, step->value,  step->extra};
    if (casemate_step(checker, &copy) != CASEMATE_OK)
        stop("not accepted");
}

#endif

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Resident memory. Neither library gives any back. */
static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2)
        stop("no /proc/self/statm");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 4 ? fopen(argv[1], "rb") : NULL;
    if (!file || fseek(file, 0, SEEK_END)) {
        fprintf(stderr, "linked FILE FROM RULES\n");
        return 2;
    }
    size_t count = (size_t)ftell(file) / sizeof(struct step), from = strtoull(argv[2], NULL, 10);
    struct step *steps = malloc(count * sizeof *steps + 1);
    rewind(file);
    if (!steps || fread(steps, sizeof *steps, count, file) != count) {
        perror(argv[1]);
        return 2;
    }
    fclose(file);
    long before = resident_kib();
    start((uint32_t)strtoul(argv[3], NULL, 10));
    for (; now < count && now < from; ++now)
        take(&steps[now]);
    double begin = seconds();
    for (; now < count; ++now)
        take(&steps[now]);
    printf("%.9f %ld\n", seconds() - begin, resident_kib() - before);
    free(steps);
    return 0;
}
