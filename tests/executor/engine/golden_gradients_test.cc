// The gradients of ranks that share layers and pipelines equal those of Hugging Face's model code
// on one rank, in double there.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/comm/thread_world.h"
#include "executor/device/cpu/cpu_device.h"
#include "executor/engine/trainer.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/executor/engine/small_plans.h"
#include "tests/executor/support/tiny_model.h"

namespace shardwise::exec::test {
namespace {

// As that of one rank in golden_test.cc.
constexpr double kTolerance = 2e-5;

/// A layer that is given the tokens and targets of the golden file, some of which are ignored.
class OnGoldenTokens : public Layer {
 public:
  OnGoldenTokens(std::unique_ptr<Layer> layer, const ModelSpec& model)
      : layer_(std::move(layer)),
        tokens_(golden_tokens(model, golden_shape())),
        targets_(golden_targets(model, golden_shape())) {}

  LayerBytes bytes() const override { return layer_->bytes(); }
  void meet(LayerRoom& room) const override { layer_->meet(room); }
  void forward(const ForwardPass& pass, const Issue& to) const override {
    ForwardPass own = pass;
    own.inputs = tokens_.data();
    layer_->forward(own, to);
  }
  void recompute(const BackwardPass& pass, const Issue& to) const override {
    layer_->recompute(pass, to);
  }
  void backward(const BackwardPass& pass, const Issue& to) const override {
    BackwardPass own = pass;
    own.targets = targets_.data();
    layer_->backward(own, to);
  }

 private:
  std::unique_ptr<Layer> layer_;
  std::vector<std::int64_t> tokens_;
  std::vector<std::int64_t> targets_;
};

Plan golden_plan(const std::string& name, std::int32_t tp, std::int32_t pp, bool sequence) {
  const LayerShape shape = golden_shape();
  Plan plan;
  plan.model = golden_model(name);
  plan.engine = *find_engine("shardwise");
  plan.layout = over(tp);
  plan.layout.pp = pp;
  plan.layout.sequence_parallel = sequence;
  plan.layout.micro_batch_size = static_cast<std::int32_t>(shape.batch);
  plan.cluster = *with_gpus(*find_cluster("laptop"), plan.layout.world());
  plan.job.precision = DType::fp32;
  plan.job.loss = LossKernel::chunked;
  plan.job.loss_chunk_rows = 7;
  plan.job.sequence_length = shape.sequence;
  plan.job.global_batch_size = shape.batch;
  EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
  return plan;
}

using Gradients = std::map<std::string, std::vector<float>>;

/// Puts a rank's parts of the gradients into whole tensors, of the sum over `tokens`.
void add_parts(const Trainer& trainer, const Arena& arena, std::int64_t tokens, Gradients& whole) {
  const RankState& state = trainer.state();
  for (std::size_t u = 0; u < state.units().units.size(); ++u) {
    const auto* const all = reinterpret_cast<const float*>(state.view(arena, 0, u).gradients.data);
    for (const UnitTensor& tensor : state.units().units[u].tensors) {
      if (tensor.copy) continue;
      std::vector<float> part(all + tensor.begin, all + tensor.begin + tensor.elements);
      for (float& each : part) each *= static_cast<float>(tokens);
      put_part(tensor, state.place().tp_rank, part, whole[tensor.name]);
    }
  }
}

void expect_golden(const std::string& name, std::int32_t tp, std::int32_t pp, bool sequence) {
  const Plan plan = golden_plan(name, tp, pp, sequence);
  const std::string text(static_cast<std::size_t>(golden_shape().tokens()) + 1, '\1');
  const TokenSequences data = *TokenSequences::cut(TokenStream(text), plan.job.sequence_length,
                                                   plan.model.vocab_size, 3, "text");
  const WeightSource weights = [](const UnitTensor& tensor, std::int64_t first,
                                  std::span<float> values) {
    ParameterSpec parameter;
    parameter.shape = tensor.shape;
    const std::vector<float> all = golden_weight(tensor.name, parameter);
    std::copy_n(all.begin() + first, values.size(), values.begin());
  };
  Gradients gradients;
  double loss = 0;
  std::mutex mutex;
  AbortSignal abort;
  CpuDevice device;
  std::vector<Arena> arenas(static_cast<std::size_t>(plan.layout.world()));
  run_ranks(
      static_cast<int>(plan.layout.world()), abort,
      [&](World& world) {
        Arena& arena = arenas[static_cast<std::size_t>(world.rank())];
        LayerKernels kernels = kernels_of(plan, world.rank());
        kernels.make = [&plan, make = kernels.make](const LayerSpec& kind) {
          return std::make_unique<OnGoldenTokens>(make(kind), plan.model);
        };
        Trainer trainer(plan, world, device, arena, abort, {}, kernels);
        trainer.initialise(weights);
        const StepResult result = trainer.step(data);
        const std::scoped_lock lock(mutex);
        loss = result.loss;
        // The trainer divides by the tokens of its own targets, all of which count.
        add_parts(trainer, arena, golden_shape().tokens(), gradients);
      },
      std::chrono::seconds(120));
  const JsonValue& golden = *golden_models().find("models")->find(name);
  const double mean =
      golden.find("loss")->number / static_cast<double>(golden.find("tokens")->integer);
  EXPECT_NEAR(loss, mean, kTolerance * mean);
  const auto& expected = golden.find("gradients")->members;
  EXPECT_EQ(gradients.size(), expected.size());
  for (const auto& [tensor, values] : expected) {
    ASSERT_TRUE(gradients.contains(tensor)) << tensor;
    expect_golden_tensor(tensor, gradients.at(tensor), values, kTolerance);
  }
}

TEST(GoldenGradients, OfRanksThatShareLayersAndPipelinesEqualTransformers) {
  for (const std::string& name : golden_names()) {
    const ModelSpec model = golden_model(name);
    for (const std::int32_t tp : {1, 2, 4}) {
      if (model.num_attention_heads % tp != 0) continue;
      for (const std::int32_t pp : {1, 2}) {
        if (model.num_hidden_layers % pp != 0) continue;
        SCOPED_TRACE(name + ", tp " + std::to_string(tp) + ", pp " + std::to_string(pp));
        expect_golden(name, tp, pp, false);
        if (tp == 1 || golden_shape().sequence % tp != 0) continue;
        SCOPED_TRACE("sequence parallel");
        expect_golden(name, tp, pp, true);
      }
    }
  }
}

}  // namespace
}  // namespace shardwise::exec::test
