// A large trace: T threads walk a pseudo-random call tree of 24 functions.
// From the project's own corpus of XRay programs (big.cpp there).
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <thread>
#include <vector>
struct R { uint64_t s; uint64_t n() { s ^= s << 13; s ^= s >> 7; s ^= s << 17; return s; } };
[[clang::xray_never_instrument]] static void dispatch(R &r, int d);
template <int N> __attribute__((noinline)) void node(R &r, int d) { if (d > 0) { dispatch(r, d - 1); if (N % 3 == 0) dispatch(r, d - 2); } volatile int x = N; (void)x; }
[[clang::xray_never_instrument]] static void dispatch(R &r, int d) {
  if (d < 0) return;
  using F = void (*)(R &, int);
  static const F t[24] = {node<0>,node<1>,node<2>,node<3>,node<4>,node<5>,node<6>,node<7>,node<8>,node<9>,node<10>,node<11>,node<12>,node<13>,node<14>,node<15>,node<16>,node<17>,node<18>,node<19>,node<20>,node<21>,node<22>,node<23>};
  t[r.n() % 24](r, d);
}
__attribute__((noinline)) void worker(uint64_t seed, uint64_t n) { R r{seed * 7919 + 1}; for (uint64_t i = 0; i < n; ++i) dispatch(r, 6 + (int)(i % 5)); }
int main(int argc, char **argv) {
  int nt = argc > 1 ? atoi(argv[1]) : 4; uint64_t n = argc > 2 ? atoll(argv[2]) : 1000;
  std::vector<std::thread> ts; for (int t = 0; t < nt; ++t) ts.emplace_back(worker, t + 1, n);
  for (auto &t : ts) t.join(); puts("done");
}
