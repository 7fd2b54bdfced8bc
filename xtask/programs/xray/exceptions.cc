// Exceptions that pass several calls: their frames have no exit.
#include <cstdio>
#include <stdexcept>

[[gnu::noinline]] int leaf(int depth) {
    if (depth % 3 == 0) throw std::runtime_error("three");
    return depth;
}

[[gnu::noinline]] int nest(int depth) { return depth % 7 == 0 ? leaf(depth) : nest(depth - 1) + 1; }

[[gnu::noinline]] int guard(int depth) {
    try {
        return nest(depth);
    } catch (const std::exception &) {
        return leaf(1);
    }
}

int main() {
    long sum = 0;
    for (int round = 0; round < 3000; round++) sum += guard(round % 97 + 1);
    std::printf("%ld\n", sum);
}
