#include <gtest/gtest.h>

#include "planner/cost/memory/memory.h"
#include "planner/cost/memory/state_bytes.h"
#include "planner/engines/engines.h"
#include "tests/support/models.h"

// Bytes of training in 8 bits, engine by engine, on Llama-3.1-8B.

namespace shardwise {
namespace {

using enum MemoryCategory;

/// Matrices of the 32 blocks: all but the token table, the head and 65 norms.
constexpr std::int64_t kMatrices =
    test::kLlama8BParameters - 2 * std::int64_t{128256} * 4096 - std::int64_t{65} * 4096;

JobSpec eight_bits(Fp8Recipe recipe = Fp8Recipe::tensorwise, bool kept = false) {
  JobSpec job;
  job.precision = DType::fp8;
  job.fp8_recipe = recipe;
  job.fp8_parameter_gather = kept;
  return job;
}

RuntimeMemory runtime_memory(bool needs_transposes) {
  RuntimeMemory runtime;
  runtime.fp8_needs_transposes = needs_transposes;
  return runtime;
}

Ledger pass_of(const std::string& engine, const JobSpec& job, bool transposes,
               const Layout& layout) {
  return layout_memory(test::llama_3_1_8b(), job, *find_engine(engine), runtime_memory(transposes),
                       layout)
      .stages.front()[MemoryPhase::steady_forward_backward];
}

// NVIDIA/TransformerEngine@d0067d0d:transformer_engine/pytorch/module/linear.py: the cast of a
// weight is cached over the micro-batches, with its transpose where GEMMs read one layout.
TEST(EightBitWeights, AreCachedBesideTheCopiesInSixteen) {
  const auto weights_of = [](Fp8Recipe recipe, bool transposes) {
    return pass_of("megatron_ddp", eight_bits(recipe), transposes, {.dp_shard = 8})[weights];
  };
  EXPECT_EQ(weights_of(Fp8Recipe::tensorwise, false), 2 * test::kLlama8BParameters + kMatrices);
  EXPECT_EQ(weights_of(Fp8Recipe::tensorwise, true), 2 * test::kLlama8BParameters + 2 * kMatrices);
  // Scales of blocks differ by direction, so both casts are there on any machine.
  EXPECT_EQ(weights_of(Fp8Recipe::block, false),
            2 * test::kLlama8BParameters + 2 * (kMatrices + kMatrices / 32));
}

TEST(EightBitWeights, TakeThePlaceOfSixteenWhenTheyAreKeptSo) {
  const auto weights_of = [](bool transposes) {
    return pass_of("megatron_ddp", eight_bits(Fp8Recipe::tensorwise, true), transposes,
                   {.dp_shard = 8, .zero_stage = 1})[weights];
  };
  EXPECT_EQ(weights_of(false), 2 * (test::kLlama8BParameters - kMatrices) + kMatrices);
  EXPECT_EQ(weights_of(true), 2 * (test::kLlama8BParameters - kMatrices) + 2 * kMatrices);
}

// disable_parameter_transpose_cache and fp8_params of MLPerf's submissions with adapters, of which
// eight ran Llama-2-70B whole on a GPU of 139.8 GiB: mlcommons/training_results_v5.1@4da2d1cd.
TEST(EightBitWeights, OfAFrozenModelAreThereOnceWithoutPlaceholders) {
  JobSpec frozen = eight_bits(Fp8Recipe::delayed, true);
  frozen.frozen_base = true;
  const Layout layout = {.dp_shard = 8, .zero_stage = 1};
  for (const bool transposes : {false, true}) {
    const Ledger pass = pass_of("megatron_ddp", frozen, transposes, layout);
    EXPECT_EQ(pass[weights], 2 * test::kLlama8BParameters - kMatrices);
    EXPECT_EQ(pass[gradient_staging], 0);
  }
  frozen.fp8_parameter_gather = false;
  EXPECT_EQ(pass_of("megatron_ddp", frozen, true, layout)[weights], 2 * test::kLlama8BParameters);
}

TEST(EightBitWeights, AreShardedAndGatheredInEightBits) {
  const JobSpec wide;
  const JobSpec kept = eight_bits(Fp8Recipe::tensorwise, true);
  const Layout layout = {.dp_shard = 8, .zero_stage = 3, .recompute = Recompute::full};
  const Ledger ours = pass_of("megatron_fsdp", kept, true, layout);
  const Ledger theirs = pass_of("megatron_fsdp", wide, true, layout);
  EXPECT_EQ(theirs[weights] - ours[weights], kMatrices / 8);
  // Four units are in the queue, with a block's matrices each; embedding and head are in bf16.
  EXPECT_NEAR(static_cast<double>(theirs[gathered_weights] - ours[gathered_weights]),
              static_cast<double>(kMatrices) / 8, 8);
  EXPECT_EQ(theirs[main_weights], ours[main_weights]);
  EXPECT_EQ(theirs[optimizer_moments], ours[optimizer_moments]);
}

// pytorch/torchtitan:docs/float8.md: enable_fsdp_float8_all_gather casts the shard before the
// gather; the fp32 parameter stays. A long sequence: a block, not the head, is at its fullest.
TEST(EightBitWeights, AreGatheredInEightBitsByFsdp2) {
  const Layout layout = {.dp_shard = 8, .zero_stage = 3};
  const auto pass = [&](JobSpec job) {
    job.sequence_length = 1 << 17;
    job.loss = LossKernel::chunked;
    return pass_of("fsdp2", job, true, layout);
  };
  const Ledger cast = pass(eight_bits());
  const Ledger gathered = pass(eight_bits(Fp8Recipe::tensorwise, true));
  EXPECT_EQ(cast[main_weights], gathered[main_weights]);
  EXPECT_EQ(cast[weights], 0);
  EXPECT_EQ(gathered[weights], 0);
  EXPECT_LT(gathered[gathered_weights], cast[gathered_weights]);
}

std::int64_t kept_by(const std::string& engine, const JobSpec& job, const std::string& operation) {
  const ModelSpec model = test::llama_3_1_8b();
  for (const KeptActivation& each :
       kept_activations(model, model.kinds[1], job, *find_engine(engine), {})) {
    if (each.operation == operation) return each.bytes - each.statistics;
  }
  return 0;
}

// Transformer Engine keeps the cast of a GEMM's input in its place. What another operation needs
// in 16 bits is there besides: the output of attention, and gate and up of the activation.
TEST(EightBitActivations, OfTransformerEngineAreCastsOfTheInputs) {
  const JobSpec narrow = eight_bits();
  const std::int64_t row = test::kDefaultTokens * 4096;
  EXPECT_EQ(kept_by("megatron_ddp", narrow, "self_attn.q_proj"), row);
  EXPECT_EQ(kept_by("megatron_ddp", {}, "self_attn.q_proj"), 2 * row);
  EXPECT_EQ(kept_by("megatron_ddp", narrow, "self_attn.o_proj"), row);
  EXPECT_EQ(kept_by("megatron_ddp", {}, "self_attn.o_proj"), 0);  // attention keeps it already
  EXPECT_EQ(kept_by("megatron_ddp", narrow, "mlp.down_proj"), test::kDefaultTokens * 14336);
  EXPECT_EQ(kept_by("megatron_ddp", {}, "mlp.down_proj"), 2 * test::kDefaultTokens * 14336);
  EXPECT_EQ(kept_by("megatron_ddp", eight_bits(Fp8Recipe::block), "mlp.down_proj"),
            test::kDefaultTokens * 14336 + test::kDefaultTokens * 14336 / 32);
}

// pytorch/ao:torchao/float8/float8_linear.py saves input and weight as they came.
TEST(EightBitActivations, OfTorchaoAreTheInputsInSixteen) {
  for (const char* operation : {"self_attn.q_proj", "mlp.down_proj"}) {
    EXPECT_EQ(kept_by("fsdp2", eight_bits(), operation), kept_by("fsdp2", {}, operation));
  }
}

// The head's GEMM and the router's stay in 16 bits.
TEST(EightBitWeights, AreThoseOfTheBlocks) {
  const ModelSpec model = test::llama_3_1_8b();
  for (const LayerSpec& layer : model.kinds) {
    const LayerMemory memory =
        layer_memory(model, layer, eight_bits(), *find_engine("megatron_ddp"), {});
    EXPECT_EQ(memory.parameters.narrow_dense, layer.role == LayerRole::block ? kMatrices / 32 : 0);
  }
}

}  // namespace
}  // namespace shardwise
