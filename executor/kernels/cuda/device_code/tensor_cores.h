#pragma once

// The words of tensor cores and of copies that go on beside compute, for sm_80 and later: PTX under
// nvcc, tests/support/host_cuda on the host. All lanes of a warp say those that name matrices.
// Source: NVIDIA, PTX ISA, mma.sync.m16n8k16, ldmatrix, cp.async.

#include "executor/kernels/cuda/device_code/device.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "bf16 products of tensor cores need sm_80"
#endif

namespace shardwise::exec::cuda {

// Part of a matrix that a lane has in an mma, g = lane / 4 and t = lane % 4. Two bf16 a register,
// the first in the lower half.
/// [16, 16]: rows g and g + 8 of columns 2t, 2t + 1; then both of columns 2t + 8, 2t + 9.
struct LeftFragment {
  unsigned at[4];
};
/// Two of [16, 8], side by side: column g of rows 2t, 2t + 1, then 2t + 8, 2t + 9; each of the two.
struct RightFragments {
  unsigned at[4];
};
/// fp32 [16, 8]: row g of columns 2t, 2t + 1, row g + 8 of them.
struct SumFragment {
  float at[4];
};

/// sums += left right, products of 16 terms in fp32. The order in which one of them adds its terms
/// is the hardware's; on the host they are added in double and rounded once.
/// \param half  which of the right matrices: 0 or 1
inline __device__ void multiply(const LeftFragment& left, const RightFragments& right, int half,
                                SumFragment& sums) {
  const unsigned* const a = left.at;
  const unsigned* const b = right.at + (half == 0 ? 0 : 2);
  float* const c = sums.at;
#if defined(__CUDA_ARCH__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#elif !defined(__CUDACC__)
  host_cuda::multiply(a, b, c);
#endif
}

#if defined(__CUDA_ARCH__)
inline __device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
#endif

/// Four matrices of 8 rows of 16 bytes in shared memory: lane l says where row l % 8 of matrix
/// l / 8 is, and gets of each matrix columns 2t, 2t + 1 of row g; with kTransposed, of the matrix
/// transposed.
template <bool kTransposed>
inline __device__ void load_matrices(const Bf16* row, unsigned (&made)[4]) {
#if defined(__CUDA_ARCH__)
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(made[0]), "=r"(made[1]), "=r"(made[2]), "=r"(made[3])
                 : "r"(shared_address(row))
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(made[0]), "=r"(made[1]), "=r"(made[2]), "=r"(made[3])
                 : "r"(shared_address(row))
                 : "memory");
  }
#elif !defined(__CUDACC__)
  host_cuda::load_matrices(row, kTransposed, made);
#endif
}

/// Begins a copy of kBytes (4 or 16, which divide both addresses) to shared memory, or of zeros
/// where nothing `is_there` to be read. It may happen at any time until wait_for_copies().
template <int kBytes>
inline __device__ void copy_async(void* to, const void* from, bool is_there) {
  static_assert(kBytes == 4 || kBytes == 16);
#if defined(__CUDA_ARCH__)
  const unsigned at = shared_address(to);
  const int read = is_there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(read)
                 : "memory");
  }
#elif !defined(__CUDACC__)
  host_cuda::copy_async(to, from, kBytes, is_there);
#endif
}

/// Waits for all copies that this thread has begun. Other threads see them behind a barrier.
inline __device__ void wait_for_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_all;" ::: "memory");
#elif !defined(__CUDACC__)
  host_cuda::wait_for_copies();
#endif
}

/// Two numbers rounded to nearest bf16, ties to even, as fragments have them.
inline __device__ unsigned pack(float low, float high) {
#if defined(__CUDA_ARCH__)
  unsigned made = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(made) : "f"(high), "f"(low));
  return made;
#else
  return static_cast<unsigned>(from_float<Bf16>(low).bits) |
         static_cast<unsigned>(from_float<Bf16>(high).bits) << 16U;
#endif
}

/// 2^x.
inline __device__ float power_of_two(float x) {
#if defined(__CUDA_ARCH__)
  float made = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
#else
  return std::exp2(x);
#endif
}

/// 1 / x within a last place.
inline __device__ float reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float made = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(made) : "f"(x));
  return made;
#else
  return 1 / x;
#endif
}

}  // namespace shardwise::exec::cuda
