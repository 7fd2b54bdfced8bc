/* Functions of the C library that write and read memory: each at a region with a name of its own, and so many bytes. */
#define _GNU_SOURCE
#include "cacheray.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct big { char bytes[1000]; };
struct mid { long words[8]; };

static _Alignas(64) char room[64][1024];
static int taken;
/* Keeps compilers from dropping allocations that nothing uses. */
static void *volatile kept;

__attribute__((noinline)) static char *at(const char *name)
{
    char *place = room[taken++];
    __calloc_recorded(1, 1024, name, place);
    return place;
}

__attribute__((noinline)) static void copy_big(struct big *to, const struct big *from) { *to = *from; }
__attribute__((noinline)) static void copy_mid(struct mid *to, const struct mid *from) { *to = *from; }
__attribute__((noinline)) static void clear_big(struct big *to) { *to = (struct big){{0}}; }

static void *nothing(void *argument) { return argument; }

int main(int argc, char **argv)
{
    const char *hello = "hello, world";
    size_t twenty = (size_t)argc * 0 + 20;
    static char source[1024];
    memset(source, 'x', sizeof source - 1);
    memcpy(at("memcpy"), source, twenty);
    memcpy(at("memcpy of 48"), source, 48);
    __builtin_memcpy(at("builtin memcpy of 48"), source, 48);
    memmove(at("memmove"), source, twenty);
    memset(at("memset"), 7, twenty);
    memset(at("memset of 100"), 0, 100);
    bzero(at("bzero"), twenty);
    explicit_bzero(at("explicit_bzero"), twenty);
    if (mempcpy(at("mempcpy"), source, twenty) != room[taken - 1] + 20)
        return 1;
    strcpy(at("strcpy"), hello);
    strncpy(at("strncpy"), hello, 30);
    stpcpy(at("stpcpy"), hello);
    strcpy(at("strcat"), "12345");
    strcat(room[taken - 1], hello);
    strncat(room[taken - 1], hello, 2);
    snprintf(at("snprintf"), 1024, "%d %s %.1f", 12, "ab", 1.5);
    snprintf(at("snprintf cut"), 4, "%d", 123456);
    sprintf(at("sprintf"), "%.2f %ld %d %d %d %d %d", 0.25, 1L, 2, 3, 4, 5, 6);
    if (strcmp(room[taken - 1], "0.25 1 2 3 4 5 6"))
        return 2;
    swprintf((wchar_t *)at("swprintf"), 20, L"%d", 123);
    wmemcpy((wchar_t *)at("wmemcpy"), L"abcdef", 5);
    wcscpy((wchar_t *)at("wcscpy"), L"abc");
    int fd = open(argv[0], O_RDONLY);
    if (read(fd, at("read"), 100) != 100 || pread(fd, at("pread"), 50, 10) != 50)
        return 3;
    struct iovec parts[2] = {{at("readv 1"), 30}, {at("readv 2"), 40}};
    if (readv(fd, parts, 2) != 70)
        return 4;
    if (fstat(fd, (struct stat *)at("fstat")))
        return 5;
    FILE *file = fdopen(fd, "r");
    if (fread(at("fread"), 10, 7, file) != 7)
        return 6;
    fclose(file);
    FILE *lines = fmemopen((void *)"one\ntwo\n", 8, "r");
    if (!fgets(at("fgets"), 100, lines))
        return 7;
    fclose(lines);
    int ends[2];
    if (pipe(ends) || write(ends[1], strcpy(at("written"), hello), 9) != 9)
        return 8;
    clock_gettime(CLOCK_REALTIME, (struct timespec *)at("clock_gettime"));
    struct big *big = (struct big *)at("big");
    copy_big(big, (struct big *)source);
    copy_mid((struct mid *)at("mid"), (struct mid *)source);
    clear_big((struct big *)at("cleared"));
    char *looked = strcpy(at("looked at"), hello);
    if (strlen(looked) != 12 || strchr(looked, ',') != looked + 5 || memchr(looked, 'z', 12) || memcmp(looked, "help", 4) == 0)
        return 9;
    char *twin = strdup(hello);
    if (strcmp(twin, hello))
        return 10;
    free(twin);
    struct scan { int a; short b; double c; char word[20]; char letters[3]; long rest[4]; int n; } *scan;
    scan = (struct scan *)at("sscanf");
    if (sscanf("1 2 2.5 abcde xyz 4 5 6 7", "%d %hd %lf %s %3c %ld %ld %ld %ld%n", &scan->a, &scan->b, &scan->c, scan->word,
               scan->letters, &scan->rest[0], &scan->rest[1], &scan->rest[2], &scan->rest[3], &scan->n) != 9)
        return 11;
    FILE *numbers = fmemopen((void *)"17 x", 4, "r");
    int *two = (int *)at("fscanf");
    if (fscanf(numbers, "%d %d", &two[0], &two[1]) != 1 || two[0] != 17)
        return 12;
    fclose(numbers);
    pthread_t *thread = (pthread_t *)at("pthread_create");
    if (pthread_create(thread, 0, nothing, 0) || pthread_join(*thread, 0))
        return 13;
    char **end = (char **)at("strtol");
    if (strtol("12,", end, 10) != 12 || **end != ',')
        return 14;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, (int *)at("socketpair")))
        return 15;
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    int *status = (int *)at("waitpid");
    if (waitpid(child, status, 0) != child || WEXITSTATUS(*status) != 3)
        return 16;
    kept = calloc(1, 77);
    free(kept);
    kept = malloc(88);
    kept = realloc(kept, 99);
    free(kept);
    return 0;
}
