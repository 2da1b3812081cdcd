#pragma once

#include <cstddef>

namespace shardwise {

/// Most bytes that the heap holds over a piece of code, beyond what it held before. Linking heap.cc
/// replaces the library's allocation to count them.
class HeapUse {
 public:
  HeapUse();
  std::size_t most() const;

 private:
  std::size_t before_;
};

}  // namespace shardwise
