/* Allocations through functions that allocate for others. Sizes say who asked: see tests/wrappers.rs. */
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

static char *kept[4096];
static int count;

static APART void keep(char *at) {
    *at = 1;
    __atomic_store_n(&kept[__atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) % 4096], at, __ATOMIC_RELAXED);
}

/* On the list. */
APART void *xmalloc(size_t bytes) {
    void *at = malloc(bytes);
    if (!at)
        abort();
    return at;
}

/* On the list, by way of another one. */
APART char *xstrdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = xmalloc(bytes);
    memcpy(copy, text, bytes);
    return copy;
}

/* Named by the user. */
APART void *pool_take(size_t bytes) {
    char *at = calloc(1, bytes);
    at[0] = 1;
    return at;
}

/* Found by the rule. */
APART void *grab(size_t bytes) {
    char *at = malloc(bytes);
    at[0] = 1;
    return at;
}

/* No wrapper: what it makes is its own. */
APART void *make_node(void) {
    char *at = malloc(77);
    at[0] = 1;
    return at;
}

static APART void of_list(void) { keep(xmalloc(1001)); }
static APART void of_text(void) { keep(xstrdup("a text of 26 bytes, ended")); }
static APART void of_user(void) { keep(pool_take(1002)); }
static APART void of_node(void) { keep(make_node()); }

static APART void with_room(int bytes) {
    volatile char room[bytes];
    room[0] = 1;
    keep(xmalloc(1003));
    room[bytes - 1] = 2;
}

static APART void after_room(void) {
    with_room(3000);
    keep(xmalloc(1004));
}

static jmp_buf back;

static APART void jumps_out(int depth) {
    kept[0] = 0;
    if (depth == 0)
        longjmp(back, 1);
    jumps_out(depth - 1);
    kept[0] = 0;
}

static APART void after_jump(void) {
    if (setjmp(back) == 0)
        jumps_out(50);
    keep(xmalloc(1005));
}

static APART int deep(int depth) {
    kept[0] = 0;
    if (depth == 0) {
        keep(xmalloc(1006));
        return 0;
    }
    int below = deep(depth - 1);
    kept[0] = 0;
    return below + 1;
}

static APART void after_recursion(void) {
    if (deep(20000) != 20000)
        abort();
    keep(xmalloc(1007));
}

static APART void *of_thread(void *argument) {
    for (int n = 0; n < 200; n++) {
        keep(xmalloc(1008));
        if (argument)
            deep(3);
    }
    return argument;
}

/* Each differs, so that no compiler makes one of them. */
static APART void grab_one(int n) {
    keep(grab(2000 + n));
    kept[0] = 0;
}

static APART void grab_two(int n) {
    keep(grab(2000 + n));
    kept[1] = 0;
}

static APART void grab_three(int n) {
    keep(grab(2000 + n));
    kept[2] = 0;
}

static APART void grab_four(int n) {
    keep(grab(2000 + n));
    kept[3] = 0;
}

int main(void) {
    for (int n = 0; n < 100; n++) {
        grab_one(n);
        grab_two(n);
        grab_three(n);
        grab_four(n);
    }
    of_list();
    of_text();
    of_user();
    of_node();
    after_room();
    after_jump();
    after_recursion();
    pthread_t threads[4];
    for (long n = 0; n < 4; n++)
        pthread_create(&threads[n], 0, of_thread, (void *)n);
    for (int n = 0; n < 4; n++)
        pthread_join(threads[n], 0);
    puts("done");
    return 0;
}
