#include "facts.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <map>
namespace geo {
struct Vec3 { double x, y, z; };
union Val { int64_t i; double d; char s[8]; };
class Shape { public: virtual ~Shape() {} virtual double area() const { return 0; } Vec3 pos{}; uint32_t id = 0;
  unsigned visible : 1; unsigned layer : 7; static int count; enum class Kind : char { a, b } kind = Kind::a; };
int Shape::count = 0;
class Box : public Shape { public: double area() const override { return ext.x; } Vec3 ext{1, 2, 3}; Val v[3];
  struct { int a; short b; } inner[2]; };
inline namespace v2 { struct Inline { int a; struct Deep { char c; int d; } deep; }; }
namespace { struct Hidden { char c; long l; }; }
struct Left { int l; }; struct Right { long r; char rc; }; struct Nothing {};
struct Both : Nothing, Left, Right { char own; };
struct Virtual : virtual Left { long v; };
template <class T, int N> struct Array { T data[N]; int used; struct Iter { T *at; bool end; }; };
template <class T> struct Pair { T first; Pair *next; };
struct Refs { int &r; Vec3 &&rr; int Vec3::*member; void (Vec3::*method)(); decltype(nullptr) null; char16_t wide; };
}
using Grid = geo::Array<geo::Vec3, 4>;
geo::Box keep1; geo::Inline keep2; geo::Hidden keep3; geo::Both keep4; geo::Virtual keep5; Grid keep6; Grid::Iter keep7;
geo::Pair<geo::Pair<int>> keep8; std::string keep9; std::vector<int> keep10; std::unique_ptr<geo::Box> keep11;
std::map<int, std::string> keep12; geo::Refs *keep13;
#define V(X) X
int main() {
  using namespace geo;
  SIZE("class.geo::Box", Box); SIZE("class.geo::Shape", Shape); SIZE("struct.geo::Vec3", Vec3); SIZE("union.geo::Val", Val);
  FIELD("class.geo::Box", Box, ext.y); FIELD("class.geo::Box", Box, v[2]); FIELD("class.geo::Box", Box, inner[1].b);
  FIELD("class.geo::Shape", Shape, pos.z); FIELD("class.geo::Shape", Shape, id); FIELD("class.geo::Shape", Shape, kind);
  FIELD("struct.geo::v2::Inline", Inline, deep.d); SIZE("struct.geo::v2::Inline::Deep", Inline::Deep);
  SIZE("struct.geo::(anonymous namespace)::Hidden", Hidden); FIELD("struct.geo::(anonymous namespace)::Hidden", Hidden, l);
  SIZE("struct.geo::Both", Both); FIELD("struct.geo::Both", Both, own); SIZE("struct.geo::Virtual", Virtual);
  SIZE("geo::Array<geo::Vec3, 4>", Grid); FIELD("struct.geo::Array.3", Grid, data[3].y); FIELD("Grid", Grid, used);
  SIZE("geo::Array<geo::Vec3,4>::Iter", Grid::Iter); SIZE("geo::Pair<geo::Pair<int> >", Pair<Pair<int>>);
  SIZE("class.std::vector<int, std::allocator<int>>", std::vector<int>);
  SIZE("struct.geo::Refs", Refs); FIELD("struct.geo::Refs", Refs, wide); FIELD("struct.geo::Refs", Refs, method);
  FIELD("struct.geo::Refs", Refs, member); FIELD("struct.geo::Refs", Refs, null);
  struct Local { char a; int b; }; Local local{}; SIZE("struct.Local", Local); FIELD("struct.Local", Local, b);
  keep3.l = local.b; return (int)keep3.l + keep3.c; }
