#include "facts.h"
#include <stdint.h>
#include <stdatomic.h>
struct Node { struct Node *next; long val; char cold[48]; };
typedef struct { float x, y, z; } Point;
struct Inner { short c; struct { int d[2][3]; union { double e; char f[12]; }; } in[3]; };
struct Outer { char tag; struct Inner inner[2]; Point at; const volatile Point *far; int (*call)(int); enum { A, B } kind; };
struct Flags { unsigned visible : 1; unsigned layer : 7; int wide : 17; uint64_t big : 40; unsigned char tail; };
struct __attribute__((packed)) Packed { uint8_t t; uint32_t u; uint64_t v : 3; uint16_t w; };
union Value { int64_t i; double d; char s[9]; };
struct Text { int length; char bytes[]; };
struct __attribute__((aligned(64))) Aligned { int a; _Atomic int b; };
struct Odd { char c; long double ld; __int128 big; _Bool flag; float v __attribute__((vector_size(16))); };
typedef struct Node NodeAlias;
typedef int Grid[3][4];
struct Empty { int unused[0]; int after; };
struct Node keep1; struct Outer keep2; struct Flags keep3; struct Packed keep4; union Value keep5; struct Text keep6;
struct Aligned keep7; struct Odd keep8; NodeAlias keep9; Grid keep10; struct Empty keep11; Point keep12; uint32_t keep13;
int main(void) {
  SIZE("struct.Node", struct Node); FIELD("struct.Node", struct Node, next); FIELD("struct.Node", struct Node, val);
  FIELD("struct.Node.12", struct Node, cold[47]); SIZE("Point", Point); FIELD("struct.Point", Point, z);
  SIZE("struct.Outer", struct Outer); FIELD("struct.Outer", struct Outer, inner[1].c);
  FIELD("struct.Outer", struct Outer, inner[1].in[2].d[1][2]); FIELD("struct.Outer", struct Outer, at.y);
  FIELD("struct.Outer", struct Outer, far); FIELD("struct.Outer", struct Outer, call); FIELD("struct.Outer", struct Outer, kind);
  SIZE("struct Inner", struct Inner); FIELD("struct Inner", struct Inner, in[0].d[0][0]);
  SIZE("struct.Flags", struct Flags); BITS("struct.Flags", struct Flags, visible); BITS("struct.Flags", struct Flags, layer);
  BITS("struct.Flags", struct Flags, wide); BITS("struct.Flags", struct Flags, big); FIELD("struct.Flags", struct Flags, tail);
  SIZE("struct.Packed", struct Packed); FIELD("struct.Packed", struct Packed, u); BITS("struct.Packed", struct Packed, v);
  FIELD("struct.Packed", struct Packed, w);
  SIZE("union.Value", union Value); SIZE("struct.Text", struct Text);
  SIZE("struct.Aligned", struct Aligned); FIELD("struct.Aligned", struct Aligned, b);
  SIZE("struct.Odd", struct Odd); FIELD("struct.Odd", struct Odd, ld); FIELD("struct.Odd", struct Odd, big);
  FIELD("struct.Odd", struct Odd, flag); SIZE("NodeAlias", NodeAlias); SIZE("Grid", Grid);
  SIZE("struct.Empty", struct Empty); FIELD("struct.Empty", struct Empty, after); SIZE("uint32_t", uint32_t);
  return 0; }
