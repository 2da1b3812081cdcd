#pragma once

// What tests of kernels say to tests/support/host_cuda, where they run on a GPU: nothing draws
// orders there, watches races or leaves out barriers. See pinned_memory.cc.
#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace host_cuda {

inline void set_seed(std::uint64_t /*seed*/) {}
using Enqueue =
    std::function<const char*(cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                              std::size_t shared_bytes, std::function<void()> thread)>;
inline void set_enqueue(const Enqueue& /*enqueue*/) {}
[[noreturn]] inline const char* enqueue(cudaStream_t /*stream*/, const char* name, dim3 /*grid*/,
                                        dim3 /*block*/, std::size_t /*shared_bytes*/,
                                        const std::function<void()>& /*thread*/) {
  throw std::logic_error(std::string("the kernel ") + name + " was compiled for the host");
}
[[noreturn]] inline void run_grid(dim3 /*grid*/, dim3 /*block*/, std::size_t /*shared_bytes*/,
                                  const std::function<void()>& /*thread*/, const char* name) {
  throw std::logic_error(std::string("the kernel ") + name + " was compiled for the host");
}

inline void leave_out_barrier(int /*index*/) {}
inline int barriers_met() { return 0; }
inline void exit_at_race() {}
inline constexpr int kRaceStatus = 66;
constexpr bool races_are_watched() { return false; }

}  // namespace host_cuda
