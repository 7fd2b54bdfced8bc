/* A library that is loaded at run time. */
#include "cacheray.h"

static volatile long loaded[8];

void run(void)
{
    __calloc_recorded(8, 8, "loaded", (void *)loaded);
    for (int i = 0; i < 300; i++)
        loaded[i & 7] = i;
}
