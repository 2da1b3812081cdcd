#include <algorithm>

#include "executor/kernels/cuda/device_code/typed.h"
#include "executor/kernels/cuda/movement.h"
#include "executor/kernels/with_dtype.h"

namespace shardwise::exec::cuda {
namespace {

// What becomes of an element `to` and the one of another tensor beside it.

struct Zero {
  static constexpr bool kReadsTo = false;
  static constexpr bool kReadsFrom = false;
  template <class To, class From>
  __device__ void operator()(To& to, From /*from*/) const {
    to = narrow<To>(0.0F);
  }
};
struct Assign {
  static constexpr bool kReadsTo = false;
  static constexpr bool kReadsFrom = true;
  template <class E>
  __device__ void operator()(E& to, E from) const {
    to = from;
  }
  template <class To, class From>
  __device__ void operator()(To& to, From from) const {
    to = narrow<To>(widen(from));
  }
};
struct Add {
  static constexpr bool kReadsTo = true;
  static constexpr bool kReadsFrom = true;
  template <class To, class From>
  __device__ void operator()(To& to, From from) const {
    to = narrow<To>(widen(to) + widen(from));
  }
};
struct Multiply {
  static constexpr bool kReadsTo = true;
  static constexpr bool kReadsFrom = false;
  const float* factor;
  template <class To, class From>
  __device__ void operator()(To& to, From /*from*/) const {
    to = narrow<To>(widen(to) * *factor);
  }
};

/// Of elements from `first` on. The last chunk may be short.
template <int kStep, class F, class To, class From>
__global__ void __launch_bounds__(kChunkThreads)
    each_element(std::int64_t first, std::int64_t end, To* to, const From* from, F f) {
  const std::int64_t begin = first + chunk_of_thread() * kStep;
  if (begin + kStep <= end) {
    Chunk<To, kStep> made = {};
    Chunk<From, kStep> in = {};
    if constexpr (F::kReadsTo) made = load_chunk<kStep>(to + begin);
    if constexpr (F::kReadsFrom) in = load_chunk<kStep>(from + begin);
    SHARDWISE_UNROLL
    for (int i = 0; i < kStep; ++i) f(made.at[i], in.at[i]);
    store_chunk(to + begin, made);
    return;
  }
  for (std::int64_t i = begin; i < end; ++i) {
    To made = {};
    From in = {};
    if constexpr (F::kReadsTo) made = to[i];
    if constexpr (F::kReadsFrom) in = from[i];
    f(made, in);
    to[i] = made;
  }
}

template <class F, class To, class From>
void start(const char* name, std::int64_t first, std::int64_t end, To* to, const From* from, F f,
           cudaStream_t stream) {
  constexpr int kStep = kSharedStep<To, From>;
  if (first >= end) return;
  const bool vectors = takes_vectors(to) && takes_vectors(from);  // first is a multiple of it
  launch(stream, name, chunk_blocks(pieces(end - first, vectors ? kStep : 1)), dim3(kChunkThreads),
         vectors ? each_element<kStep, F, To, From> : each_element<1, F, To, From>, first, end, to,
         from, f);
}

constexpr int kHeadEach = 8;  // of a thread
constexpr std::int64_t kHead = std::int64_t{kHeadEach} * kChunkThreads;

/// The first elements, in place by one block: all are read before one is written.
template <class To, class From>
__global__ void __launch_bounds__(kChunkThreads)
    cast_head_in_place(int count, To* to, const From* from) {
  From in[kHeadEach] = {};
  SHARDWISE_UNROLL
  for (int i = 0; i < kHeadEach; ++i) {
    const int at = i * kChunkThreads + static_cast<int>(threadIdx.x);
    if (at < count) in[i] = from[at];
  }
  __syncthreads();
  SHARDWISE_UNROLL
  for (int i = 0; i < kHeadEach; ++i) {
    const int at = i * kChunkThreads + static_cast<int>(threadIdx.x);
    if (at < count) Assign()(to[at], in[i]);
  }
}

/// In fp32, elements [n, 2n) lie where those in bf16 from 2n to 4n do: the halves of what is cast
/// together are apart, and one lies where nobody reads any more, when it goes upwards to narrow and
/// downwards to widen.
template <class To, class From>
void cast_in_place(std::int64_t count, To* to, const From* from, cudaStream_t stream) {
  const auto head = [&] {
    launch(stream, "cast in place", dim3(1), dim3(kChunkThreads), cast_head_in_place<To, From>,
           static_cast<int>(std::min(kHead, count)), to, from);
  };
  const auto range = [&](std::int64_t first) {
    start("cast in place", first, std::min(2 * first, count), to, from, Assign(), stream);
  };
  if (count == 0) return;
  if constexpr (sizeof(To) < sizeof(From)) {
    head();
    for (std::int64_t first = kHead; first < count; first *= 2) range(first);
  } else {
    std::int64_t first = kHead;
    while (2 * first < count) first *= 2;
    for (; first >= kHead; first /= 2) range(first);
    head();
  }
}

__global__ void factor_of_tokens(const std::int64_t* tokens, std::int64_t ranks, float* factor) {
  std::int64_t all = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) all += tokens[rank];
  *factor = 1 / static_cast<float>(all > 1 ? all : 1);
}

template <class F>
void each_of(const char* name, const TensorView& to, F f, cudaStream_t stream) {
  with_dtype(to.dtype, [&]<class E>(E) {
    E* const at = elements<E>(to);
    start(name, 0, static_cast<std::int64_t>(to.count), at, static_cast<const E*>(at), f, stream);
  });
}

}  // namespace

void clear(const TensorView& tensor, cudaStream_t stream) {
  each_of("clear", tensor, Zero(), stream);
}

void scale(const ScaleWork& w, cudaStream_t stream) {
  each_of("scale", w.tensor, Multiply{w.factor}, stream);
}

void token_factor(const TokenFactorWork& w, cudaStream_t stream) {
  launch(stream, "token factor", dim3(1), dim3(1), factor_of_tokens, w.tokens, w.ranks, w.factor);
}

void cast(const TensorView& to, const ConstTensorView& from, cudaStream_t stream) {
  const auto count = static_cast<std::int64_t>(to.count);
  if (to.data == from.data && to.dtype == from.dtype) return;
  with_dtype(to.dtype, [&]<class To>(To) {
    with_dtype(from.dtype, [&]<class From>(From) {
      if (sizeof(To) != sizeof(From) && to.data == from.data) {
        return cast_in_place(count, elements<To>(to), elements<From>(from), stream);
      }
      start("cast", 0, count, elements<To>(to), elements<From>(from), Assign(), stream);
    });
  });
}

void accumulate(const TensorView& sum, const ConstTensorView& each, cudaStream_t stream) {
  with_dtype(sum.dtype, [&]<class To>(To) {
    with_dtype(each.dtype, [&]<class From>(From) {
      start("accumulate", 0, static_cast<std::int64_t>(sum.count), elements<To>(sum),
            elements<From>(each), Add(), stream);
    });
  });
}

}  // namespace shardwise::exec::cuda
