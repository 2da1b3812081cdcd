#pragma once

#include <array>
#include <cstddef>

namespace host_cuda {

/// The shared memory of one block after the other. It is poisoned before a block begins, and what
/// lies between two arrays must not be touched. Under the thread sanitizer no block gets memory
/// that another had: reuse would look like an order.
class SharedMemory {
 public:
  void begin_block(std::size_t dynamic_bytes);
  void end_block();
  /// The array that was made for `site` in this block, or a new one. It is read from several
  /// fibers, so it is never instrumented.
  void* array(const void* site, std::size_t bytes);
  void* dynamic() { return dynamic_; }

 private:
  unsigned char* fresh(std::size_t bytes);

  struct Array {
    const void* site = nullptr;
    void* at = nullptr;
  };
  std::array<Array, 32> arrays_{};
  std::size_t count_ = 0;
  unsigned char* pool_ = nullptr;
  std::size_t begin_ = 0;  // of this block's
  std::size_t end_ = 0;
  void* dynamic_ = nullptr;
};

}  // namespace host_cuda
