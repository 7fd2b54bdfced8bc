// A list whose nodes lie apart, and a table that is read by columns.
#include <stdlib.h>

struct node {
    struct node *next;
    long value;
    char rest[112];
};

static long table[64][64];

__attribute__((noinline)) static long walk(const struct node *node)
{
    long sum = 0;
    for (; node; node = node->next)
        sum += node->value;
    return sum;
}

__attribute__((noinline)) static long columns(void)
{
    long sum = 0;
    for (int x = 0; x < 64; x++)
        for (int y = 0; y < 64; y++)
            sum += table[y][x];
    return sum;
}

long run(long nodes)
{
    struct node *first = NULL;
    for (long n = 0; n < nodes; n++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        node->value = n;
        first = node;
        table[n % 64][n / 64 % 64] = n;
    }
    return walk(first) + columns();
}
