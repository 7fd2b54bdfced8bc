/* Each atomic operation of each size once, its result checked. */
#include "cacheray.h"
#include <stdbool.h>
#include <stdio.h>

static int wrong;
#define CHECK(condition) do { if (!(condition)) { wrong++; printf("line %d\n", __LINE__); } } while (0)

#define ALL(type, name) \
    static type name; \
    static void test_##name(void) \
    { \
        type expected = 5; \
        __atomic_store_n(&name, 3, __ATOMIC_RELEASE); \
        CHECK(__atomic_load_n(&name, __ATOMIC_ACQUIRE) == 3); \
        CHECK(__atomic_exchange_n(&name, 9, __ATOMIC_SEQ_CST) == 3); \
        CHECK(__atomic_fetch_add(&name, 2, __ATOMIC_RELAXED) == 9); \
        CHECK(__atomic_fetch_sub(&name, 1, __ATOMIC_ACQ_REL) == 11); \
        CHECK(__atomic_fetch_and(&name, 6, __ATOMIC_SEQ_CST) == 10); \
        CHECK(__atomic_fetch_or(&name, 8, __ATOMIC_SEQ_CST) == 2); \
        CHECK(__atomic_fetch_xor(&name, 3, __ATOMIC_SEQ_CST) == 10); \
        CHECK(__atomic_fetch_nand(&name, 1, __ATOMIC_SEQ_CST) == 9); \
        CHECK(__atomic_load_n(&name, __ATOMIC_RELAXED) == (type)~(type)1); \
        __atomic_store_n(&name, 5, __ATOMIC_SEQ_CST); \
        CHECK(__atomic_compare_exchange_n(&name, &expected, 6, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
        CHECK(!__atomic_compare_exchange_n(&name, &expected, 7, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)); \
        CHECK(expected == 6); \
        CHECK(__atomic_compare_exchange_n(&name, &expected, 7, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
        __atomic_thread_fence(__ATOMIC_SEQ_CST); \
        __atomic_signal_fence(__ATOMIC_ACQUIRE); \
    }

ALL(unsigned char, a1)
ALL(unsigned short, a2)
ALL(unsigned, a4)
ALL(unsigned long, a8)
#ifdef WIDE
ALL(unsigned __int128, a16)
#endif

int main(void)
{
    CACHERAY_TYPE(&a1, unsigned char, 1);
    CACHERAY_TYPE(&a2, unsigned short, 1);
    CACHERAY_TYPE(&a4, unsigned, 1);
    CACHERAY_TYPE(&a8, unsigned long, 1);
    test_a1();
    test_a2();
    test_a4();
    test_a8();
#ifdef WIDE
    CACHERAY_TYPE(&a16, unsigned __int128, 1);
    test_a16();
#endif
    return wrong;
}
