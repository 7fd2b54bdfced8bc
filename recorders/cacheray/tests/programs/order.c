/* Values that are passed on in all ways that threads have. Each hand-over is: the giver writes the place with its plain
 * stores, lets the taker go on, who writes it next. So the writes to `passed` are in the order of their values, and
 * anything else in the trace is a record out of order. */
#define _GNU_SOURCE
#include "cacheray.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <threads.h>
#include <unistd.h>

extern void AnnotateIgnoreReadsBegin(const char *, int), AnnotateIgnoreReadsEnd(const char *, int);

#define PLACES 8
static long passed[PLACES], others[64][16];
static long next, rounds;
static int count;

/* What each turn does: plain accesses to its own place, and one that continues the sequence. */
static void turn(int own)
{
    for (int n = 0; n < 16; n++)
        others[own][n] += n;
    passed[next % PLACES] = next;
    next++;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spinlock;
static mtx_t c11;
static sem_t semaphores[16];
static int pipes[16][2], events[16];
static atomic_int whose;
static pthread_barrier_t barrier;

static void by_mutex(int own) { pthread_mutex_lock(&mutex); turn(own); pthread_mutex_unlock(&mutex); }
static void by_rwlock(int own) { pthread_rwlock_wrlock(&rwlock); turn(own); pthread_rwlock_unlock(&rwlock); }
static void by_spinlock(int own) { pthread_spin_lock(&spinlock); turn(own); pthread_spin_unlock(&spinlock); }
static void by_c11(int own) { mtx_lock(&c11); turn(own); mtx_unlock(&c11); }

static void by_condition(int own)
{
    static int place;
    pthread_mutex_lock(&mutex);
    while (place % count != own)
        pthread_cond_wait(&condition, &mutex);
    turn(own);
    place++;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}

static void by_semaphore(int own)
{
    sem_wait(&semaphores[own]);
    turn(own);
    sem_post(&semaphores[(own + 1) % count]);
}

static void by_pipe(int own)
{
    char byte;
    if (read(pipes[own][0], &byte, 1) != 1)
        abort();
    turn(own);
    if (write(pipes[(own + 1) % count][1], "x", 1) != 1)
        abort();
}

static void by_event(int own)
{
    eventfd_t value;
    if (eventfd_read(events[own], &value))
        abort();
    turn(own);
    eventfd_write(events[(own + 1) % count], 1);
}

static void by_atomic(int own)
{
    while (atomic_load_explicit(&whose, memory_order_acquire) != own)
        sched_yield();
    turn(own);
    atomic_store_explicit(&whose, (own + 1) % count, memory_order_release);
}

static void by_exchange(int own)
{
    static atomic_flag flag = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set_explicit(&flag, memory_order_acquire))
        sched_yield();
    turn(own);
    atomic_flag_clear_explicit(&flag, memory_order_release);
}

#ifdef MY_LOCK
/* Those of a library. */
extern void my_lock(void), my_unlock(void);
static void by_library(int own) { my_lock(); turn(own); my_unlock(); }
#endif

/* The unlock is in code that is not recorded. */
static void by_ignored(int own)
{
    pthread_mutex_lock(&mutex);
    turn(own);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    pthread_mutex_unlock(&mutex);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

/* One thread at a time has its turn between two barriers. */
static void by_barrier(int own)
{
    for (int n = 0; n < count; n++) {
        if (n == own)
            turn(own);
        pthread_barrier_wait(&barrier);
    }
}

static const struct way { const char *name; void (*pass)(int); } ways[] = {
    {"mutex", by_mutex}, {"rwlock", by_rwlock}, {"spinlock", by_spinlock}, {"c11", by_c11},
    {"condition", by_condition}, {"semaphore", by_semaphore}, {"pipe", by_pipe}, {"event", by_event},
    {"ignored", by_ignored}, {"atomic", by_atomic}, {"exchange", by_exchange}, {"barrier", by_barrier},
#ifdef MY_LOCK
    {"library", by_library},
#endif
};
static const struct way *way;

static void *passes(void *own)
{
    for (long n = 0; n < rounds; n++) {
        way->pass((int)(long)own);
        /* Others get their turn, however many processors there are. */
        if (n % 4 == 0)
            sched_yield();
    }
    return 0;
}

/* Threads that are created by each other, and joined. */
static void *creates(void *left)
{
    pthread_t child;
    turn(0);
    if ((long)left > 0) {
        pthread_create(&child, 0, creates, (void *)((long)left - 1));
        pthread_join(child, 0);
        turn(0);
    }
    return 0;
}

/* What is done once, by whoever comes first. */
static pthread_once_t onces[1000];
static _Thread_local int at;
static void begin(void) { turn(at % 16); }
static void *once(void *own)
{
    for (int n = 0; n < 1000; n++) {
        at = (int)(long)own;
        pthread_once(&onces[n], begin);
        /* All see what was done: the value that follows is this thread's only if it was the first. */
        if (passed[n % PLACES] < n)
            abort();
    }
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t threads[16];
    if (argc < 4)
        return 2;
    count = atoi(argv[2]);
    rounds = atol(argv[3]);
    __calloc_recorded(PLACES, sizeof passed[0], "passed", passed);
    pthread_spin_init(&spinlock, 0);
    mtx_init(&c11, mtx_plain);
    pthread_barrier_init(&barrier, 0, count);
    for (int n = 0; n < count; n++) {
        sem_init(&semaphores[n], 0, n == 0);
        events[n] = eventfd(n == 0, 0);
        if (pipe(pipes[n]))
            return 2;
    }
    if (write(pipes[0][1], "x", 1) != 1)
        return 2;
    void *(*run)(void *) = !strcmp(argv[1], "once") ? once : passes;
    if (!strcmp(argv[1], "create")) {
        creates((void *)rounds);
        printf("%ld\n", next);
        return 0;
    }
    for (unsigned n = 0; n < sizeof ways / sizeof *ways; n++)
        if (!strcmp(argv[1], ways[n].name))
            way = &ways[n];
    if (!way && run == passes)
        return 2;
    for (long n = 0; n < count; n++)
        pthread_create(&threads[n], 0, run, (void *)n);
    for (int n = 0; n < count; n++)
        pthread_join(threads[n], 0);
    printf("%ld\n", next);
    return 0;
}
