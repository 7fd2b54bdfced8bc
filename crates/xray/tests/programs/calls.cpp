// What the end-to-end test records: recursion, a template, a method, a tail call, a second thread, an exception.
// Started with an argument it records itself in flight-recorder mode; Basic mode starts by environment.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "xray/xray_interface.h"
#include "xray/xray_log_interface.h"

#define APART __attribute__((noinline))

namespace shop {
APART unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

template <typename T> APART T twice(T value) {
  volatile T kept = value;
  return kept + kept;
}

struct Till {
  int coins = 0;
  APART void add(int n) { coins += n; }
};

APART int last(int n) {
  volatile int kept = n;
  return kept + 1;
}
APART int jumps(int n) { return last(n + 1); }

APART void throws(int n) {
  if (n == 0)
    throw std::runtime_error("empty");
  throws(n - 1);
}
} // namespace shop

[[clang::xray_always_instrument]] APART int work(unsigned n) {
  shop::Till till;
  till.add(static_cast<int>(shop::twice<long>(n)));
  int sum = till.coins + static_cast<int>(shop::fib(n)) + shop::jumps(1);
  try {
    shop::throws(3);
  } catch (const std::runtime_error &) {
    sum += 1;
  }
  return sum;
}

[[clang::xray_never_instrument]] int main(int argc, char **argv) {
  bool records = argc > 1;
  if (records) {
    __xray_log_select_mode("xray-fdr");
    __xray_log_init_mode("xray-fdr", argv[1]);
    __xray_patch();
  }
  int sum = work(8);
  std::thread other([&sum] { sum += work(5); });
  other.join();
  std::printf("%d\n", sum);
  if (records) {
    __xray_log_finalize();
    __xray_log_flushLog();
  }
}
