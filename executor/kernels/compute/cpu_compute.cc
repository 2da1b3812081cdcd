#include "executor/kernels/compute/cpu_compute.h"

#include <algorithm>

#include "executor/kernels/swiglu.h"
#include "executor/kernels/with_dtype.h"

namespace shardwise::exec {

void CpuCompute::norm(const NormWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    const E* x = as<E>(w.x);
    if (w.kept != nullptr) {
      SHARDWISE_CHECK(w.shape.segments == 1 && w.shape.x_stride == w.shape.width, "rows are dense");
      std::copy_n(x, w.shape.rows * w.shape.width, as<E>(w.kept));
    }
    if (w.rms) {
      return rms_norm_forward(w.shape, x, as<E>(w.weight), as<E>(w.y), w.statistics, workers_);
    }
    layer_norm_forward(w.shape, x, as<E>(w.weight), as<E>(w.bias), as<E>(w.y), w.statistics,
                       workers_);
  });
}

void CpuCompute::norm_backward(const NormBackwardWork& w, DeviceStream& /*stream*/) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    if (w.rms) {
      return rms_norm_backward(w.shape, as<E>(w.x), as<E>(w.weight), w.statistics, as<E>(w.d_y),
                               as<E>(w.d_x), w.adds, as<G>(w.d_weight), workers_);
    }
    layer_norm_backward(w.shape, as<E>(w.x), as<E>(w.weight), w.statistics, as<E>(w.d_y),
                        as<E>(w.d_x), w.adds, as<G>(w.d_weight), as<G>(w.d_bias), workers_);
  });
}

void CpuCompute::linear(const LinearWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    linear_forward(w.shape, as<E>(w.x), as<E>(w.weight), as<E>(w.bias), as<E>(w.y), w.adds,
                   workers_);
    if (!w.gelu) return;
    SHARDWISE_CHECK(w.shape.y_stride == w.shape.out, "rows are dense");
    gelu_forward<E>(*w.gelu, w.shape.rows * w.shape.out, as<E>(w.y), as<E>(w.activated), workers_);
  });
}

void CpuCompute::linear_backward_input(const LinearBackwardInputWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    E* const d_x = as<E>(w.d_x);
    exec::linear_backward_input(w.shape, as<E>(w.d_y), as<E>(w.weight), d_x, w.adds, workers_);
    if (!w.gelu) return;
    SHARDWISE_CHECK(w.shape.x_stride == w.shape.in, "rows are dense");
    gelu_backward<E>(*w.gelu, w.shape.rows * w.shape.in, as<E>(w.before), d_x, d_x, workers_);
  });
}

void CpuCompute::linear_backward_weight(const LinearBackwardWeightWork& w,
                                        DeviceStream& /*stream*/) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    exec::linear_backward_weight(w.shape, as<E>(w.x), as<E>(w.d_y), as<G>(w.d_weight),
                                 as<G>(w.d_bias), workers_);
  });
}

void CpuCompute::rope_tables(const RopeTablesWork& w, DeviceStream& /*stream*/) {
  exec::rope_tables(w.sequence, 2 * std::ssize(w.frequencies), w.frequencies.data(), w.cosines,
                    w.sines);
}

void CpuCompute::rope(const RopeWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    if (w.backward) return rope_backward(w.shape, w.tables, as<E>(w.x), workers_);
    rope_forward(w.shape, w.tables, as<E>(w.x), workers_);
  });
}

void CpuCompute::attention(const AttentionWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    attention_forward(w.shape, as<E>(w.qkv), as<E>(w.out), w.log_sums, workers_);
  });
}

void CpuCompute::attention_backward(const AttentionBackwardWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    exec::attention_backward(w.shape, as<E>(w.qkv), as<E>(w.out), w.log_sums, as<E>(w.d_out),
                             as<float>(w.workspace), workers_);
  });
}

void CpuCompute::gelu(const GeluWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype,
             [&]<class E>(E) { gelu_forward(w.kind, w.count, as<E>(w.x), as<E>(w.y), workers_); });
}

void CpuCompute::swiglu(const SwigluWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    swiglu_forward(w.rows, w.width, as<E>(w.gate_up), as<E>(w.y), workers_);
  });
}

void CpuCompute::swiglu_backward(const SwigluBackwardWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    exec::swiglu_backward(w.rows, w.width, as<E>(w.gate_up), as<E>(w.d_y), workers_);
  });
}

void CpuCompute::embedding(const EmbeddingWork& w, DeviceStream& /*stream*/) {
  if (w.kept != nullptr) std::copy_n(w.tokens, w.shape.batch * w.shape.sequence, w.kept);
  with_dtype(w.dtype, [&]<class E>(E) {
    embedding_forward(w.shape, w.tokens, as<E>(w.table), as<E>(w.positions), as<E>(w.y), workers_);
  });
}

void CpuCompute::embedding_backward(const EmbeddingBackwardWork& w, DeviceStream& /*stream*/) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    exec::embedding_backward(w.shape, w.tokens, as<E>(w.d_y), as<G>(w.d_table),
                             as<G>(w.d_positions), workers_);
  });
}

void CpuCompute::head(const HeadWork& w, DeviceStream& /*stream*/) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    cross_entropy(w.shape, as<E>(w.x), as<E>(w.weight), w.targets, *w.scale, as<G>(w.d_weight),
                  *w.loss, w.workspace, workers_);
  });
}

void CpuCompute::vocabulary_logits(const VocabularyWork& w, DeviceStream& /*stream*/) {
  with_dtype(w.dtype, [&]<class E>(E) {
    exec::vocabulary_logits(w.shape, as<E>(static_cast<const std::byte*>(w.x)), as<E>(w.weight),
                            w.targets, as<E>(w.logits), w.statistics + w.shape.rank * w.shape.rows,
                            workers_);
  });
}

void CpuCompute::vocabulary_gradients(const VocabularyWork& w, DeviceStream& /*stream*/) {
  with_dtypes(w.dtype, w.gradient, [&]<class E, class G>(E, G) {
    exec::vocabulary_gradients(w.shape, as<E>(w.x), as<E>(w.weight), w.targets, w.statistics,
                               *w.scale, as<E>(w.logits), w.losses, as<G>(w.d_weight), *w.loss,
                               workers_);
  });
}

}  // namespace shardwise::exec
