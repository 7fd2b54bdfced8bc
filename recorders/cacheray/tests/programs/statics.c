/* Variables, the stacks of threads, a library that comes and goes: see tests/statics.rs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int counter;
double matrix[50][10];
static char hidden[300];
const int table[7] = {3, 1, 4, 1, 5, 9, 2};

/* Apart, as compilers leave out accesses to what only one function can see. */
static __attribute__((noinline, noclone)) void fill(int *to) {
    for (int n = 0; n < 20; n++)
        to[n] = n + table[n % 7];
}

static void *work(void *argument) {
    int own[20];
    fill(own);
    __atomic_fetch_add(&counter, own[3], __ATOMIC_RELAXED);
    return argument;
}

int main(int count, char **arguments) {
    static long calls[4];
    int local[20];
    fill(local);
    for (int n = 0; n < 50; n++)
        matrix[n][n % 10] = local[5];
    memset(hidden, 1, sizeof hidden);
    calls[count % 4] += hidden[7];
    pthread_t threads[3];
    for (int n = 0; n < 3; n++)
        pthread_create(&threads[n], 0, work, 0);
    for (int n = 0; n < 3; n++)
        pthread_join(threads[n], 0);
    for (int n = 1; n < count; n++) {
        void *library = dlopen(arguments[n], RTLD_NOW);
        if (!library)
            return 1;
        int (*step)(int) = (int (*)(int))dlsym(library, "step");
        counter += step(3);
        dlclose(library);
    }
    pid_t child = fork();
    if (child == 0) {
        matrix[1][1] = 2;
        _exit(0);
    }
    waitpid(child, 0, 0);
    printf("%d\n", counter);
    return 0;
}
