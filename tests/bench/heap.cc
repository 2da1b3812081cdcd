#include "tests/bench/heap.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> held = 0;
std::atomic<std::size_t> peak = 0;

}  // namespace

// Replaces the library's; new[] and delete[] come here as well.
void* operator new(std::size_t bytes) {
  void* at = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc)
  if (at == nullptr) throw std::bad_alloc();
  held += malloc_usable_size(at);
  peak = std::max<std::size_t>(peak, held);
  return at;
}
void operator delete(void* at) noexcept {
  if (at != nullptr) held -= malloc_usable_size(at);
  std::free(at);  // NOLINT(cppcoreguidelines-no-malloc)
}
void operator delete(void* at, std::size_t /*bytes*/) noexcept { operator delete(at); }

namespace shardwise {

HeapUse::HeapUse() : before_(held) { peak = before_; }

std::size_t HeapUse::most() const { return peak - before_; }

}  // namespace shardwise
