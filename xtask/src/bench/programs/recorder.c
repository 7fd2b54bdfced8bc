/* THREADS MEGARECORDS: so many writes, divided over threads; prints the process's CPU seconds for them, and seconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct { volatile long places[512]; } parts[16];
static long each;

static void *writes(void *number)
{
    long n = (long)number;
    for (long i = 0; i < each; i++)
        parts[n].places[i & 511] = i;
    return 0;
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > 16)
        return 2;
    each = (long)(argc > 2 ? atof(argv[2]) * 1e6 : 1e6) / threads;
    pthread_t others[16];
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID), began = seconds(CLOCK_MONOTONIC);
    for (long i = 1; i < threads; i++)
        pthread_create(&others[i], 0, writes, (void *)i);
    writes(0);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], 0);
    printf("%.6f %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - start, seconds(CLOCK_MONOTONIC) - began);
    return 0;
}
