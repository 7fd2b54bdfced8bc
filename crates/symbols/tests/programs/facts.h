/* What the compiler itself says, one line a fact; the test reads them beside the debug data. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#define SIZE(NAME, T) printf("size|%s|%zu\n", NAME, sizeof(T))
#define FIELD(NAME, T, PATH) printf("field|%s|%s|%zu|%zu\n", NAME, #PATH, offsetof(T, PATH), sizeof(((T *)0)->PATH))
#define BITS(NAME, T, F) do { T v_; memset(&v_, 0, sizeof v_); v_.F = ~v_.F; printf("bits|%s|%s|", NAME, #F); \
  for (size_t i_ = 0; i_ < sizeof v_; i_++) printf("%02x", ((unsigned char *)&v_)[i_]); putchar('\n'); } while (0)
