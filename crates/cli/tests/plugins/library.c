/* A library: NAME_work() calls NAME_step(), and that of the library it needs. */
#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)
static volatile int sink;
#ifdef NEEDS
int NAMED(NEEDS, _work)(int n);
#endif
__attribute__((noinline)) int NAMED(NAME, _step)(int n) { sink = n; for (int i = 0; i < n; i++) sink = sink + i; return sink; }
int NAMED(NAME, _work)(int n) {
  int sum = NAMED(NAME, _step)(n);
#ifdef NEEDS
  sum += NAMED(NEEDS, _work)(n);
#endif
  return sum + 1;
}
