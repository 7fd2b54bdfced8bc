/* Many threads allocate at the same places at the same time: see tests/wrappers.rs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 8 };

static pthread_barrier_t start;

#define PLACE(n) static __attribute__((noinline)) void place_##n(void) { *(volatile char *)malloc(5000 + n) = 1; }
#define EIGHT(P, n) P(n##0) P(n##1) P(n##2) P(n##3) P(n##4) P(n##5) P(n##6) P(n##7)
#define ALL(P) EIGHT(P, 1) EIGHT(P, 2) EIGHT(P, 3) EIGHT(P, 4) EIGHT(P, 5) EIGHT(P, 6) EIGHT(P, 7) EIGHT(P, 8)
ALL(PLACE)

#define NAME(n) place_##n,
static void (*const places[])(void) = {ALL(NAME)};

static void *work(void *argument) {
    pthread_barrier_wait(&start);
    for (unsigned n = 0; n < sizeof places / sizeof *places; n++)
        places[n]();
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, 0, THREADS);
    for (int n = 0; n < THREADS; n++)
        pthread_create(&threads[n], 0, work, 0);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], 0);
    puts("done");
    return 0;
}
