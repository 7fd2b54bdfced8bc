/* Calls in tail position, also of each other in turn. */
#include <stdio.h>

__attribute__((noinline)) int odd(int n);

__attribute__((noinline)) int even(int n) {
    if (n == 0) return 1;
    __attribute__((musttail)) return odd(n - 1);
}

__attribute__((noinline)) int odd(int n) {
    if (n == 0) return 0;
    __attribute__((musttail)) return even(n - 1);
}

__attribute__((noinline)) int first(int n) {
    if (n % 5 == 0) {
        __attribute__((musttail)) return even(n);
    }
    return odd(n) + 2;
}

int main(void) {
    long sum = 0;
    for (int round = 0; round < 2000; round++) sum += first(round % 30);
    printf("%ld\n", sum);
    return 0;
}
