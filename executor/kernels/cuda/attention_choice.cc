#include "executor/kernels/cuda/attention_choice.h"

#include <fmt/format.h>

#include "executor/kernels/cuda/movement.h"

namespace shardwise::exec {
namespace {

std::string name_of(const char* pass, const AttentionShape& s) {
  return fmt::format("{} bf16 {}x{} {}/{} heads of {} window {}", pass, s.batch, s.sequence,
                     s.heads, s.kv_heads, s.head_dim, s.window);
}

}  // namespace

ChosenAttention::ChosenAttention(CudnnAttention& cudnn, Rule rule, int rank)
    : cudnn_(cudnn),
      rule_(rule),
      calls_(rank),
      begin_(calls_, /*timed=*/true),
      end_(calls_, /*timed=*/true) {}

double ChosenAttention::microseconds(cudaStream_t stream, const std::function<void()>& issue) {
  begin_.record(stream);
  issue();
  end_.record(stream);
  end_.synchronize();
  return 1e-3 * static_cast<double>(end_.since(begin_));
}

const AttentionChoice& ChosenAttention::choice(const std::string& name, bool takes,
                                               const std::function<AttentionChoice()>& measure) {
  const auto [found, is_new] = choices_.try_emplace(name);
  if (is_new) {
    found->second.cudnn = takes;
    if (takes && rule_ == Rule::measured) found->second = measure();
  }
  return found->second;
}

void ChosenAttention::forward(const AttentionWork& w, std::span<std::byte> workspace,
                              cudaStream_t stream) {
  const bool takes = cudnn_.takes(w);
  const auto by_cudnn = [&] { cudnn_.forward(w, workspace, stream); };
  const auto by_own = [&] { own_.forward(w, workspace, stream); };
  const AttentionChoice& chosen = choice(name_of("forward", w.shape), takes, [&] {
    by_cudnn();
    const double cudnn = microseconds(stream, by_cudnn);
    by_own();
    const double own = microseconds(stream, by_own);
    return AttentionChoice{cudnn <= own, cudnn, own};
  });
  if (takes && chosen.cudnn) return by_cudnn();
  by_own();
}

void ChosenAttention::backward(const AttentionBackwardWork& w, std::span<std::byte> workspace,
                               cudaStream_t stream) {
  const bool takes = cudnn_.takes(w);
  const auto by_own = [&] { own_.backward(w, workspace, stream); };
  const AttentionChoice& chosen = choice(name_of("backward", w.shape), takes, [&] {
    const auto by_cudnn = [&] { cudnn_.gradients(w, workspace, stream); };
    by_cudnn();
    const double cudnn = microseconds(stream, by_cudnn);
    // Ours puts gradients in qkv's place, so what was there waits where cuDNN's were.
    const auto count =
        static_cast<std::size_t>(w.shape.batch * w.shape.sequence * w.shape.qkv_width());
    const TensorView qkv = {w.qkv, count, w.dtype};
    const TensorView kept = {workspace.data(), count, w.dtype};
    cuda::cast(kept, qkv, stream);
    by_own();
    cuda::cast(qkv, kept, stream);
    const double own = microseconds(stream, by_own);
    cuda::cast(qkv, kept, stream);
    return AttentionChoice{cudnn <= own, cudnn, own};
  });
  if (takes && chosen.cudnn) return cudnn_.backward(w, workspace, stream);
  by_own();
}

}  // namespace shardwise::exec
