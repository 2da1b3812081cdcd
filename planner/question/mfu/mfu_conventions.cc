#include "planner/question/mfu/mfu_conventions.h"

#include <algorithm>
#include <iterator>

#include "planner/cost/kernels/flops.h"
#include "planner/model/parameter_counts.h"

namespace shardwise {
namespace {

/// The model without its embedding and its head.
ModelSpec blocks_of(const ModelSpec& model) {
  ModelSpec blocks = model;
  std::erase_if(blocks.layers, [&](int kind) {
    return !is_block(model.kinds[static_cast<std::size_t>(kind)].role);
  });
  return blocks;
}

}  // namespace

std::vector<FlopsConvention> flops_conventions(const ModelSpec& model, const JobSpec& job,
                                               Recompute recompute) {
  const auto tokens = static_cast<double>(job.sequence_length);
  const ModelFlops flops = model_flops(model, job);
  const double causal = flops.causal.value() / tokens;
  const double whole = flops.whole.value() / tokens;
  const double products = flops.times * flops.weights;
  const double attention = whole - products;

  const ParameterCounts counts = count_parameters(model);
  const auto all = static_cast<double>(model.num_experts > 0 ? counts.active : counts.main_model());
  const auto positions = static_cast<double>(counts.positions);
  const auto vocabulary = static_cast<double>(counts.vocabulary);
  const double input = model.tie_word_embeddings ? 0 : vocabulary / 2;
  const double times = flops.times;

  // Forward is a third of what is trained; what is run again is run forward.
  const ModelFlops blocks = model_flops(blocks_of(model), job);
  const double forward = 2 * blocks.weights;
  const auto again = [&](double attention_of_step) {
    if (recompute == Recompute::none) return 0.0;
    const double core = attention_of_step / 3;
    return recompute == Recompute::full ? forward + core : core;
  };

  constexpr std::string_view kOurs = "docs/time.md; Dao, FlashAttention-2 (arXiv:2307.08691), 4";
  constexpr std::string_view kMegatron =
      "NVIDIA/Megatron-LM, megatron/training/training.py, num_floating_point_operations";
  constexpr std::string_view kPalm = "Chowdhery et al., PaLM (arXiv:2204.02311), appendix B";
  constexpr std::string_view kKaplan =
      "Kaplan et al., Scaling laws (arXiv:2001.08361), section 2.1";
  constexpr std::string_view kKorthikanti = "Korthikanti et al. (arXiv:2205.05198), appendix A";
  std::vector<FlopsConvention> made = {
      {"causal", "ours, Megatron-LM since 2025", "6 N' + 6 L H Q T", kOurs, causal},
      {"whole", "Megatron-LM until 2025", "6 N' + 12 L H Q T", kMegatron, whole},
      {"palm", "PaLM, llm-foundry, fms-fsdp", "6 N + 12 L H Q T", kPalm, times * all + attention},
      {"nanogpt", "nanoGPT", "6 (N - P) + 12 L H Q T", "karpathy/nanoGPT, model.py, estimate_mfu",
       times * (all - positions) + attention},
      {"torchtitan", "torchtitan", "6 (N - E) + 12 L H Q T",
       "pytorch/torchtitan, models/llama3, get_nparams_and_flops",
       times * (all - input) + attention},
      {"six_n", "6N, every parameter", "6 N", kKaplan, times * all},
      {"six_n_no_embedding", "6N, no embeddings", "6 (N - V - P)", kKaplan,
       times * (all - vocabulary - positions)}};
  const std::vector<FlopsConvention> with_recompute = {
      {"hfu_causal", "HFU, causal half", "as ours + recompute", kKorthikanti,
       causal + again(causal - products), true},
      {"hfu_whole", "HFU, whole attention", "whole + recompute", kKorthikanti,
       whole + again(attention), true},
      {"hfu_llm_foundry", "HFU of llm-foundry", "8 N + 16 L H Q T",
       "mosaicml/llm-foundry, scripts/train/benchmarking/README.md",
       4.0 / 3 * (times * all + attention), true}};
  if (recompute == Recompute::none) return made;
  std::ranges::copy_if(with_recompute, std::back_inserter(made), [&](const FlopsConvention& each) {
    return recompute == Recompute::full || each.id != "hfu_llm_foundry";
  });
  return made;
}

}  // namespace shardwise
