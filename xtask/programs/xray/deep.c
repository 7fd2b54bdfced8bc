/* A recursion of 100,000 calls. */
#include <stdio.h>

__attribute__((noinline)) long deep(long n) {
    if (n == 0) return 0;
    long inner = deep(n - 1) + 1;
    __asm__ volatile("" : "+r"(inner));
    return inner;
}

int main(void) {
    printf("%ld\n", deep(100000) + deep(10));
    return 0;
}
