// Fewer buffers than threads that come and go: the log keeps the latest.
#include <cstdio>
#include <thread>

[[gnu::noinline]] int leaf(int n) { return n & 7; }

[[gnu::noinline]] int branch(int n) { return leaf(n) + leaf(n + 1); }

[[gnu::noinline]] void work(long &sum) {
    for (int n = 0; n < 5000; n++) sum += branch(n);
}

int main() {
    long sum = 0;
    for (int number = 0; number < 40; number++) std::thread(work, std::ref(sum)).join();
    std::printf("%ld\n", sum);
}
