#pragma once

// The source of a CUDA kernel as host C++. The threads of a block are fibers, which barriers and
// shuffles switch; which of those that can go on runs next is drawn. Shared memory is poisoned.
// AddressSanitizer sees every access to it and to global memory. Under ThreadSanitizer each thread
// of a grid is a fiber of its own that nothing orders but what CUDA orders: launch, barriers and
// __syncwarp, not shuffles. It then names races within a block and between blocks.
// Not seen: anything below freedom from data races, speed, registers.
#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's names
#undef __launch_bounds__
#define __launch_bounds__(...)

// Position of the thread that runs; written at every switch.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

namespace host_cuda {

/// Sets the seed of the orders that are drawn from now on.
void set_seed(std::uint64_t seed);

/// Runs all threads of a grid, block after block in a drawn order, and returns when they have
/// ended. A block that can never go on, a lane that reads another that is not there, or more
/// threads or shared memory than a block may have ends the program with one line on stderr, which
/// begins with `name`. Grids that several host threads run come one after the other.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread,
              const char* name = "a kernel");

/// Called for every launch: puts the grid into `stream`. Runs it at once until a fake of CUDA's
/// runtime sets another. `name` says which kernel, in messages. Returns why it does not; null for
/// done.
using Enqueue =
    std::function<const char*(cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                              std::size_t shared_bytes, std::function<void()> thread)>;
void set_enqueue(Enqueue enqueue);  // empty: at once, again
const char* enqueue(cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                    std::size_t shared_bytes, std::function<void()> thread);

/// From now on the `index`-th barrier that a thread comes to (__syncthreads and __syncwarp, counted
/// from 0 in every block) neither waits nor orders: a defect that tests must find. -1: none.
void leave_out_barrier(int index);
/// The most barriers a thread has come to in one block since the last call.
int barriers_met();

/// From now on the first race that the thread sanitizer reports ends the program with kRaceStatus.
void exit_at_race();
inline constexpr int kRaceStatus = 66;
/// Whether this program was built with the thread sanitizer.
bool races_are_watched();

// Functions that the words below are made of.
void sync_threads();
void sync_warp(unsigned mask);
/// Copies `bytes` of what lane `source` brought; orders no memory.
void exchange(unsigned mask, const void* mine, void* theirs, std::size_t bytes, int source,
              const char* what);
/// mma.sync.m16n8k16 of bf16: c [16, 8] += a [16, 16] b [16, 8] of the warp, of whose fragments
/// each lane brings its own (NVIDIA, PTX ISA, Matrix fragments for mma.m16n8k16). The terms and c
/// are added in double and rounded once: PTX leaves their order to the hardware. Orders no memory.
void multiply(const unsigned* a, const unsigned* b, float* c);
/// ldmatrix.x4 of 16-bit elements, when a lane's row has been read. Orders no memory.
void distribute_matrices(const void* row, bool transposed, unsigned* made);
/// cp.async: a copy that this thread has begun.
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  bool is_there = false;  // else zeros are written
};
void begin_copy(const Copy& copy);
/// The thread's next copy; false when there is none.
bool end_copy(Copy& copy);
/// Shared memory of this block: the same for all its threads, another for each `site`.
void* shared(const void* site, std::size_t bytes);
void* dynamic_shared();

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) %
                          32);
}
template <class T>
T lane_value(unsigned mask, T value, int source, const char* what) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 64);
  T got;
  exchange(mask, &value, &got, sizeof(T), source, what);
  return got;
}

// Below, the accesses are the kernel's own: sanitizers see them.

inline void load_matrices(const void* row, bool transposed, unsigned* made) {
  unsigned char read[16];
  std::memcpy(read, row, sizeof(read));
  distribute_matrices(read, transposed, made);
}
/// It may happen at once or as late as wait_for_copies(): until then nobody may read or write
/// `to`, where there is poison, or write `from`.
inline void copy_async(void* to, const void* from, std::size_t bytes, bool is_there) {
  std::memset(to, 0xff, bytes);
  if (is_there) {
    unsigned char read[16];
    std::memcpy(read, from, bytes);
  }
  begin_copy({to, from, bytes, is_there});
}
inline void wait_for_copies() {
  for (Copy each; end_copy(each);) {
    if (each.is_there) {
      std::memcpy(each.to, each.from, each.bytes);
    } else {
      std::memset(each.to, 0, each.bytes);
    }
  }
}

}  // namespace host_cuda

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): CUDA's names
inline void __syncthreads() { host_cuda::sync_threads(); }
inline void __syncwarp(unsigned mask = ~0U) { host_cuda::sync_warp(mask); }
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int by) {
  return host_cuda::lane_value(mask, value, host_cuda::lane() ^ by, "__shfl_xor_sync");
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from) {
  return host_cuda::lane_value(mask, value, from, "__shfl_sync");
}
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)
