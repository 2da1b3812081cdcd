#include "executor/kernels/cuda/cuda_compute.h"

#include <algorithm>

#include "executor/device/cuda/cuda_stream.h"
#include "executor/kernels/cuda/embedding.h"
#include "executor/kernels/cuda/movement.h"
#include "executor/kernels/cuda/norm.h"
#include "executor/kernels/cuda/operations.h"
#include "executor/kernels/with_dtype.h"
#include "planner/spec/text/units.h"

namespace shardwise::exec {
namespace {

cudaStream_t handle(DeviceStream& stream) { return cuda_stream(stream).handle(); }

/// How the logits of a head lie in the memory that the ledger has for them.
struct LogitsPlace {
  std::int64_t rows;    // at a time, of the chunk that the ledger counts or fewer
  std::int64_t stride;  // elements from row to row
};

/// Rows of whole 64 elements where they fit: products and vectors want rows that begin at multiples
/// of 16 bytes, which a vocabulary of 50257 has not. The memory then has fewer rows than the chunk,
/// in about equal chunks of whole 64. Where that would cost an eighth of the rows they stay dense.
LogitsPlace logits_place(const CrossEntropyShape& s) {
  constexpr std::int64_t kMultiple = 64;
  const std::int64_t chunk = std::min(s.chunk, s.rows);
  const std::int64_t stride = ceil_div(s.vocabulary, kMultiple) * kMultiple;
  const std::int64_t most = chunk * s.vocabulary / stride;
  if (stride == s.vocabulary || most == 0 || 8 * (stride - s.vocabulary) > s.vocabulary) {
    return {chunk, s.vocabulary};
  }
  const std::int64_t even = ceil_div(s.rows, ceil_div(s.rows, most));
  return {std::min(most, ceil_div(even, kMultiple) * kMultiple), stride};
}

}  // namespace

std::byte* CudaCompute::workspace(std::int64_t bytes) const {
  SHARDWISE_CHECK(bytes <= std::ssize(workspace_), "gpu_workspace_bytes()");
  return workspace_.data();
}

void CudaCompute::norm(const NormWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    if (w.rms) {
      return cuda::rms_norm_forward(w.shape, as<E>(w.x), as<E>(w.kept), as<E>(w.weight), as<E>(w.y),
                                    w.statistics, handle(stream));
    }
    cuda::layer_norm_forward(w.shape, as<E>(w.x), as<E>(w.kept), as<E>(w.weight), as<E>(w.bias),
                             as<E>(w.y), w.statistics, handle(stream));
  });
}

void CudaCompute::norm_backward(const NormBackwardWork& w, DeviceStream& stream) {
  std::byte* const parts = workspace(cuda::norm_backward_bytes(w.shape));
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    if (w.rms) {
      return cuda::rms_norm_backward(w.shape, as<E>(w.x), as<E>(w.weight), w.statistics,
                                     as<E>(w.d_y), as<E>(w.d_x), w.adds, as<G>(w.d_weight), parts,
                                     handle(stream));
    }
    cuda::layer_norm_backward(w.shape, as<E>(w.x), as<E>(w.weight), w.statistics, as<E>(w.d_y),
                              as<E>(w.d_x), w.adds, as<G>(w.d_weight), as<G>(w.d_bias), parts,
                              handle(stream));
  });
}

void CudaCompute::linear(const LinearWork& w, DeviceStream& stream) {
  products_.forward(w, workspace(products_.workspace_bytes()), handle(stream));
}

void CudaCompute::linear_backward_input(const LinearBackwardInputWork& w, DeviceStream& stream) {
  products_.backward_input(w, workspace(products_.workspace_bytes()), handle(stream));
}

void CudaCompute::linear_backward_weight(const LinearBackwardWeightWork& w, DeviceStream& stream) {
  products_.backward_weight(w, workspace(products_.workspace_bytes()), handle(stream));
}

void CudaCompute::rope_tables(const RopeTablesWork& w, DeviceStream& stream) {
  cuda::rope_tables(w.sequence, w.frequencies, w.cosines, w.sines, handle(stream));
}

void CudaCompute::rope(const RopeWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    if (w.backward) return cuda::rope_backward(w.shape, w.tables, as<E>(w.x), handle(stream));
    cuda::rope_forward(w.shape, w.tables, as<E>(w.x), handle(stream));
  });
}

void CudaCompute::attention(const AttentionWork& w, DeviceStream& stream) {
  attention_.forward(w, workspace_, handle(stream));
}

void CudaCompute::attention_backward(const AttentionBackwardWork& w, DeviceStream& stream) {
  attention_.backward(w, workspace_, handle(stream));
}

void CudaCompute::gelu(const GeluWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::gelu_forward(w.kind, w.count, as<E>(w.x), as<E>(w.y), handle(stream));
  });
}

void CudaCompute::swiglu(const SwigluWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::swiglu_forward(w.rows, w.width, as<E>(w.gate_up), as<E>(w.y), handle(stream));
  });
}

void CudaCompute::swiglu_backward(const SwigluBackwardWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::swiglu_backward(w.rows, w.width, as<E>(w.gate_up), as<E>(w.d_y), handle(stream));
  });
}

void CudaCompute::embedding(const EmbeddingWork& w, DeviceStream& stream) {
  with_dtype(w.dtype, [&]<class E>(E) {
    cuda::embedding_forward(w.shape, w.tokens, w.kept, as<E>(w.table), as<E>(w.positions),
                            as<E>(w.y), handle(stream));
  });
}

void CudaCompute::embedding_backward(const EmbeddingBackwardWork& w, DeviceStream& stream) {
  std::byte* const sorted = workspace(cuda::embedding_backward_bytes(w.shape));
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    cuda::embedding_backward(w.shape, w.tokens, as<E>(w.d_y), as<G>(w.d_table),
                             as<G>(w.d_positions), sorted, handle(stream));
  });
}

void for_head_chunks(const HeadWork& w, const std::function<void(const HeadChunk&)>& visit) {
  const CrossEntropyShape& s = w.shape;
  std::byte* const logits = w.workspace + s.rows * bytes_of(DType::fp32);  // behind the losses
  const LogitsPlace place = logits_place(s);
  for (std::int64_t first = 0; first < s.rows; first += place.rows) {
    const std::int64_t rows = std::min(place.rows, s.rows - first);
    std::byte* const x = w.x + first * s.hidden * bytes_of(w.dtype);
    const LinearShape shape = {rows, s.hidden, s.vocabulary, s.hidden, place.stride, false};
    visit({first,
           {.shape = shape, .dtype = w.dtype, .x = x, .weight = w.weight, .y = logits},
           {.shape = shape,
            .dtype = w.dtype,
            .gradient = w.gradient,
            .x = x,
            .d_y = logits,
            .d_weight = w.d_weight},
           {.shape = shape, .dtype = w.dtype, .d_y = logits, .weight = w.weight, .d_x = x}});
  }
}

void CudaCompute::head(const HeadWork& w, DeviceStream& stream) {
  const CrossEntropyShape& s = w.shape;
  auto* const losses = as<float>(w.workspace);
  for_head_chunks(w, [&](const HeadChunk& chunk) {
    const LinearShape& shape = chunk.logits.shape;
    linear(chunk.logits, stream);
    with_dtype(w.dtype, [&]<class E>(E) {
      cuda::loss_rows(shape.rows, s.vocabulary, shape.y_stride, w.targets + chunk.first, w.scale,
                      as<E>(chunk.logits.y), losses + chunk.first, handle(stream));
    });
    linear_backward_weight(chunk.weight, stream);
    linear_backward_input(chunk.input, stream);
  });
  cuda::sum_losses(s.rows, w.targets, losses, w.loss, workspace(cuda::sum_losses_bytes()),
                   handle(stream));
}

void CudaCompute::clear(const TensorView& tensor, DeviceStream& stream) {
  cuda::clear(tensor, handle(stream));
}

void CudaCompute::cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) {
  cuda::cast(to, from, handle(stream));
}

void CudaCompute::accumulate(const TensorView& sum, const ConstTensorView& each,
                             DeviceStream& stream) {
  cuda::accumulate(sum, each, handle(stream));
}

void CudaCompute::scale(const ScaleWork& w, DeviceStream& stream) {
  cuda::scale(w, handle(stream));
}

void CudaCompute::token_factor(const TokenFactorWork& w, DeviceStream& stream) {
  cuda::token_factor(w, handle(stream));
}

void CudaCompute::sum_ranks(const SumRanksWork& w, DeviceStream& stream) {
  cuda::sum_ranks(w, handle(stream));
}

std::int64_t CudaCompute::squares_bytes() const { return cuda::squares_bytes(); }

void CudaCompute::squares(const SquaresWork& w, DeviceStream& stream) {
  cuda::squares(w, handle(stream));
}

void CudaCompute::squares_norm(const SquaresNormWork& w, DeviceStream& stream) {
  cuda::squares_norm(w, handle(stream));
}

void CudaCompute::check_gradients(const GradientCheckWork& w, DeviceStream& stream) {
  cuda::check_gradients(w, handle(stream));
}

void CudaCompute::adamw(const AdamWork& w, DeviceStream& stream) { cuda::adamw(w, handle(stream)); }

}  // namespace shardwise::exec
