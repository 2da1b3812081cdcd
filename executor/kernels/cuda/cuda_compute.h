#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "executor/kernels/compute/compute.h"
#include "executor/kernels/cuda/attention_kernels.h"
#include "executor/kernels/cuda/linear_kernels.h"

namespace shardwise::exec {

/// The products of a chunk of the head's rows. The logits, y of the first, become their gradients;
/// the gradient of the rows takes their place.
struct HeadChunk {
  std::int64_t first = 0;  // of its rows
  LinearWork logits;
  LinearBackwardWeightWork weight;
  LinearBackwardInputWork input;
};
/// Visits the chunks of a head in their order.
void for_head_chunks(const HeadWork& work, const std::function<void(const HeadChunk&)>& visit);

/// The operations of executor/kernels on a GPU: streams are those of a CudaDevice. Nothing is
/// allocated and nothing waits. One thread at a time; operations before clear() are one stream's,
/// which has the workspace, those from clear() on are any stream's.
///
/// Results are the CPU's but for the order of sums, e^x and the like; what only moves or updates
/// element by element has its bits. The sums of squares are doubles in a fixed order
/// (cuda/movement.h), not exact: which rank has which element is seen in the norm's last places.
class CudaCompute : public Compute {
 public:
  /// Both outlive it.
  CudaCompute(LinearKernels& products, AttentionKernels& attention)
      : products_(products), attention_(attention) {}

  void set_workspace(std::span<std::byte> workspace) override { workspace_ = workspace; }

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

  void clear(const TensorView& tensor, DeviceStream& stream) override;
  void cast(const TensorView& to, const ConstTensorView& from, DeviceStream& stream) override;
  void accumulate(const TensorView& sum, const ConstTensorView& each,
                  DeviceStream& stream) override;
  void scale(const ScaleWork& work, DeviceStream& stream) override;
  void token_factor(const TokenFactorWork& work, DeviceStream& stream) override;
  void sum_ranks(const SumRanksWork& work, DeviceStream& stream) override;
  std::int64_t squares_bytes() const override;
  void squares(const SquaresWork& work, DeviceStream& stream) override;
  void squares_norm(const SquaresNormWork& work, DeviceStream& stream) override;
  void check_gradients(const GradientCheckWork& work, DeviceStream& stream) override;
  void adamw(const AdamWork& work, DeviceStream& stream) override;

 protected:
  std::span<std::byte> workspace() const { return workspace_; }

 private:
  /// The workspace, of which an operation needs `bytes`.
  std::byte* workspace(std::int64_t bytes) const;

  LinearKernels& products_;
  AttentionKernels& attention_;
  std::span<std::byte> workspace_;
};

}  // namespace shardwise::exec
