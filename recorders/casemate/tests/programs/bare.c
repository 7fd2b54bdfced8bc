/*
 * Replays steps through the checker without any library of C, on the kernel alone: what a hypervisor has. It prints what
 * replay.c prints.
 *
 * CASES is a file: options, the number of steps and the steps of each case, all with 8 bytes of alignment.
 */
#include "casemate.h"

__asm__(".section .rodata\n.balign 16\n.global cases_begin\ncases_begin:\n.incbin \"" CASES "\"\n"
        ".global cases_end\ncases_end:\n.text\n.global _start\n_start:\n"
#ifdef __aarch64__
        "mov x29, #0\nbl all_cases\nmov x0, #0\nmov x8, #93\nsvc #0\n"
#else
        "xor %ebp, %ebp\nand $-16, %rsp\ncall all_cases\nxor %edi, %edi\nmov $60, %eax\nsyscall\n"
#endif
);

extern const unsigned char cases_begin[], cases_end[];

static char text[1 << 16];
static size_t length;

static void flush(void)
{
#ifdef __aarch64__
    register uint64_t number __asm__("x8") = 64, result __asm__("x0") = 1, from __asm__("x1") = (uint64_t)text,
                             bytes __asm__("x2") = length;
    __asm__ volatile("svc #0" : "+r"(result) : "r"(number), "r"(from), "r"(bytes) : "memory");
#else
    uint64_t result = 1;
    __asm__ volatile("syscall" : "+a"(result) : "D"(1), "S"(text), "d"(length) : "rcx", "r11", "memory");
#endif
    length = 0;
}

static void put(const char *string, char end)
{
    if (length + 256 > sizeof text)
        flush();
    while (*string)
        text[length++] = *string++;
    text[length++] = end;
}

static void number(uint64_t value, uint64_t base, char end)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    put(digits + at, end);
}

static uint64_t block[4 << 20];

static void replay(const struct casemate_options *options, const struct casemate_step *steps, uint64_t count)
{
    struct casemate_checker *checker = casemate_initialise(block, sizeof block, options, NULL);
    for (uint64_t at = 0; at < count; ++at) {
        uint64_t result = (uint64_t)casemate_step(checker, &steps[at]);
        struct casemate_report report;
        size_t each = 0;
        if (result == CASEMATE_STOPPED) {
            number(at, 10, ' ');
            put("result", ' ');
            number(result, 10, '\n');
            break;
        }
        for (; casemate_report(checker, each, &report); ++each) {
            number(at, 10, ' ');
            number(result, 10, ' ');
            put(report.code, ' ');
            number(report.has_location, 10, ' ');
            number(report.location, 16, ' ');
            number(report.more, 10, ' ');
            number(report.old_value, 16, ' ');
            number(report.new_value, 16, ' ');
            number(report.deciding_bits, 16, '|');
            put(report.message, '\n');
        }
        if (result == CASEMATE_VIOLATION && !(options->flags & CASEMATE_GO_ON))
            break;
    }
    put("verdict", ' ');
    number((uint64_t)casemate_verdict(checker), 10, '\n');
}

void all_cases(void)
{
    const unsigned char *at = cases_begin;
    while (at < cases_end) {
        const struct casemate_options *options = (const void *)at;
        const uint64_t *count = (const void *)(options + 1);
        const struct casemate_step *steps = (const void *)(count + 1);
        replay(options, steps, *count);
        at = (const unsigned char *)(steps + *count);
    }
    flush();
}
