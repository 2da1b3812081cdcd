// Has tests of kernels that were written for the host run on a GPU, as they are: what they allocate
// while a test runs is pinned memory of the host, an allocation each, which the device reads at the
// same address (and the checkers of CUDA's toolkit watch), and a launch returns when its kernel has
// ended. Not managed memory: where others use the machine, its faults may hang a GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support/on_gpu/skip_without_gpu.h"

namespace {

std::atomic<bool> in_a_test{false};
std::atomic<bool> any_pinned{false};

void* allocate(std::size_t bytes) {
  void* made = nullptr;
  const std::size_t some = bytes == 0 ? 1 : bytes;
  if (in_a_test && cudaHostAlloc(&made, some, cudaHostAllocMapped) == cudaSuccess) {
    any_pinned = true;
    return made;
  }
  made = std::malloc(some);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void release(void* at) {
  if (at == nullptr) return;
  if (any_pinned) {
    cudaPointerAttributes attributes{};
    // What CUDA does not tell of, after a failed kernel and at the end of the program, stays.
    if (cudaPointerGetAttributes(&attributes, at) != cudaSuccess) return;
    if (attributes.type == cudaMemoryTypeHost) {
      static_cast<void>(cudaFreeHost(at));
      return;
    }
  }
  std::free(at);
}

/// Memory is pinned while a test runs.
class Pinned final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    in_a_test = !testing::Test::IsSkipped();
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { in_a_test = false; }
};

/// Before CUDA is first called, and before the tests run.
[[maybe_unused]] const bool kPrepared = [] {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  on_gpu::skip_without_gpu();
  testing::UnitTest::GetInstance()->listeners().Append(new Pinned);
  return true;
}();

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* at) noexcept { release(at); }
void operator delete[](void* at) noexcept { release(at); }
void operator delete(void* at, std::size_t /*bytes*/) noexcept { release(at); }
void operator delete[](void* at, std::size_t /*bytes*/) noexcept { release(at); }
