#pragma once

#include <memory>

#include "executor/kernels/compute/compute.h"
#include "executor/kernels/workers.h"

namespace shardwise::exec {

/// The kernels of this folder on a rank's threads. What returns is done, whatever the stream. One
/// call at a time, but for clear() to sum_ranks(), which run on the calling thread alone.
class CpuCompute final : public Compute {
 public:
  explicit CpuCompute(Workers& workers) : workers_(workers) {}
  /// Has threads of its own. \throws as Workers
  explicit CpuCompute(int threads) : own_(std::make_unique<Workers>(threads)), workers_(*own_) {}

  void norm(const NormWork& work, DeviceStream& stream) override;
  void norm_backward(const NormBackwardWork& work, DeviceStream& stream) override;
  void linear(const LinearWork& work, DeviceStream& stream) override;
  void linear_backward_input(const LinearBackwardInputWork& work, DeviceStream& stream) override;
  void linear_backward_weight(const LinearBackwardWeightWork& work, DeviceStream& stream) override;
  void rope_tables(const RopeTablesWork& work, DeviceStream& stream) override;
  void rope(const RopeWork& work, DeviceStream& stream) override;
  void attention(const AttentionWork& work, DeviceStream& stream) override;
  void attention_backward(const AttentionBackwardWork& work, DeviceStream& stream) override;
  void gelu(const GeluWork& work, DeviceStream& stream) override;
  void swiglu(const SwigluWork& work, DeviceStream& stream) override;
  void swiglu_backward(const SwigluBackwardWork& work, DeviceStream& stream) override;
  void embedding(const EmbeddingWork& work, DeviceStream& stream) override;
  void embedding_backward(const EmbeddingBackwardWork& work, DeviceStream& stream) override;
  void head(const HeadWork& work, DeviceStream& stream) override;
  void vocabulary_logits(const VocabularyWork& work, DeviceStream& stream) override;
  void vocabulary_gradients(const VocabularyWork& work, DeviceStream& stream) override;

  void clear(const TensorView& tensor, DeviceStream& stream) override;
  void cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) override;
  void accumulate(const TensorView& sum, const ConstTensorView& each,
                  DeviceStream& stream) override;
  void scale(const ScaleWork& work, DeviceStream& stream) override;
  void token_factor(const TokenFactorWork& work, DeviceStream& stream) override;
  void sum_ranks(const SumRanksWork& work, DeviceStream& stream) override;
  /// The sums are ExactSquares: the norm does not depend on which rank has which element.
  std::int64_t squares_bytes() const override;
  void squares(const SquaresWork& work, DeviceStream& stream) override;
  void squares_norm(const SquaresNormWork& work, DeviceStream& stream) override;
  void check_gradients(const GradientCheckWork& work, DeviceStream& stream) override;
  void adamw(const AdamWork& work, DeviceStream& stream) override;

 private:
  std::unique_ptr<Workers> own_;  // none where they are somebody else's
  Workers& workers_;
};

}  // namespace shardwise::exec
