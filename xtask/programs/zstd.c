/* Compresses and restores made-up text by several threads: BYTES THREADS. */
#include "zstd.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    size_t bytes = count > 1 ? (size_t)atol(arguments[1]) : 100000;
    char *text = malloc(bytes);
    unsigned state = 1;
    for (size_t n = 0; n < bytes; n++) {
        if (n % 7 == 0)
            state = state * 1664525u + 1013904223u;
        text[n] = "etaoin shrdlu"[(state >> (n % 7)) % 13];
    }
    size_t room = ZSTD_compressBound(bytes);
    char *packed = malloc(room), *restored = malloc(bytes);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
    if (count > 2)
        ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, atoi(arguments[2]));
    size_t length = ZSTD_compress2(context, packed, room, text, bytes);
    size_t back = ZSTD_decompress(restored, bytes, packed, length);
    printf("%zu %zu %d\n", length, back, memcmp(restored, text, bytes));
    ZSTD_freeCCtx(context);
    free(text), free(packed), free(restored);
    return back != bytes;
}
