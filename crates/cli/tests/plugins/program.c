/* Works in libraries that it was linked with and in some that it opens, then waits, and ends or kills itself. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int mid_work(int n);
__attribute__((noinline)) int open_and_work(const char *file, const char *function) {
  void *library = dlopen(file, RTLD_NOW);
  int (*work)(int) = library ? (int (*)(int))dlsym(library, function) : 0;
  return work ? work(100) : -1;
}
int main(int count, char **words) {
  int sum = mid_work(100);
  sum += open_and_work("libzoo.so", "zoo_work");
  sum += open_and_work("libant.so", "ant_work");
  if (count > 1) usleep(atoi(words[1]) * 1000);
  if (count > 2) kill(getpid(), SIGKILL);
  return sum < 0;
}
