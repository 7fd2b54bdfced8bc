/* Type annotations for programs that are recorded as cacheray traces.
 *
 *     struct node *n = CACHERAY_MALLOC(struct node, 1);
 *     n = CACHERAY_REALLOC(n, struct node, 20);
 *     CACHERAY_FREE(n);
 *
 *     static struct item table[400];
 *     CACHERAY_TYPE(table, struct item, 400);
 *
 * Without CACHERAY defined the macros are plain calls of the C library, and CACHERAY_TYPE is nothing: a program may
 * keep its annotations and be built without the recorder. `anytrace cacheray cc` defines it.
 *
 * Names are recorded as written: `struct node`. Type data (debug information, dwarf2json) have the same; LLVM's spelling
 * `struct.node` is understood too.
 */
#ifndef CACHERAY_H
#define CACHERAY_H

#include <stddef.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Upstream's four callbacks, with its meaning.
 *
 * After malloc: an add of one element of byte_size bytes, arrays too. */
void __malloc_recorded(long byte_size, const char *type_name, void *address);
/* After calloc: an add of count elements of element_size bytes. */
void __calloc_recorded(long count, long element_size, const char *type_name, void *address);
/* After realloc: a remove of old_address, null included, and an add as after malloc. */
void __realloc_recorded(void *old_address, long byte_size, const char *type_name, void *address);
/* Before or after free: a remove, for null too. */
void __free_recorded(void *address);

/* The recorder's own.
 *
 * A region that is not from the C library's allocator: a static, a stack variable, a part of a pool. */
void __cacheray_add(const void *address, size_t element_size, size_t count, const char *name, size_t name_bytes);
/* A region that realloc moved from old_address, which may be null. */
void __cacheray_move(const void *old_address, const void *address, size_t element_size, size_t count,
                     const char *name, size_t name_bytes);
/* Ends it. */
void __cacheray_remove(const void *address);
/* An access that no compiler sees: by assembler, by a device. is_write is 0 or 1. */
void __cacheray_access(const void *address, size_t bytes, unsigned char is_write);
/* Writes what is in the buffer. */
void __cacheray_flush(void);
/* The calling thread's accesses are not recorded in between. Calls nest. */
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);

#ifdef __cplusplus
}
#endif

#ifdef CACHERAY

/* A type's size, how many there are, its name and the name's length. */
#define CACHERAY_OF_(type, count) sizeof(type), (size_t)(count), #type, sizeof(#type) - 1
/* Memory for count objects of a type; the trace has count elements. */
#define CACHERAY_MALLOC(type, count) \
    ((type *)cacheray_declared_(malloc(sizeof(type) * (size_t)(count)), CACHERAY_OF_(type, count)))
#define CACHERAY_CALLOC(type, count) \
    ((type *)cacheray_declared_(calloc((size_t)(count), sizeof(type)), CACHERAY_OF_(type, count)))
#define CACHERAY_REALLOC(old, type, count) ((type *)cacheray_realloc_((old), CACHERAY_OF_(type, count)))
#define CACHERAY_FREE(pointer) cacheray_free_(pointer)
/* Declares that count objects of a type are at pointer. */
#define CACHERAY_TYPE(pointer, type, count) __cacheray_add((const void *)(pointer), CACHERAY_OF_(type, count))
/* Ends that declaration. */
#define CACHERAY_END(pointer) __cacheray_remove((const void *)(pointer))
/* Writes what is in the buffer. */
#define CACHERAY_FLUSH() __cacheray_flush()

static inline void *cacheray_declared_(void *address, size_t size, size_t count, const char *name, size_t name_bytes)
{
    if (address && size && count)
        __cacheray_add(address, size, count, name, name_bytes);
    return address;
}

static inline void *cacheray_realloc_(void *old, size_t size, size_t count, const char *name, size_t name_bytes)
{
    void *address = realloc(old, size * count);
    if (address && size && count)
        __cacheray_move(old, address, size, count, name, name_bytes);
    return address;
}

/* free reports to the recorder; where allocations are not recorded (malloc=0), this does. */
static inline void cacheray_free_(void *address)
{
    if (address)
        __cacheray_remove(address);
    free(address);
}

#else

#define CACHERAY_MALLOC(type, count) ((type *)malloc(sizeof(type) * (size_t)(count)))
#define CACHERAY_CALLOC(type, count) ((type *)calloc((size_t)(count), sizeof(type)))
#define CACHERAY_REALLOC(old, type, count) ((type *)realloc((old), sizeof(type) * (size_t)(count)))
#define CACHERAY_FREE(pointer) free(pointer)
#define CACHERAY_TYPE(pointer, type, count) ((void)0)
#define CACHERAY_END(pointer) ((void)0)
#define CACHERAY_FLUSH() ((void)0)

#endif
#endif
