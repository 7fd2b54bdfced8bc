/* Ways for a process to end or to double. Each has written 1,000 longs to `counted` by then. */
#include "cacheray.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long counted[8], child[8], after[8], handled[8];
static volatile int zero, hits;
static sigjmp_buf back;

static void own_handler(int signal) { (void)signal; _exit(7); }
static void returns(int signal) { (void)signal; }
static void in_handler(int signal) { (void)signal; for (int i = 0; i < 10; i++) handled[i & 7] = i; hits++; }
static void leaves(int signal) { (void)signal; hits++; siglongjmp(back, 1); }
/* Jumps out of every second handler, back to where the next write is made just as deep in the stack as the one left. */
static void leaves_often(int signal) { (void)signal; if (zero && ++hits % 2 == 0) siglongjmp(back, 1); }
static int deep(volatile char *up) { volatile char here[4096]; here[0] = up[0]; return deep(here) + here[1]; }
static void *exits(void *unused) { (void)unused; exit(5); }
static void *hammers(void *unused) { (void)unused; for (;;) after[1]++; }
static void at_the_end(void) { for (int i = 0; i < 5; i++) after[2] = i; }

static void tick(void (*handler)(int), long microseconds)
{
    struct itimerval time = {{0, microseconds}, {0, microseconds}};
    signal(SIGPROF, handler);
    setitimer(ITIMER_PROF, &time, 0);
}

/* Counts how many rounds were left early. */
static int jumps(void)
{
    static volatile int left;
    while (left < 50)
        if (!sigsetjmp(back, 1)) {
            zero = 1;
            for (int i = 0; i < 100000; i++)
                after[3] = i;
            zero = 0;
        } else {
            zero = 0;
            child[0] = ++left;
        }
    return left;
}

static int doubles(const char *mode)
{
    int status = 0;
    pid_t pid = !strcmp(mode, "vfork") ? vfork() : fork();
    if (!pid && !strcmp(mode, "vfork"))
        _exit(0);
    if (!pid) {
        for (int i = 0; i < 500; i++)
            child[i & 7] = i;
        if (!strcmp(mode, "fork-exec")) {
            execl("/bin/echo", "echo", "hello", (char *)0);
            _exit(9);
        }
        exit(0);
    }
    waitpid(pid, &status, 0);
    for (int i = 0; i < 20; i++)
        after[i & 7] = i;
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "return";
    pthread_t thread;
    __calloc_recorded(8, 8, "counted", (void *)counted);
    __calloc_recorded(8, 8, "child", (void *)child);
    __calloc_recorded(8, 8, "after", (void *)after);
    __calloc_recorded(8, 8, "handled", (void *)handled);
    if (!strcmp(mode, "atexit"))
        atexit(at_the_end);
    for (int i = 0; i < 1000; i++)
        counted[i & 7] = i;
    if (!strcmp(mode, "abort"))
        abort();
    if (!strcmp(mode, "abort-handled")) {
        signal(SIGABRT, returns);
        abort();
    }
    if (!strcmp(mode, "segv"))
        *(volatile int *)8 = 1;
    if (!strcmp(mode, "segv-handled")) {
        signal(SIGSEGV, own_handler);
        *(volatile int *)8 = 1;
    }
    if (!strcmp(mode, "stack"))
        return deep("");
    if (!strcmp(mode, "fpe"))
        zero = 100 / zero;
    if (!strcmp(mode, "ill"))
        __builtin_trap();
    if (!strcmp(mode, "_exit"))
        _exit(3);
    if (!strcmp(mode, "quick"))
        quick_exit(4);
    if (!strcmp(mode, "term"))
        raise(SIGTERM);
    if (!strcmp(mode, "int"))
        kill(getpid(), SIGINT);
    if (!strcmp(mode, "default")) {
        struct sigaction seen;
        if (signal(SIGTERM, SIG_DFL) != SIG_DFL || sigaction(SIGTERM, 0, &seen) || seen.sa_handler != SIG_DFL)
            return 99;
        raise(SIGTERM);
    }
    if (!strcmp(mode, "exec"))
        execlp("echo", "echo", "hello", "world", (char *)0);
    if (!strcmp(mode, "thread")) {
        pthread_create(&thread, 0, exits, 0);
        pthread_join(thread, 0);
    }
    if (!strcmp(mode, "detached")) {
        pthread_create(&thread, 0, hammers, 0);
        while (!after[1])
            sched_yield();
        return 0;
    }
    if (strstr(mode, "fork"))
        return doubles(mode);
    if (!strcmp(mode, "close")) {
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        int mine = open("mine.txt", O_WRONLY | O_CREAT | O_TRUNC, 0666);
        for (int i = 0; i < 200000; i++)
            after[i & 7] = i;
        return write(mine, "mine\n", 5) == 5 ? 0 : 98;
    }
    if (strstr(mode, "limit")) {
        struct rlimit limit = {8192, 8192};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (!strcmp(mode, "handler")) {
        tick(in_handler, 100);
        while (hits < 200)
            after[3] = hits;
        signal(SIGPROF, SIG_IGN);
        printf("%d\n", hits);
    }
    if (!strcmp(mode, "jump") || !strcmp(mode, "limit-jump")) {
        tick(leaves, 200);
        sigsetjmp(back, 1);
        while (hits < 1000)
            after[3] = hits;
        signal(SIGPROF, SIG_IGN);
    }
    if (strstr(mode, "jump-back")) {
        struct sigaction action = {.sa_handler = leaves_often, .sa_flags = strstr(mode, "stack") ? SA_ONSTACK : 0};
        struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &often, 0);
        jumps();
        setitimer(ITIMER_REAL, &never, 0);
        for (int i = 0; i < 100; i++)
            handled[i & 7] = i;
    }
    if (!strcmp(mode, "dlopen")) {
        void *library = dlopen(argv[2], RTLD_NOW);
        void (*run)(void) = library ? (void (*)(void))dlsym(library, "run") : 0;
        if (!run) {
            puts(dlerror());
            return 97;
        }
        run();
    }
    return 0;
}
