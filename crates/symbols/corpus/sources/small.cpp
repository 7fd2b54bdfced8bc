// Templates, inheritance, a namespace without a name: what debug data and names of C++ have.
namespace {
struct hidden { int a; char b; };
int use(const hidden &h) { return h.a + h.b; }
}
namespace outer {
template <typename T, unsigned N> struct array { T items[N]; T &operator[](unsigned n) { return items[n]; } };
struct base { virtual ~base(); virtual int run(int) = 0; };
struct derived : virtual base { array<hidden, 3> all; int run(int n) override; };
int derived::run(int n) { return use(all[n % 3]) + n; }
}
template struct outer::array<double, 7>;
outer::base *make() { return new outer::derived; }
outer::base::~base() {}
void operator delete(void *, unsigned long) noexcept {}
