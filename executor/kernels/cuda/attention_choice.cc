#include "executor/kernels/cuda/attention_choice.h"

#include <fmt/format.h>

namespace shardwise::exec {
namespace {

std::string pass_name(SdpaPass pass, const AttentionShape& s) {
  return fmt::format("{} bf16 {}x{} {}/{} heads of {} window {}",
                     pass == SdpaPass::forward ? "forward" : "backward", s.batch, s.sequence,
                     s.heads, s.kv_heads, s.head_dim, s.window);
}

/// Random numbers for a bf16 tensor with a row of `width` a token.
void fill_rows(const std::byte* at, const AttentionShape& s, std::int64_t width,
               KernelClock& clock) {
  const std::int64_t bytes = s.batch * s.sequence * width * 2;
  // What attention only reads is written here alone, before it holds anything.
  clock.fill({const_cast<std::byte*>(at), static_cast<std::size_t>(bytes)}, DType::bf16);
}

}  // namespace

bool ChosenAttention::by_cudnn(const Key& key) const {
  const auto found = chosen_.find(key);
  return found == chosen_.end() || found->second;
}

void ChosenAttention::forward(const AttentionWork& w, std::span<std::byte> workspace,
                              cudaStream_t stream) {
  if (by_cudnn({SdpaPass::forward, w.shape}) && cudnn_.takes(w)) {
    return cudnn_.forward(w, workspace, stream);
  }
  own_.forward(w, workspace, stream);
}

void ChosenAttention::backward(const AttentionBackwardWork& w, std::span<std::byte> workspace,
                               cudaStream_t stream) {
  if (by_cudnn({SdpaPass::backward, w.shape}) && cudnn_.takes(w)) {
    return cudnn_.backward(w, workspace, stream);
  }
  own_.backward(w, workspace, stream);
}

void ChosenAttention::take(const KernelChoices& choices) {
  choices_.insert(choices.attention.begin(), choices.attention.end());
}

std::string ChosenAttention::to_be_timed(const Key& key, KernelTuning& tuning) {
  if (rule_ == Rule::cudnn || chosen_.contains(key)) return {};
  std::string name = pass_name(key.pass, key.shape);
  const auto kept = choices_.find(name);
  if (kept == choices_.end()) return name;
  chosen_[key] = kept->second.cudnn;
  tuning.kept.insert(name);
  return {};
}

void ChosenAttention::choose(const Key& key, const std::string& name, double cudnn_seconds,
                             double own_seconds, KernelTuning& tuning) {
  choices_[name] = {cudnn_seconds <= own_seconds, 1e6 * cudnn_seconds, 1e6 * own_seconds};
  chosen_[key] = choices_[name].cudnn;
  tuning.timed.insert(name);
  tuning.progress();
}

void ChosenAttention::prepare(const AttentionWork& w, KernelTuning& tuning) {
  if (!cudnn_.takes(w)) return;
  const Key key = {SdpaPass::forward, w.shape};
  const std::string name = to_be_timed(key, tuning);
  if (name.empty()) return;
  KernelClock& clock = tuning.clock;
  fill_rows(w.qkv, w.shape, w.shape.qkv_width(), clock);
  const double cudnn = clock.seconds([&] { cudnn_.forward(w, tuning.workspace, clock.stream()); });
  const double own = clock.seconds([&] { own_.forward(w, tuning.workspace, clock.stream()); });
  choose(key, name, cudnn, own, tuning);
}

void ChosenAttention::prepare(const AttentionBackwardWork& w, KernelTuning& tuning) {
  if (!cudnn_.takes(w)) return;
  const Key key = {SdpaPass::backward, w.shape};
  const std::string name = to_be_timed(key, tuning);
  if (name.empty()) return;
  KernelClock& clock = tuning.clock;
  // Each way is timed from what its forward pass left; its own runs put gradients in qkv's place.
  const auto timed = [&](AttentionKernels& kernels) {
    fill_rows(w.qkv, w.shape, w.shape.qkv_width(), clock);
    fill_rows(w.d_out, w.shape, w.shape.heads * w.shape.head_dim, clock);
    own_.forward({.shape = w.shape,
                  .dtype = w.dtype,
                  .qkv = w.qkv,
                  .out = const_cast<std::byte*>(w.out),
                  .log_sums = const_cast<float*>(w.log_sums)},
                 tuning.workspace, clock.stream());
    return clock.seconds([&] { kernels.backward(w, tuning.workspace, clock.stream()); });
  };
  const double cudnn = timed(cudnn_);
  const double own = timed(own_);
  choose(key, name, cudnn, own, tuning);
}

}  // namespace shardwise::exec
