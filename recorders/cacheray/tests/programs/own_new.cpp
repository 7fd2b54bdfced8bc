// A program with an allocator of its own: the recorder's must give way.
#include <cstdio>
#include <cstdlib>
#include <new>

static int calls;
void *operator new(size_t bytes) { calls++; return std::malloc(bytes); }
void operator delete(void *at) noexcept { std::free(at); }
void operator delete(void *at, size_t) noexcept { std::free(at); }

int main()
{
    int *volatile made = new int(3);
    int value = *made;
    delete made;
    std::printf("%d %d\n", calls, value);
    return 0;
}
