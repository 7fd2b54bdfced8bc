/* Compresses and restores made-up text: BYTES. */
#include "bzlib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bz_internal_error(int code)
{
    printf("error %d\n", code);
    exit(2);
}

int main(int count, char **arguments)
{
    unsigned bytes = count > 1 ? (unsigned)atol(arguments[1]) : 20000, room = bytes + bytes / 50 + 1000, back = bytes;
    char *text = malloc(bytes), *packed = malloc(room), *restored = malloc(bytes);
    for (unsigned n = 0, state = 1; n < bytes; n++) {
        state = state * 1664525u + 1013904223u;
        text[n] = "etaoin shrdlu"[(state >> 16) % (n % 100 < 50 ? 3 : 13)];
    }
    int packing = BZ2_bzBuffToBuffCompress(packed, &room, text, bytes, 1, 0, 30);
    int unpacking = BZ2_bzBuffToBuffDecompress(restored, &back, packed, room, 0, 0);
    printf("%u %d %d %d\n", room, packing, unpacking, memcmp(restored, text, bytes));
    free(text), free(packed), free(restored);
    return packing || unpacking;
}
