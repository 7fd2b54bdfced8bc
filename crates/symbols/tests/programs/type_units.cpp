// Types that are big enough for units of their own with -fdebug-types-section, one in the other.
template <class T> struct Pair { T first; };
struct Plain { short s; };
struct Below { int b; };
struct Outer : Below { Pair<Pair<char>> pair; Plain plain; Plain *next; };
int main() {
    Outer outer{};
    return outer.plain.s + outer.b;
}
