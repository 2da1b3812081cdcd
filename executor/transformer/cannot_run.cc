#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "executor/kernels/attention/attention.h"
#include "executor/transformer/layer.h"
#include "planner/spec/plan/names.h"

namespace shardwise::exec {
namespace {

void check_block(const ModelSpec& model, const LayerSpec& layer, std::vector<std::string>& lines) {
  for (const OperationSpec& op : layer.operations) {
    if (op.kind == OpKind::router) lines.push_back("/model/kinds: " + layer.name + " has experts");
    if (op.kind == OpKind::attention && op.qk_head_dim > kMaxHeadDim) {
      lines.push_back(
          fmt::format("/model/head_dim: {} is more than {}", op.qk_head_dim, kMaxHeadDim));
    }
    if (op.kind == OpKind::rope && model.head_dim % 2 != 0) {
      lines.push_back(fmt::format("/model/head_dim: {} is odd", model.head_dim));
    }
  }
}

}  // namespace

std::vector<std::string> cannot_run(const ModelSpec& model, const JobSpec& job) {
  std::vector<std::string> lines;
  const auto families = std::span(kExecutableFamilies);
  if (std::ranges::find(families, model.model_type) == families.end()) {
    lines.push_back(fmt::format("/model/model_type: {} is none of {}", model.model_type,
                                fmt::join(families, ", ")));
    return lines;
  }
  for (const LayerSpec& layer : model.kinds) {
    if (layer.role == LayerRole::block) check_block(model, layer, lines);
  }
  const ModelNumerics& n = model.numerics;
  const bool gated = model.model_type != "gpt2";
  const bool computed = gated ? n.activation == ActivationFunction::silu
                              : n.activation == ActivationFunction::gelu_erf ||
                                    n.activation == ActivationFunction::gelu_tanh ||
                                    n.activation == ActivationFunction::gelu_new;
  if (!computed) {
    lines.push_back(fmt::format("/model/numerics/activation: {} has no kernel {} a gate",
                                name_of(n.activation), gated ? "with" : "without"));
  }
  if (n.rope_scaling == RopeScaling::other) {
    lines.emplace_back("/model/numerics/rope_scaling: only none, linear and llama3");
  }
  if (job.precision != DType::fp32 && job.precision != DType::bf16) {
    lines.push_back(
        fmt::format("/job/precision: {} is neither fp32 nor bf16", name_of(job.precision)));
  }
  if (job.loss != LossKernel::chunked && job.loss != LossKernel::fused) {
    lines.push_back(fmt::format("/job/loss: {} is neither chunked nor fused", name_of(job.loss)));
  }
  if (job.attention == AttentionKernel::materialised) {
    lines.emplace_back(
        "/job/attention: scores are never materialised, flash, flash1 and cudnn are executable");
  }
  if (job.dropout > 0) lines.emplace_back("/job/dropout: there is none, 0 is executable");
  if (job.frozen_base)
    lines.emplace_back("/job/frozen_base: there are no adapters, false is executable");
  const std::pair<const char*, SavedFormat> saved[] = {
      {"saved_linear_inputs", job.saved_linear_inputs},
      {"saved_activation_inputs", job.saved_activation_inputs},
      {"saved_attention_outputs", job.saved_attention_outputs}};
  for (const auto& [field, format] : saved) {
    if (format == SavedFormat::as_computed) continue;
    lines.push_back(
        fmt::format("/job/{}: {}, but as_computed is executable", field, name_of(format)));
  }
  for (const std::string& name : job.recompute_operations) {
    if (std::ranges::find(kRecomputable, name) != kRecomputable.end()) continue;
    lines.push_back(fmt::format("/job/recompute_operations: {} is not recomputed alone, {} are",
                                name, fmt::join(kRecomputable, ", ")));
  }
  return lines;
}

}  // namespace shardwise::exec
