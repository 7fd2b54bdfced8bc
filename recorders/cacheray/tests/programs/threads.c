/* Threads that write to places of their own, so many times or for so long. */
#include "cacheray.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct { volatile long place; char apart[120]; } slots[16];
static volatile long turn, together;
static double seconds;
static volatile int stop;

static void *counts(void *number)
{
    long n = (long)number;
    for (int i = 0; i < 10000; i++)
        slots[n].place = i;
    return 0;
}

static void *hammers(void *number)
{
    long n = (long)number;
    while (!stop)
        for (int i = 0; i < 1000; i++)
            slots[n].place = i;
    return 0;
}

/* Waits where nothing is recorded. */
static sem_t gates[16];
static void *waits(void *number)
{
    long n = (long)number;
    sem_wait(&gates[n]);
    slots[n].place = n;
    return 0;
}

/* Writes, and lets nobody know. */
static void *idles(void *number)
{
    long n = (long)number;
    for (int i = 0; i < 100; i++)
        slots[n].place = i;
    for (;;)
        pause();
}

/* The process ends in one of several ways while threads have records. */
static int ends(const char *how)
{
    struct timespec time = {0, 300000000};
    nanosleep(&time, 0);
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "exec"))
        execl("/bin/true", "true", (char *)0);
    if (!strcmp(how, "term"))
        kill(getpid(), SIGTERM);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "fork")) {
        pid_t pid = fork();
        if (!pid)
            slots[15].place = 1;
        else
            waitpid(pid, 0, 0);
    }
    return 0;
}

static int ball;
static void *passes(void *number)
{
    int mine = (int)(long)number;
    for (int i = 0; i < 500; i++) {
        while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != mine)
            ;
        together = i * 2 + mine;
        __atomic_store_n(&ball, !mine, __ATOMIC_RELEASE);
    }
    return 0;
}

static void *allocates(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3000; i++) {
        long *made = CACHERAY_MALLOC(long, 3);
        made[1] = i;
        CACHERAY_FREE(made);
    }
    return 0;
}

/* Forks while another thread records without pause. */
static int forks(int times)
{
    pthread_t other;
    int wrong = 0;
    pthread_create(&other, 0, hammers, (void *)0);
    for (int i = 0; i < times; i++) {
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
            for (int k = 0; k < 100; k++)
                slots[1].place = k;
            _exit(0);
        }
        waitpid(pid, &status, 0);
        wrong += status != 0;
    }
    stop = 1;
    pthread_join(other, 0);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *mode = argv[1];
    int n = argc > 2 ? atoi(argv[2]) : 2;
    void *(*run)(void *) = !strcmp(mode, "counts") ? counts : !strcmp(mode, "hammers") ? hammers
                         : !strcmp(mode, "passes") ? passes : !strcmp(mode, "waits") ? waits
                         : !strcmp(mode, "idles") ? idles : allocates;
    pthread_t threads[16];
    __calloc_recorded(16, sizeof slots[0], "slots", (void *)slots);
    __calloc_recorded(1, sizeof together, "together", (void *)&together);
    if (!strcmp(mode, "forks"))
        return forks(n);
    for (long i = 0; i < n; i++)
        pthread_create(&threads[i], 0, run, (void *)i);
    if (!strcmp(mode, "idles"))
        return ends(argv[3]);
    if (!strcmp(mode, "hammers")) {
        struct timespec time = {atoi(argv[3]), 0};
        nanosleep(&time, 0);
        stop = 1;
    }
    /* The last one goes first. */
    for (int i = n; !strcmp(mode, "waits") && i-- > 0;) {
        sem_post(&gates[i]);
        pthread_join(threads[i], 0);
    }
    for (int i = 0; strcmp(mode, "waits") && i < n; i++)
        pthread_join(threads[i], 0);
    /* A second set of threads gets numbers of its own. */
    if (!strcmp(mode, "counts"))
        for (long i = 0; i < n; i++) {
            pthread_create(&threads[i], 0, run, (void *)i);
            pthread_join(threads[i], 0);
        }
    return 0;
}
