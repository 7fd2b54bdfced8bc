// Recursion deeper than XRay's own limit, and calls shorter than it records by default: DEPTH CALLS [SIGNAL].
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

static volatile long sum;

__attribute__((noinline)) long deep(int n)
{
    sum = sum + 1;
    return n ? deep(n - 1) + 1 : 0;
}

__attribute__((noinline)) void leaf() { sum = sum + 1; }

__attribute__((noinline)) void work(int calls)
{
    for (int n = 0; n < calls; n++)
        leaf();
}

int main(int count, char **arguments)
{
    long depth = deep(std::atoi(arguments[1]));
    std::vector<std::thread> threads;
    for (int n = 0; n < 8; n++)
        threads.emplace_back(work, std::atoi(arguments[2]));
    for (auto &thread : threads)
        thread.join();
    if (count > 3)
        raise(std::atoi(arguments[3]));
    std::printf("%ld\n", depth);
}
