#include "executor/kernels/products/gemm.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "executor/kernels/products/gemm_library.h"
#include "executor/kernels/products/onednn.h"
#include "executor/kernels/wide.h"

#ifdef SHARDWISE_CBLAS
#include <cblas.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <mutex>
#include <vector>

#include "planner/spec/text/error.h"
#include "planner/spec/text/format.h"
#else
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#endif

namespace shardwise::exec {
namespace {

// Blocks are large enough that packing them costs little beside multiplying them, and small enough
// that a few threads share a matrix evenly.
constexpr std::int64_t kWideBlock = 512;
constexpr std::int64_t kFewBlocks = 8;
// Up to so many blocks their number is one that 2 and 4 threads share evenly, by narrower ones.
constexpr std::int64_t kManyBlocks = 16;
constexpr std::int64_t kShares = 4;
constexpr std::int64_t kColumns = 16;  // that the library computes at a time
// With bf16 a block's operands are converted to fp32 on the stack, `kDepth` of k at a time.
constexpr std::int64_t kNarrowBlock = 192;
constexpr std::int64_t kDepth = 256;

std::int64_t blocks(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

template <class E>
MatrixView<E> part(MatrixView<E> view, std::int64_t row, std::int64_t column) {
  view.data += view.transposed ? column * view.stride + row : row * view.stride + column;
  return view;
}

/// [rows, columns] of a matrix in fp32: copied to `place` as it lies, row by row.
MatrixView<const float> widened(MatrixView<const Bf16> from, std::int64_t rows,
                                std::int64_t columns, float* place) {
  if (from.transposed) std::swap(rows, columns);
  for (std::int64_t r = 0; r < rows; ++r) {
    widen_run(from.data + r * from.stride, columns, place + r * columns);
  }
  return {place, columns, from.transposed};
}

void add_and_store(float* sum, std::int64_t count, float* to, bool adds) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = sum[i] + (adds ? to[i] : 0.0F);
}
void add_and_store(float* sum, std::int64_t count, Bf16* to, bool adds) {
  for (std::int64_t i = 0; i < count && adds; ++i) sum[i] += to_float(to[i]);
  narrow_run(sum, count, to);
}

template <class C>
void narrow_block(const GemmShape& s, MatrixView<const Bf16> a, MatrixView<const Bf16> b,
                  MatrixView<C> c, bool adds) {
  float left[kNarrowBlock * kDepth];
  float right[kDepth * kNarrowBlock];
  float sum[kNarrowBlock * kNarrowBlock];
  for (std::int64_t k = 0; k < s.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, s.k - k);
    tile_gemm({s.m, s.n, depth}, widened(part(a, 0, k), s.m, depth, left),
              widened(part(b, k, 0), depth, s.n, right), {sum, s.n}, k > 0);
  }
  for (std::int64_t r = 0; r < s.m; ++r) {
    add_and_store(sum + r * s.n, s.n, c.data + r * c.stride, adds);
  }
}

/// A block of any size, in those that the stack has room for.
template <class C>
void by_narrow_blocks(const GemmShape& s, MatrixView<const Bf16> a, MatrixView<const Bf16> b,
                      MatrixView<C> c, bool adds) {
  for (std::int64_t row = 0; row < s.m; row += kNarrowBlock) {
    for (std::int64_t column = 0; column < s.n; column += kNarrowBlock) {
      narrow_block({std::min(kNarrowBlock, s.m - row), std::min(kNarrowBlock, s.n - column), s.k},
                   part(a, row, 0), part(b, 0, column), part(c, row, column), adds);
    }
  }
}

}  // namespace

#ifdef SHARDWISE_CBLAS

namespace {

/// Of OpenBLAS for each thread that multiplies while others do (0.3.21 as Debian builds it,
/// measured), and of the thread: its stack and glibc's memory of threads.
constexpr std::int64_t kBufferBytes = std::int64_t{128} << 20;
constexpr std::int64_t kThreadBytes = std::int64_t{72} << 20;

/// Address space that nothing else takes until the first product.
class Room {
 public:
  void hold(std::int64_t threads) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const auto bytes = static_cast<std::size_t>(threads * (kBufferBytes + kThreadBytes));
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const at = ::mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
    if (at == MAP_FAILED) {
      throw IoError(fmt::format(
          "no room for the buffers of {} computing thread{}: they take {} of "
          "address space, which ulimit -v limits to {}",
          threads, threads == 1 ? "" : "s", format_bytes(Bytes(static_cast<std::int64_t>(bytes))),
          format_bytes(Bytes(static_cast<std::int64_t>(limit.rlim_cur)))));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    held_.emplace_back(at, bytes);
  }
  void let_go() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [at, bytes] : held_) ::munmap(at, bytes);
    held_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<void*, std::size_t>> held_;  // guarded by mutex_
};

Room& room() {
  static Room one;
  return one;
}

}  // namespace

void reserve_gemm_buffers(std::int64_t threads) { room().hold(threads); }

void tile_gemm(const GemmShape& s, MatrixView<const float> a, MatrixView<const float> b,
               MatrixView<float> c, bool adds) {
  // Threads are ours: each call is of one thread, so that sums do not depend on their number.
  static const bool kOneThread = [] {
    static_cast<void>(gemm_library());  // chooses its kernels
    openblas_set_num_threads(1);
    room().let_go();
    return true;
  }();
  static_cast<void>(kOneThread);
  const auto op = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const auto number = [](std::int64_t x) { return static_cast<blasint>(x); };
  cblas_sgemm(CblasRowMajor, op(a.transposed), op(b.transposed), number(s.m), number(s.n),
              number(s.k), 1.0F, a.data, number(a.stride), b.data, number(b.stride),
              adds ? 1.0F : 0.0F, c.data, number(c.stride));
}

#else

void reserve_gemm_buffers(std::int64_t) {}

namespace {

using Stride = Eigen::OuterStride<>;
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Columns = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
template <class M>
using View = Eigen::Map<M, Eigen::Unaligned, Stride>;

template <class A, class B>
void multiply(const A& a, const B& b, View<Rows>& c, bool adds) {
  if (adds) {
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
}

template <class A>
void multiply_by(const GemmShape& s, const A& a, MatrixView<const float> b, View<Rows>& c,
                 bool adds) {
  if (b.transposed) {
    multiply(a, View<const Columns>(b.data, s.k, s.n, Stride(b.stride)), c, adds);
  } else {
    multiply(a, View<const Rows>(b.data, s.k, s.n, Stride(b.stride)), c, adds);
  }
}

}  // namespace

void tile_gemm(const GemmShape& s, MatrixView<const float> a, MatrixView<const float> b,
               MatrixView<float> c, bool adds) {
  View<Rows> to(c.data, s.m, s.n, Stride(c.stride));
  if (a.transposed) {
    multiply_by(s, View<const Columns>(a.data, s.m, s.k, Stride(a.stride)), b, to, adds);
  } else {
    multiply_by(s, View<const Rows>(a.data, s.m, s.k, Stride(a.stride)), b, to, adds);
  }
}

#endif

template <class A, class B, class C>
void gemm(const GemmShape& s, MatrixView<const A> a, MatrixView<const B> b, MatrixView<C> c,
          bool adds, Workers& workers) {
  constexpr bool kWide =
      std::is_same_v<A, float> && std::is_same_v<B, float> && std::is_same_v<C, float>;
  const bool direct = kWide || bf16_library().used;
  std::int64_t block = direct ? kWideBlock : kNarrowBlock;
  if (direct && blocks(s.m, block) * blocks(s.n, block) < kFewBlocks) block /= 2;
  const std::int64_t down = blocks(s.m, block);
  std::int64_t across = blocks(s.n, block);
  std::int64_t width = block;
  if (down * across > 2 && down * across < kManyBlocks) {
    while (down * across % kShares != 0) ++across;
    width = blocks(blocks(s.n, across), kColumns) * kColumns;
    across = blocks(s.n, width);
  }
  workers.run(down * across, [&](std::int64_t task) {
    const std::int64_t row = task / across * block;
    const std::int64_t column = task % across * width;
    const GemmShape shape = {std::min(block, s.m - row), std::min(width, s.n - column), s.k};
    const auto left = part(a, row, 0);
    const auto right = part(b, 0, column);
    const auto to = part(c, row, column);
    if constexpr (kWide) {
      tile_gemm(shape, left, right, to, adds);
    } else if (!direct || !onednn_gemm(shape, left, right, to, adds)) {
      by_narrow_blocks(shape, left, right, to, adds);
    }
  });
}

template void gemm(const GemmShape&, MatrixView<const float>, MatrixView<const float>,
                   MatrixView<float>, bool, Workers&);
template void gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                   MatrixView<Bf16>, bool, Workers&);
template void gemm(const GemmShape&, MatrixView<const Bf16>, MatrixView<const Bf16>,
                   MatrixView<float>, bool, Workers&);

}  // namespace shardwise::exec
