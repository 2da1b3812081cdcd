#include "executor/kernels/cudnn/sdpa_graph.h"

#include <fmt/format.h>

#include "executor/kernels/cudnn/cudnn_graph_builder.h"

namespace shardwise::exec {
namespace {

using Tensor = CudnnGraphBuilder::Tensor;
using Four = CudnnGraphBuilder::Four;

constexpr cudnnDataType_t kElement = CUDNN_DATA_BFLOAT16;
constexpr cudnnDataType_t kFloat = CUDNN_DATA_FLOAT;

/// cuDNN knows attention by the operations' order and types: what is written here is what its
/// engines look for. Other graphs of the same function are refused or slow.
class Attention {
 public:
  Attention(CudnnGraphBuilder& graph, const SdpaWork& work)
      : g_(graph),
        s_(work.shape),
        deterministic_(work.deterministic),
        scores_{s_.batch, s_.heads, s_.sequence, s_.sequence},
        rows_{s_.batch, s_.heads, s_.sequence, 1},
        whole_{s_.batch, s_.heads, s_.sequence, s_.head_dim} {}

  void forward() {
    const Tensor scores = masked(scaled_scores());
    const Tensor most = between(rows_);
    g_.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
    const Tensor exponentials = exponential(minus(scores, most, scores_), scores_);
    const Tensor sum = between(rows_);
    g_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
    const Tensor logarithm = between(rows_);
    g_.pointwise(CUDNN_POINTWISE_LOG, sum, nullptr, nullptr, logarithm);
    g_.pointwise(CUDNN_POINTWISE_ADD, most, logarithm, nullptr, row_tensor(SdpaTensor::log_sums));
    const Tensor p = g_.between(scores_, kElement);
    g_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, nullptr, p);
    g_.product(p, part(SdpaTensor::values, s_.kv_heads), out(SdpaTensor::out));
  }

  void backward() {
    const Tensor d_out = out(SdpaTensor::d_out);
    const Tensor sums = row_sums(d_out);
    const Tensor queries = part(SdpaTensor::queries, s_.heads);
    const Tensor keys = turned(SdpaTensor::keys);
    const Tensor scores = scaled_scores(queries, keys);
    const Tensor log_sums = row_tensor(SdpaTensor::log_sums);
    const Tensor p = exponential(masked(minus(scores, log_sums, scores_)), scores_);
    sum_of_group(transposed(p), d_out, part(SdpaTensor::d_values, s_.kv_heads));

    const Tensor d_p = between(scores_);
    g_.product(d_out, turned(SdpaTensor::values), d_p);
    const Tensor times_p = times(minus(d_p, sums, scores_), p, kFloat);
    const Tensor d_scores = times(times_p, scale(), kElement);
    sum_of_group(transposed(d_scores), queries, part(SdpaTensor::d_keys, s_.kv_heads));

    const std::int64_t width = s_.qkv_width();
    const Four key_strides = {s_.sequence * width, s_.head_dim, width, 1};
    const Tensor upright =
        g_.between({s_.batch, s_.kv_heads, s_.sequence, s_.head_dim}, key_strides, kElement);
    g_.reshape(keys, upright);
    const Tensor d_queries = part(SdpaTensor::d_queries, s_.heads);
    if (deterministic_) {
      g_.product(d_scores, upright, d_queries);
      return;
    }
    const Tensor sum = in_memory(SdpaTensor::d_queries_sum, whole_);
    g_.product(d_scores, upright, sum);
    g_.pointwise(CUDNN_POINTWISE_IDENTITY, sum, nullptr, nullptr, d_queries);
  }

 private:
  static std::int64_t id(SdpaTensor tensor) { return static_cast<std::int64_t>(tensor); }
  Tensor between(const Four& dimensions) { return g_.between(dimensions, kFloat); }
  Tensor number(SdpaTensor which) { return g_.number(id(which), kFloat); }

  /// Queries, keys or values, or their gradients, where they are in [batch, sequence, qkv_width].
  Tensor part(SdpaTensor which, std::int64_t heads) {
    const std::int64_t width = s_.qkv_width();
    return g_.given(id(which), {s_.batch, heads, s_.sequence, s_.head_dim},
                    {s_.sequence * width, s_.head_dim, width, 1}, kElement);
  }
  /// Keys or values with rows for columns.
  Tensor turned(SdpaTensor which) {
    const std::int64_t width = s_.qkv_width();
    return g_.given(id(which), {s_.batch, s_.kv_heads, s_.head_dim, s_.sequence},
                    {s_.sequence * width, s_.head_dim, 1, width}, kElement);
  }
  /// out or its gradient, [batch, sequence, heads, head_dim].
  Tensor out(SdpaTensor which) {
    const std::int64_t width = s_.heads * s_.head_dim;
    return g_.given(id(which), whole_, {s_.sequence * width, s_.head_dim, width, 1}, kElement);
  }
  Tensor in_memory(SdpaTensor which, const Four& d) {
    return g_.given(id(which), d, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, kFloat);
  }
  Tensor row_tensor(SdpaTensor which) { return in_memory(which, rows_); }
  Tensor scale() {
    if (scale_ == nullptr) scale_ = number(SdpaTensor::scale);
    return scale_;
  }

  Tensor scaled_scores() {
    return scaled_scores(part(SdpaTensor::queries, s_.heads), turned(SdpaTensor::keys));
  }
  Tensor scaled_scores(Tensor queries, Tensor keys) {
    const Tensor scores = between(scores_);
    g_.product(queries, keys, scores);
    return times(scores, scale(), kFloat);
  }
  Tensor times(Tensor x, Tensor by, cudnnDataType_t type) {
    const Tensor y = g_.between(scores_, type);
    g_.pointwise(CUDNN_POINTWISE_MUL, x, by, nullptr, y);
    return y;
  }
  Tensor minus(Tensor x, Tensor less, const Four& dimensions) {
    const Tensor y = between(dimensions);
    g_.pointwise(CUDNN_POINTWISE_SUB, x, less, nullptr, y);
    return y;
  }
  Tensor exponential(Tensor x, const Four& dimensions) {
    const Tensor y = between(dimensions);
    g_.pointwise(CUDNN_POINTWISE_EXP, x, nullptr, nullptr, y);
    return y;
  }

  /// Scores of keys that the query sees; others so low that their exponentials are 0.
  Tensor masked(Tensor scores) {
    const Tensor row = g_.between(scores_, CUDNN_DATA_INT32);
    const Tensor column = g_.between(scores_, CUDNN_DATA_INT32);
    const Tensor sees = g_.between(scores_, CUDNN_DATA_BOOLEAN);
    const Tensor causal = between(scores_);
    g_.index(scores, 2, row);
    g_.index(scores, 3, column);
    g_.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, nullptr, sees, CUDNN_DATA_BOOLEAN);
    g_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, number(SdpaTensor::ahead), sees, causal);
    if (s_.window == 0 || s_.window >= s_.sequence) return causal;
    // Behind: column + window <= row. The engines know it in fp32, exact below 2^24.
    const Tensor from = between(scores_);
    const Tensor key = between(scores_);
    const Tensor reach = between(scores_);
    const Tensor inside = g_.between(scores_, CUDNN_DATA_BOOLEAN);
    const Tensor windowed = between(scores_);
    g_.index(causal, 2, from);
    g_.index(causal, 3, key);
    g_.pointwise(CUDNN_POINTWISE_ADD, key, number(SdpaTensor::window), nullptr, reach);
    g_.pointwise(CUDNN_POINTWISE_CMP_GT, reach, from, nullptr, inside, CUDNN_DATA_BOOLEAN);
    g_.pointwise(CUDNN_POINTWISE_BINARY_SELECT, causal, number(SdpaTensor::behind), inside,
                 windowed);
    return windowed;
  }

  /// out d_out of each row, which is the sum of p d_p that the softmax's gradient needs.
  Tensor row_sums(Tensor d_out) {
    const std::int64_t width = s_.heads * s_.head_dim;
    const Tensor by_element =
        g_.between(whole_, {s_.sequence * width, s_.sequence * s_.head_dim, width, 1}, kFloat);
    g_.pointwise(CUDNN_POINTWISE_MUL, d_out, out(SdpaTensor::out), nullptr, by_element);
    const Tensor sum = between(rows_);
    g_.reduce(CUDNN_REDUCE_TENSOR_ADD, by_element, sum);
    const Tensor sums = row_tensor(SdpaTensor::row_sums);
    g_.pointwise(CUDNN_POINTWISE_MUL, sum, number(SdpaTensor::one), nullptr, sums);
    return sums;
  }

  Tensor transposed(Tensor scores) {
    const std::int64_t square = s_.sequence * s_.sequence;
    const Tensor y = g_.between(scores_, {s_.heads * square, square, 1, s_.sequence}, kElement);
    g_.reshape(scores, y);
    return y;
  }
  /// sums = a b, over the query heads that share a key/value head.
  void sum_of_group(Tensor a, Tensor b, Tensor sums) {
    if (s_.heads == s_.kv_heads) {
      g_.product(a, b, sums);
      return;
    }
    const Tensor each = g_.between(whole_, kElement);
    g_.product(a, b, each);
    g_.reduce(CUDNN_REDUCE_TENSOR_ADD, each, sums);
  }

  CudnnGraphBuilder& g_;
  const AttentionShape& s_;
  bool deterministic_;
  Four scores_;
  Four rows_;
  Four whole_;
  Tensor scale_ = nullptr;
};

}  // namespace

std::optional<std::string> sdpa_unsupported(const AttentionShape& shape, DType dtype) {
  constexpr std::int64_t kVector = 8;  // elements of bf16 in 16 bytes
  constexpr std::int64_t kExact = std::int64_t{1} << 24U;
  if (dtype != DType::bf16) {
    return fmt::format("cuDNN's attention is used in bf16 only, not {}", name_of(dtype));
  }
  if (shape.head_dim % kVector != 0) {
    return fmt::format("cuDNN's attention needs a head_dim that {} divides, not {}", kVector,
                       shape.head_dim);
  }
  if (shape.window > 0 && shape.sequence >= kExact) {
    return fmt::format("cuDNN's attention counts positions of a window up to {}, not {}", kExact,
                       shape.sequence);
  }
  return std::nullopt;
}

SdpaGraph::SdpaGraph(const CudnnLibrary& library, const SdpaWork& work, cudnnHandle_t handle) {
  CudnnGraphBuilder builder(library);
  Attention attention(builder, work);
  if (work.pass == SdpaPass::forward) {
    attention.forward();
  } else {
    attention.backward();
  }
  graph_ = builder.finish(handle);
  made_ = builder.take();
}

}  // namespace shardwise::exec
