/* Lets a program record its own calls with XRay's flight recorder: FLIGHT has the options of its log. */
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif
int __xray_log_select_mode(const char *mode);
int __xray_log_init_mode(const char *mode, const char *options);
int __xray_log_finalize(void);
int __xray_log_flushLog(void);
int __xray_patch(void);
#ifdef __cplusplus
}
#endif

#define UNSEEN __attribute__((xray_never_instrument))

UNSEEN __attribute__((constructor)) static void begin(void) {
    const char *options = getenv("FLIGHT");
    if (options == NULL) return;
    if (__xray_log_select_mode("xray-fdr") != 0 || __xray_log_init_mode("xray-fdr", options) != 2) abort();
    __xray_patch();
}

UNSEEN __attribute__((destructor)) static void end(void) {
    if (getenv("FLIGHT") == NULL) return;
    __xray_log_finalize();
    __xray_log_flushLog();
}
