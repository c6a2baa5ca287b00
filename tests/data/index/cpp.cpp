#include <vector>
#include "größe.h"
/// Shop things.
namespace shop::sub {
template <typename T, int N = 3>
class Lager final : public Basis<T>, private ns::Other {
  int geheim_;
public:
  /** Makes. */
  Lager(int a) : geheim_(a) {}
  explicit Lager();
  ~Lager();
  T& get(size_t i) const noexcept { return data_.at(i); }
  virtual void zähle(std::vector<T> v) = 0;
  Lager& operator+=(const Lager& o) { return *this; }
  operator bool() const { return true; }
  static constexpr int MAX = 3, B = 4;
  std::vector<T> *teile, mehr;
  struct Innen { int x; enum class Farbe : int { Rot, Grün = 2 }; };
  template <class U> U conv(U u);
  using Value = T;
  friend void f(Lager&);
protected:
  void prot();
};
template <typename T> T& Lager<T>::get(int i) { return helper<T>(i); }
void Lager<int>::zähle() { auto x = [](int a) { return foo(a); }; new Ding(1); }
enum Plain { A, B };
typedef struct { int a; } S;
int global = 3;
extern "C" { int cfunc(int a); }
static void hidden() {}
#define MAX(a, b) ((a) > (b))
concept C = requires(T t) { t.x(); };
}
int main(int argc, char **argv) { shop::sub::run(); return 0; }
int *ptr(void) { return 0; }
using namespace std;
template <> struct hash<Foo> { size_t operator()(Foo f) const { return 1; } };
bool operator==(const A& a, const B& b);
