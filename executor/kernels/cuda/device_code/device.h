#pragma once

// The words that kernels are written with: the same for nvcc and for a host compiler, which builds
// them on tests/support/host_cuda. Kernels include nothing else of CUDA, start with launch() and
// declare shared memory with SHARDWISE_SHARED.
#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <string>

#include "executor/kernels/element.h"
#include "planner/spec/text/error.h"

#if defined(__CUDACC__)
#define SHARDWISE_SHARED(type, name, count) __shared__ type name[count]
#define SHARDWISE_DYNAMIC_SHARED(type, name)                         \
  extern __shared__ __align__(16) unsigned char shardwise_dynamic[]; \
  type* const name = reinterpret_cast<type*>(shardwise_dynamic)
#define SHARDWISE_UNROLL _Pragma("unroll")
#define SHARDWISE_PRAGMA(text) _Pragma(#text)
#define SHARDWISE_UNROLL_BY(count) SHARDWISE_PRAGMA(unroll count)
#define SHARDWISE_NO_UNROLL _Pragma("unroll 1")
#else
#include <host_cuda.h>
// threadIdx is unsigned, and so is much that is made of it.
#pragma GCC diagnostic ignored "-Wsign-conversion"
#if !defined(__clang__)  // elements beyond the row are neither read from memory nor used
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
// NOLINTBEGIN(bugprone-macro-parentheses): a declaration
/// `type name[count]`, the same for all threads of a block. \pre type needs no construction
#define SHARDWISE_SHARED(type, name, count) \
  static const char name##_site = 0;        \
  type* const name = static_cast<type*>(    \
      host_cuda::shared(&name##_site, sizeof(type) * static_cast<std::size_t>(count)))
/// The memory that launch_with_shared() gives a block, as an array of `type`.
#define SHARDWISE_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(host_cuda::dynamic_shared())
// NOLINTEND(bugprone-macro-parentheses)
#define SHARDWISE_UNROLL
#define SHARDWISE_UNROLL_BY(count)
#define SHARDWISE_NO_UNROLL
#endif

namespace shardwise::exec::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffU;

/// Dynamic shared memory of a block that CUDA gives without being asked for more, and the most that
/// every architecture has that there is code for: sm_86, sm_89 and sm_120 have 99 KiB.
/// Source: NVIDIA, CUDA C++ programming guide, Compute capabilities.
inline constexpr int kSharedUnasked = 48 << 10;
inline constexpr int kMostSharedBytes = 99 << 10;

/// Starts a kernel on `stream` and returns when it is issued. `name` says which in errors.
/// \param shared_bytes  dynamic shared memory of a block, at most kMostSharedBytes
/// \throws IoError when CUDA refuses it
template <class... P, class... A>
void launch_with_shared(cudaStream_t stream, const char* name, dim3 grid, dim3 block,
                        int shared_bytes, void (*kernel)(P...), A... arguments) {
#if defined(__CUDACC__)
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  config.stream = stream;
  cudaError_t error = cudaSuccess;
  // Each time: it holds for the GPU that is current, of which a process may have several.
  if (shared_bytes > kSharedUnasked) {
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  if (error == cudaSuccess) {
    error = cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
  }
  const char* const refusal = error == cudaSuccess ? nullptr : cudaGetErrorString(error);
#else
  const char* const refusal =
      host_cuda::enqueue(stream, name, grid, block, static_cast<std::size_t>(shared_bytes),
                         [=] { kernel(static_cast<P>(arguments)...); });
#endif
  if (refusal == nullptr) return;
  throw IoError(std::string("CUDA does not start the kernel ") + name + ": " + refusal);
}
/// Launches a kernel without dynamic shared memory.
template <class... P, class... A>
void launch(cudaStream_t stream, const char* name, dim3 grid, dim3 block, void (*kernel)(P...),
            A... arguments) {
  launch_with_shared(stream, name, grid, block, 0, kernel, arguments...);
}

/// `total` in pieces of `each`, the last may be short.
inline __host__ __device__ std::int64_t pieces(std::int64_t total, std::int64_t each) {
  return (total + each - 1) / each;
}

inline __device__ float widen(float x) { return x; }
inline __device__ float widen(Bf16 x) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16U);
#else
  return to_float(x);
#endif
}

template <class E>
__device__ E narrow(float x);
template <>
inline __device__ float narrow<float>(float x) {
  return x;
}
/// To nearest, ties to even.
template <>
inline __device__ Bf16 narrow<Bf16>(float x) {
#if defined(__CUDA_ARCH__)
  Bf16 made;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(made.bits) : "f"(x));
  return made;
#else
  return from_float<Bf16>(x);
#endif
}

inline __device__ std::uint32_t float_bits(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}
inline __device__ float float_of_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

/// e^x.
inline __device__ float exponential(float x) {
#if defined(__CUDA_ARCH__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}

/// Elements that are read and written at once, 16 bytes.
template <class E>
struct alignas(16) Vector {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(E));
  E at[kCount];
};
template <class E>
__device__ Vector<E> load(const E* from) {
  return *reinterpret_cast<const Vector<E>*>(from);
}
template <class E>
__device__ void store(E* to, const Vector<E>& v) {
  *reinterpret_cast<Vector<E>*>(to) = v;
}

/// Whether vectors may be read at `at`, and at multiples of all `strides` from there on.
template <class E, class... S>
bool takes_vectors(const E* at, S... strides) {
  return reinterpret_cast<std::uintptr_t>(at) % 16 == 0 &&
         ((static_cast<std::int64_t>(strides) % Vector<E>::kCount == 0) && ...);
}

}  // namespace shardwise::exec::cuda
