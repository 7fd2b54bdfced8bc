/* Allocations, annotated and not; each mode in its own process. */
#include "cacheray.h"
#include <stdio.h>
#include <string.h>

struct node { struct node *next; long value; };

__attribute__((noinline)) static void *make_something(size_t bytes)
{
    void *volatile made = malloc(bytes);
    return made;
}

static void plain(void)
{
    void *a = make_something(40);
    void *volatile b = calloc(7, 12);
    b = realloc(b, 300);
    void *volatile c = 0;
    if (posix_memalign((void **)&c, 64, 128))
        abort();
    void *volatile d = aligned_alloc(32, 96);
    void *volatile e = malloc(0);
    void *volatile f = realloc(0, 24);
    free(a);
    free(b);
    free(c);
    free(d);
    free(e);
    free(f);
    free(0);
}

static void annotated(void)
{
    struct node *list = 0;
    for (int i = 0; i < 10; i++) {
        struct node *n = CACHERAY_MALLOC(struct node, 1);
        n->next = list;
        n->value = i;
        list = n;
    }
    while (list) {
        struct node *next = list->next;
        CACHERAY_FREE(list);
        list = next;
    }
    long *grown = CACHERAY_CALLOC(long, 4);
    for (int i = 1; i < 6; i++)
        grown = CACHERAY_REALLOC(grown, long, 4 << i);
    grown[100] = 1;
    CACHERAY_FREE(grown);
}

static void upstream(void)
{
    struct node *a = malloc(3 * sizeof *a);
    __malloc_recorded(3 * sizeof *a, "struct.node", a);
    a[2].value = 1;
    int *b = calloc(5, sizeof *b);
    __calloc_recorded(5, sizeof *b, "i32", b);
    b[1] = 1;
    int *old = b;
    b = realloc(b, 5000 * sizeof *b);
    __realloc_recorded(old, 5000 * sizeof *b, "i32", b);
    b[4000] = 1;
    int *c = realloc(0, 8);
    __realloc_recorded(0, 8, "i32", c);
    c[0] = 1;
    __free_recorded(a); /* in front of free */
    free(a);
    free(b); /* behind it */
    __free_recorded(b);
    free(0);
    __free_recorded(0);
    free(c);
    __free_recorded(c);
}

/* Pointers that live in memory: they are written and read between an allocation and the declaration of its type. */
static struct node *volatile kept;
static long *volatile row;

static void late(void)
{
    kept = malloc(sizeof *kept);
    __malloc_recorded(sizeof *kept, "struct.node", kept);
    kept->value = 1;
    free(kept);
    __free_recorded(kept);
    row = malloc(24);
    for (int i = 0; i < 100; i++)
        kept = 0; /* too long to wait */
    __calloc_recorded(3, 8, "long", row);
    free(row);
}

/* realloc keeps a type until it is declared anew, in place and elsewhere. */
static void retyped(void)
{
    for (int move = 0; move < 2; move++) {
        row = calloc(10, 8);
        __calloc_recorded(10, 8, "long", row);
        void *volatile wall = move ? malloc(100) : 0;
        void *old = row;
        row = realloc(row, move ? 80000 : 96);
        for (int i = 0; i < 100; i++)
            kept = 0;
        __realloc_recorded(old, move ? 80000 : 96, "short", row);
        free(row);
        free(wall);
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "plain"))
        plain();
    if (!strcmp(mode, "annotated"))
        annotated();
    if (!strcmp(mode, "upstream"))
        upstream();
    if (!strcmp(mode, "late"))
        late();
    if (!strcmp(mode, "retyped"))
        retyped();
    return 0;
}
