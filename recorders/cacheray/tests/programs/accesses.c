/* Accesses whose number and size are known. Volatile keeps the compiler from dropping any. */
#include "cacheray.h"
#include <string.h>

struct item { int key; short kind; char tag; long value; };
struct __attribute__((packed)) tight { char head; int number; long far; };
struct big { char bytes[40]; };
typedef int vector __attribute__((vector_size(16)));

static volatile long words[8];
static volatile struct item item;
static volatile struct tight tight[4];
static struct big from, to;
static volatile __int128 wide[2];
static volatile unsigned char flags;
static char copied[100], source[100];

__attribute__((noinline)) static void copy(struct big *a, const struct big *b) { *a = *b; }

int main(int argc, char **argv)
{
    (void)argv;
    CACHERAY_TYPE(words, long, 8);
    CACHERAY_TYPE(&item, struct item, 1);
    CACHERAY_TYPE(tight, struct tight, 4);
    CACHERAY_TYPE(&from, struct big, 1);
    __calloc_recorded(1, sizeof to, "struct.to", &to);
    CACHERAY_TYPE(wide, __int128, 2);
    CACHERAY_TYPE(copied, unsigned char, 100);
    CACHERAY_TYPE(source, signed char, 100);
    for (int i = 0; i < 1000; i++)
        words[i & 7] = i;
    long sum = 0;
    for (int i = 0; i < 500; i++)
        sum += words[i & 7];
    for (int i = 0; i < 7; i++) {
        item.key = i;
        item.kind = (short)item.key;
        item.tag = (char)item.kind;
        item.value = item.tag;
    }
    for (int i = 0; i < 4; i++) {
        tight[i].number = i;
        tight[i].far = i;
        sum += tight[i].far;
    }
    copy(&to, &from);
    wide[0] = argc;
    wide[1] = wide[0];
    __tsan_ignore_thread_begin();
    words[0] = 77;
    __tsan_ignore_thread_end();
    __cacheray_access(source, 100, 0);
    flags = 1;
    memcpy(copied, source, (size_t)argc * 0 + 100);
    return (int)(sum & 0) + flags - 1;
}
