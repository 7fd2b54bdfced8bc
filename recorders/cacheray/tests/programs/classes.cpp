// What C++ brings: virtual functions, exceptions, threads, new and delete, templates, std::atomic.
#include "cacheray.h"
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Shape {
    virtual ~Shape() {}
    virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    explicit Square(int s) : side(s) {}
    int area() const override { return side * side; }
};
struct Circle : Shape {
    int radius;
    explicit Circle(int r) : radius(r) {}
    int area() const override { return 3 * radius * radius; }
};
struct alignas(64) Line { volatile long value; };

static std::atomic<int> total;
static std::mutex mutex;
static volatile long thrown[2];
static char *volatile escaped;

__attribute__((noinline)) static int throws(int n)
{
    if (n == 0)
        throw std::runtime_error("at the bottom");
    thrown[0] = n;
    return throws(n - 1) + 1;
}

__attribute__((noinline)) static Shape *make(int i)
{
    if (i & 1)
        return new Square(i);
    return new Circle(i);
}

int main()
{
    __calloc_recorded(2, 8, "thrown", (void *)thrown);
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        std::unique_ptr<Shape> shape(make(i));
        sum += shape->area();
    }
    int caught = 0;
    for (int i = 0; i < 3; i++)
        try {
            throws(5);
        } catch (const std::exception &error) {
            caught += std::string(error.what()) == "at the bottom";
        }
    try {
        volatile size_t much = size_t(1) << 62;
        escaped = new char[much];
        delete[] escaped;
    } catch (const std::bad_alloc &) {
        caught++;
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([] {
            for (int i = 0; i < 100; i++) {
                total++;
                std::lock_guard<std::mutex> hold(mutex);
                thrown[1]++;
            }
        });
    for (auto &thread : threads)
        thread.join();
    Line *line = new Line;
    line->value = 1;
    bool aligned = reinterpret_cast<size_t>(line) % 64 == 0;
    delete line;
    std::printf("%d %d %d %d\n", sum, caught, total.load(), aligned);
    return 0;
}
