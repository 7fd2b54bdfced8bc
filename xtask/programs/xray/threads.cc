// Many more threads than processors: 1,200, at most 60 at once.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

static std::atomic<long> sum{0};

[[gnu::noinline]] long add(int n) { return n < 2 ? 1 : add(n - 1) + add(n - 2); }

[[gnu::noinline]] void work(int number) { sum += add(number % 8); }

int main() {
    for (int batch = 0; batch < 20; batch++) {
        std::vector<std::thread> threads;
        for (int number = 0; number < 60; number++) threads.emplace_back(work, number);
        for (auto &thread : threads) thread.join();
    }
    std::printf("%ld\n", sum.load());
}
