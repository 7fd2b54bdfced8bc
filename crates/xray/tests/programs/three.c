// Three functions for samples of every processor: none needs a header or a library.
__attribute__((noinline)) int leaf(int n) { volatile int v = n; return v + 1; }
__attribute__((noinline)) int twice(int n) { volatile int v = n; return leaf(v) + leaf(v + 1); }
int top(int n) { return n ? twice(n - 1) * 2 : leaf(0); }
