#include "tests/executor/engine/small_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "executor/engine/rank_place.h"
#include "planner/engines/engines.h"
#include "planner/legality/legality.h"
#include "planner/lowering/operands/state_types.h"
#include "planner/model/hf_config.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::exec::test {
namespace {

ModelSpec with_few_tokens(ModelSpec model) {
  constexpr std::int64_t kFew = 211;
  const std::int64_t all = std::exchange(model.vocab_size, kFew);
  for (LayerSpec& kind : model.kinds) {
    for (ParameterSpec& each : kind.parameters) {
      if (each.tp == TpSplit::vocab) each.shape.front() = kFew;
    }
    for (OperationSpec& each : kind.operations) {
      if (each.width == all) each.width = kFew;
      if (each.k == all) each.k = kFew;
    }
  }
  return model;
}

}  // namespace

Plan small_plan_of(const std::string& model, const Layout& layout, std::int64_t num_microbatches) {
  Plan plan;
  plan.model = with_few_tokens(*load_model(model));
  plan.engine = *find_engine("shardwise");
  plan.layout = layout;
  plan.cluster = *with_gpus(*find_cluster("laptop"), layout.world());
  plan.job.precision = DType::fp32;
  plan.job.loss = LossKernel::chunked;
  plan.job.loss_chunk_rows = 10;  // chunks of 10, 10 and 4 rows
  plan.job.sequence_length = 24;
  plan.job.global_batch_size = layout.dp() * layout.micro_batch_size * num_microbatches;
  EXPECT_TRUE(check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout).empty());
  return plan;
}

Layout over(std::int32_t tp, std::int32_t dp_shard, int zero_stage) {
  Layout layout;
  layout.tp = tp;
  layout.dp_shard = dp_shard;
  layout.zero_stage = static_cast<std::int8_t>(zero_stage);
  return layout;
}

LayerKernels kernels_of(const Plan& plan, std::int64_t rank) {
  LayerShape shape = layer_shape(plan.model, plan.job, plan.layout);
  shape.tp_rank = place_of(plan.layout, rank).tp_rank;
  shape.gradients = state_types(lowering_context(plan, Granularity::layer, false)).made;
  return {[&plan, shape](const LayerSpec& kind) { return make_layer(plan.model, kind, shape); },
          [&plan, shape](std::byte* tables, const Issue& to) {
            fill_tables(plan.model, shape, tables, to);
          }};
}

void put_part(const UnitTensor& tensor, int tp_rank, std::span<const float> part,
              std::vector<float>& whole) {
  whole.resize(static_cast<std::size_t>(tensor.filled));
  const auto put = [&](const SliceRun& run) {
    if (run.whole >= 0) std::copy_n(part.begin() + run.part, run.count, whole.begin() + run.whole);
  };
  if (!tensor.cut.cut()) return put({0, 0, tensor.filled});
  for_slice_runs(tensor.cut, tensor.cut.part_of(tp_rank), 0, tensor.elements, put);
}

TokenSequences few_tokens(const Plan& plan) {
  std::string text;
  for (int i = 0; i < 4000; ++i) text += static_cast<char>('a' + (i * i / 7 + i) % 23);
  return *TokenSequences::cut(TokenStream(text), plan.job.sequence_length, plan.model.vocab_size, 3,
                              "text");
}

}  // namespace shardwise::exec::test
