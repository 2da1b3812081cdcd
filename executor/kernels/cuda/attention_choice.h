#pragma once

#include <functional>
#include <map>
#include <string>

#include "executor/device/cuda/cuda_stream.h"
#include "executor/kernels/cuda/cudnn_attention.h"
#include "executor/kernels/cuda/own_kernels.h"

namespace shardwise::exec {

/// Which kernels of attention ran, and why.
struct AttentionChoice {
  bool cudnn = false;
  double cudnn_microseconds = 0;  // 0: not measured
  double own_microseconds = 0;
};

/// Attention by cuDNN or by our kernels. Where both run a shape it is what was faster when it came
/// first, on its own operands: the host waits then, as steps are captured later. Results do not
/// depend on having been timed.
class ChosenAttention final : public AttentionKernels {
 public:
  enum class Rule : std::uint8_t {
    measured,
    cudnn,  // wherever it takes a work
  };
  /// \param cudnn  outlives it  \param rank  for messages
  ChosenAttention(CudnnAttention& cudnn, Rule rule, int rank);

  void forward(const AttentionWork& work, std::span<std::byte> workspace,
               cudaStream_t stream) override;
  void backward(const AttentionBackwardWork& work, std::span<std::byte> workspace,
                cudaStream_t stream) override;

  /// By "forward bf16 2x1024 12/12 heads of 64 window 0".
  const std::map<std::string, AttentionChoice>& choices() const { return choices_; }

 private:
  double microseconds(cudaStream_t stream, const std::function<void()>& issue);
  /// What was chosen; measured where it was not and both run it.
  const AttentionChoice& choice(const std::string& name, bool takes,
                                const std::function<AttentionChoice()>& measure);

  CudnnAttention& cudnn_;
  OwnAttention own_;
  Rule rule_;
  CudaCalls calls_;
  CudaEvent begin_;
  CudaEvent end_;
  std::map<std::string, AttentionChoice> choices_;
};

}  // namespace shardwise::exec
