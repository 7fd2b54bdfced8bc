/* gcc expands __builtin_memcpy and its like in place where lengths are constant, and its instrumentation does not see
   them. `anytrace cacheray cc` includes this file in front of C and C++, so that they are calls, which are recorded. */
#if !defined(__ASSEMBLER__) && !defined(CACHERAY_BUILTINS) && defined(__GNUC__) && !defined(__clang__)
#define CACHERAY_BUILTINS
#ifdef __cplusplus
extern "C" {
#define CACHERAY_AT_RUN_TIME(constant, call) (__builtin_is_constant_evaluated() ? (constant) : (call))
#else
#define CACHERAY_AT_RUN_TIME(constant, call) (call)
#endif
extern void *__cacheray_memcpy(void *, const void *, __SIZE_TYPE__);
extern void *__cacheray_memmove(void *, const void *, __SIZE_TYPE__);
extern void *__cacheray_memset(void *, int, __SIZE_TYPE__);
extern void *__cacheray_mempcpy_chk(void *, const void *, __SIZE_TYPE__, __SIZE_TYPE__) __asm__("__mempcpy_chk");
extern char *__cacheray_strcpy_chk(char *, const char *, __SIZE_TYPE__) __asm__("__strcpy_chk");
extern char *__cacheray_stpcpy_chk(char *, const char *, __SIZE_TYPE__) __asm__("__stpcpy_chk");
extern char *__cacheray_strncpy_chk(char *, const char *, __SIZE_TYPE__, __SIZE_TYPE__) __asm__("__strncpy_chk");
extern char *__cacheray_stpncpy_chk(char *, const char *, __SIZE_TYPE__, __SIZE_TYPE__) __asm__("__stpncpy_chk");
extern char *__cacheray_strcat_chk(char *, const char *, __SIZE_TYPE__) __asm__("__strcat_chk");
extern char *__cacheray_strncat_chk(char *, const char *, __SIZE_TYPE__, __SIZE_TYPE__) __asm__("__strncat_chk");
#ifdef __cplusplus
}
#endif
#define __builtin_memcpy(to, from, n) \
  CACHERAY_AT_RUN_TIME(__builtin_memcpy(to, from, n), __cacheray_memcpy(to, from, n))
#define __builtin_memmove(to, from, n) \
  CACHERAY_AT_RUN_TIME(__builtin_memmove(to, from, n), __cacheray_memmove(to, from, n))
#define __builtin_memset(to, byte, n) \
  CACHERAY_AT_RUN_TIME(__builtin_memset(to, byte, n), __cacheray_memset(to, byte, n))
#define __builtin___memcpy_chk(to, from, n, room) \
  CACHERAY_AT_RUN_TIME(__builtin___memcpy_chk(to, from, n, room), __cacheray_memcpy(to, from, n))
#define __builtin___memmove_chk(to, from, n, room) \
  CACHERAY_AT_RUN_TIME(__builtin___memmove_chk(to, from, n, room), __cacheray_memmove(to, from, n))
#define __builtin___memset_chk(to, byte, n, room) \
  CACHERAY_AT_RUN_TIME(__builtin___memset_chk(to, byte, n, room), __cacheray_memset(to, byte, n))
#define __builtin___mempcpy_chk(to, from, n, room) __cacheray_mempcpy_chk(to, from, n, room)
#define __builtin___strcpy_chk(to, from, room) __cacheray_strcpy_chk(to, from, room)
#define __builtin___stpcpy_chk(to, from, room) __cacheray_stpcpy_chk(to, from, room)
#define __builtin___strncpy_chk(to, from, n, room) __cacheray_strncpy_chk(to, from, n, room)
#define __builtin___stpncpy_chk(to, from, n, room) __cacheray_stpncpy_chk(to, from, n, room)
#define __builtin___strcat_chk(to, from, room) __cacheray_strcat_chk(to, from, room)
#define __builtin___strncat_chk(to, from, n, room) __cacheray_strncat_chk(to, from, n, room)
#endif
