#include <gtest/gtest.h>

#include "planner/cost/kernels/traffic.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

JobSpec scaled_by(Fp8Recipe recipe) {
  JobSpec job;
  job.precision = DType::fp8;
  job.fp8_recipe = recipe;
  return job;
}

// pytorch/ao, roofline_utils.py: bytes an element of input, output gradient and weight.
struct PublishedCast {
  Fp8Recipe recipe;
  double input;
  double gradient;
  double weight;
};
constexpr PublishedCast kTorchao[] = {
    {Fp8Recipe::tensorwise, 6, 6, 8},
    {Fp8Recipe::rowwise, 8, 8, 10},
    {Fp8Recipe::rowwise_wide_gradient, 3, 3, 6},
    {Fp8Recipe::block, 6, 6, 6},
};

TEST(CastTraffic, IsThatOfTorchaosRoofline) {
  for (const PublishedCast& each : kTorchao) {
    const CastTraffic t = cast_traffic(DType::fp8, scaled_by(each.recipe), Kernels::compiled);
    EXPECT_EQ(t.input, each.input);
    EXPECT_EQ(t.gradient, each.gradient);
    EXPECT_EQ(t.weight_forward + t.weight_backward, each.weight);
    EXPECT_EQ(t.weight_step, 0);
  }
}

TEST(CastTraffic, IsNoneOfWiderProducts) {
  const CastTraffic t = cast_traffic(DType::bf16, scaled_by(Fp8Recipe::rowwise), Kernels::eager);
  EXPECT_EQ(t.input + t.gradient + t.weight_forward + t.weight_backward + t.weight_step, 0);
  EXPECT_EQ(t.input_kernels, 0);
}

TEST(CastTraffic, ReadsOnceWhereTheScaleIsKnownBefore) {
  const CastTraffic delayed =
      cast_traffic(DType::fp8, scaled_by(Fp8Recipe::delayed), Kernels::transformer_engine);
  const CastTraffic current =
      cast_traffic(DType::fp8, scaled_by(Fp8Recipe::tensorwise), Kernels::transformer_engine);
  EXPECT_EQ(delayed.input, 2 + 1 + 1);
  EXPECT_EQ(current.input, delayed.input + 2);
  EXPECT_EQ(delayed.weight_forward + delayed.weight_backward, 0);  // cast once a step
  EXPECT_EQ(delayed.weight_step, 4);
}

TEST(LayerTime, CastsWeightsInEveryMicrobatchOfPyTorch) {
  Priced p;
  p.engine = fsdp2();
  p.job = scaled_by(Fp8Recipe::tensorwise);
  p.job.kernels = Kernels::compiled;
  p.size(1);
  const double all = p.layer("block").forward.memory_bound.value();
  p.job.fp8_parameter_gather = true;  // shards are cast before they travel
  const double gathered = p.layer("block").forward.memory_bound.value();
  double weights = 0;
  for (const ParameterSpec& each : p.kind("block").parameters) {
    if (each.tp_dim >= 0) weights += static_cast<double>(each.elements());
  }
  const double share = p.cluster.gpu.memory_bound.bandwidth_share;
  const double moved = 5 * weights / (p.cluster.gpu.memory_bandwidth.value() * share);
  EXPECT_NEAR(all - gathered, moved, 0.25 * moved);
}

TEST(LayerTime, KeepsWeightGradientsWideWhenTheRecipeSaysSo) {
  Priced p;
  p.engine = fsdp2();
  p.job = scaled_by(Fp8Recipe::rowwise);
  p.size(1);
  const LayerTime narrow = p.layer("block");
  p.job.fp8_recipe = Fp8Recipe::rowwise_wide_gradient;
  const LayerTime wide = p.layer("block");
  EXPECT_EQ(wide.forward.gemm.value(), narrow.forward.gemm.value());
  EXPECT_GT(wide.weight_gradient, narrow.weight_gradient * 1.3);
}

// Matrices that are kept in 8 bits alone are transposed for each product where GEMMs read one
// layout (Hopper), by a byte read and a byte written an element.
TEST(LayerTime, FrozenWeightsInEightBitsAreTransposedInBackwardOnHopper) {
  const auto excess = [](const char* cluster) {
    Priced p;
    p.cluster = *find_cluster(cluster);
    p.engine = *find_engine("megatron_ddp");
    p.job.precision = DType::fp8;
    p.job.frozen_base = true;
    p.layout.zero_stage = 1;
    const LayerTime cached = p.layer("block");
    p.job.fp8_parameter_gather = true;
    const LayerTime kept = p.layer("block");
    EXPECT_EQ(kept.forward.memory_bound, cached.forward.memory_bound);
    return (kept.backward.memory_bound - cached.backward.memory_bound).value();
  };
  const double elements = (6'979'321'856.0 / 32);  // of a block's matrices of Llama-3.1-8B
  const double least = 2 * elements / find_cluster("dgx-h200")->gpu.memory_bandwidth.value();
  EXPECT_GT(excess("dgx-h200"), least);
  EXPECT_LT(excess("dgx-h200"), 1.5 * least);
  EXPECT_EQ(excess("dgx-b200"), 0);
}

}  // namespace
}  // namespace shardwise
