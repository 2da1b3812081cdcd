#pragma once

#include <map>
#include <string>

#include "executor/kernels/cuda/cudnn_attention.h"
#include "executor/kernels/cuda/own_kernels.h"

namespace shardwise::exec {

/// Attention by cuDNN or by our kernels. Where both run a shape it is what prepare() found faster,
/// or found kept of an earlier run; of a shape that was not prepared, cuDNN. Nothing is timed when
/// a work is issued.
class ChosenAttention final : public AttentionKernels {
 public:
  enum class Rule : std::uint8_t {
    measured,
    cudnn,  // wherever it takes a work
  };
  /// \param cudnn  outlives it
  ChosenAttention(CudnnAttention& cudnn, Rule rule) : cudnn_(cudnn), rule_(rule) {}

  void forward(const AttentionWork& work, std::span<std::byte> workspace,
               cudaStream_t stream) override;
  void backward(const AttentionBackwardWork& work, std::span<std::byte> workspace,
                cudaStream_t stream) override;

  /// Fills the work's tensors with random numbers and what attention makes of them.
  void prepare(const AttentionWork& work, KernelTuning& tuning) override;
  void prepare(const AttentionBackwardWork& work, KernelTuning& tuning) override;
  void add_to(KernelChoices& choices) const override { choices.attention = choices_; }
  void take(const KernelChoices& choices) override;

 private:
  struct Key {
    SdpaPass pass;
    AttentionShape shape;
    auto operator<=>(const Key&) const = default;
  };
  bool by_cudnn(const Key& key) const;
  /// The name of a shape that is to be timed; empty where it is chosen already.
  std::string to_be_timed(const Key& key, KernelTuning& tuning);
  void choose(const Key& key, const std::string& name, double cudnn_seconds, double own_seconds,
              KernelTuning& tuning);

  CudnnAttention& cudnn_;
  OwnAttention own_;
  Rule rule_;
  AttentionChoices choices_;
  std::map<Key, bool> chosen_;  // of the shapes that were prepared, whether cuDNN runs them
};

}  // namespace shardwise::exec
