/* Jumps out of many calls at once. */
#include <setjmp.h>
#include <stdio.h>

static jmp_buf back;

__attribute__((noinline)) int nest(int depth, int jump) {
    if (depth == 0) {
        if (jump) longjmp(back, 1);
        return 1;
    }
    int inner = nest(depth - 1, jump) + 1;
    __asm__ volatile("" : "+r"(inner));
    return inner;
}

__attribute__((noinline)) int once(int round) {
    if (setjmp(back) != 0) return 0;
    return nest(round % 40, round % 3 == 0);
}

int main(void) {
    long sum = 0;
    for (int round = 0; round < 3000; round++) sum += once(round);
    printf("%ld\n", sum);
    return 0;
}
