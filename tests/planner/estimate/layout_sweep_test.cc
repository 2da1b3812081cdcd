// Whatever layout somebody writes for whatever engine: it is refused with words, or it has an
// answer whose numbers are numbers. Seeded, so that a failure can be run again.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

constexpr std::uint64_t kLayoutSeed = 20261121;
constexpr int kLayouts = 3000;

/// Draws values that layouts have, and a few that none may have.
class Draw {
 public:
  template <class T>
  T one_of(std::initializer_list<T> values) {
    const std::size_t last = values.size() - 1;
    return *(values.begin() + std::uniform_int_distribution<std::size_t>(0, last)(random_));
  }
  /// `usual` nine times of ten.
  template <class T>
  T mostly(T usual, std::initializer_list<T> others) {
    return std::uniform_int_distribution<int>(0, 9)(random_) > 0 ? usual : one_of(others);
  }
  std::int32_t degree() { return mostly(one_of({1, 1, 2, 4}), {8, 3, 0, -1}); }

  Layout layout(const EngineProfile& engine) {
    Layout l;
    l.tp = degree();
    l.cp = mostly(1, {2, 4, 0});
    l.pp = degree();
    l.vpp = mostly(1, {2, 4, 0});
    l.first_stage_layers = mostly(0, {1, 2, 40});
    l.last_stage_layers = mostly(0, {1, 2, -3});
    l.ep = mostly(1, {2, 4, 8, 3});
    l.etp = mostly(1, {2, 5});
    l.dp_shard = degree();
    l.dp_replicate = mostly(1, {2, 0});
    l.micro_batch_size = mostly(1, {2, 7, 0});
    l.zero_stage = static_cast<std::int8_t>(mostly(engine.zero_stages.back(), {0, 1, 2, 3, 4}));
    l.sequence_parallel = mostly(l.tp > 1, {false, true});
    for (bool* each : {&l.outer_shards_optimizer, &l.offload_optimizer, &l.offload_activations,
                       &l.double_buffer}) {
      *each = mostly(false, {true});
    }
    l.reshard_after_forward = mostly(1, {0, 2, 4, 3});
    for (bool* each : {&l.fp32_gradients, &l.overlap_grad_reduce, &l.overlap_param_gather}) {
      *each = mostly(true, {false});
    }
    l.reduce_every_microbatch = mostly(engine.reduce_every_microbatch, {true, false});
    l.recompute = one_of({Recompute::none, Recompute::selective, Recompute::full});
    l.recompute_interval = mostly(1, {2, 0});
    l.schedule =
        mostly(PipelineSchedule::one_f_one_b,
               {PipelineSchedule::gpipe, PipelineSchedule::zb_h1, PipelineSchedule::zb_h2,
                PipelineSchedule::zb_v, PipelineSchedule::dualpipe, PipelineSchedule::dualpipe_v});
    l.cp_kind = one_of(
        {ContextParallelKind::ring, ContextParallelKind::all_gather, ContextParallelKind::ulysses});
    std::shuffle(l.order.begin(), l.order.end(), random_);
    return l;
  }

 private:
  std::mt19937_64 random_{kLayoutSeed};
};

std::string layout_text(const Layout& layout) {
  std::string text;
  for (const std::string& key : layout_keys()) {
    text += key + "=" + field_text(layout, key) + " ";
  }
  return text;
}

void expect_words(const Diagnostics& problems) {
  for (const Diagnostic& each : problems) {
    EXPECT_FALSE(each.message.empty());
    EXPECT_EQ(each.message.find('\n'), std::string::npos) << each.message;
  }
}

void expect_answer(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
                   const EngineProfile& engine, const Layout& layout) {
  const StepReport report = estimate(model, cluster, job, engine, layout);
  EXPECT_TRUE(std::isfinite(report.step_time.value()));
  EXPECT_GT(report.step_time, Seconds(0));
  EXPECT_NEAR(report.time.total() / report.step_time, 1, 1e-9);
  EXPECT_GT(report.mfu, 0);
  EXPECT_LT(report.mfu, 1);
  const Evaluation naive = evaluate(model, cluster, job, engine, layout);
  EXPECT_GT(naive.point, Bytes(0));
  EXPECT_GE(naive.upper, naive.point);
}

class EveryEngine : public testing::TestWithParam<std::string> {};

TEST_P(EveryEngine, RefusesALayoutInWordsOrAnswersWithNumbers) {
  const EngineProfile engine = *find_engine(GetParam());
  const std::vector<ModelSpec> models = {test::llama(8, 1024, 2816, 16, 8, 32000),
                                         test::gpt(6, 768, 12, 50304),
                                         test::mixture(8, 1024, 16, 8, 2, 2816, 512)};
  const ClusterSpec node = *find_cluster("dgx-h100");
  Draw draw;
  int answered = 0;
  for (int i = 0; i < kLayouts && !HasFailure(); ++i) {
    const ModelSpec& model = models[static_cast<std::size_t>(i) % models.size()];
    const Layout layout = draw.layout(engine);
    // As many GPUs as it says, as a rule; else as a node has.
    const bool sized = layout.world() > 0 && layout.world() <= 4096 && draw.mostly(true, {false});
    const ClusterSpec cluster = sized ? *with_gpus(node, layout.world()) : node;
    JobSpec job;
    job.sequence_length = draw.mostly<std::int64_t>(2048, {512, 1000});
    job.precision = draw.mostly(DType::bf16, {DType::fp8, DType::fp32});
    job.global_batch_size = draw.mostly<std::int64_t>(64, {0, 7});
    const std::string text = engine.name + " " + model.name + " " + layout_text(layout);
    SCOPED_TRACE(text);
    const Diagnostics problems = check_layout(model, cluster, job, engine, layout);
    ASSERT_EQ(problems.empty(), is_legal(model, cluster, job, engine, layout));
    expect_words(problems);
    if (!problems.empty()) continue;
    ++answered;
    expect_answer(model, cluster, job, engine, layout);
  }
  EXPECT_GT(answered, kLayouts / 50);
  EXPECT_LT(answered, kLayouts);
}

INSTANTIATE_TEST_SUITE_P(Engines, EveryEngine, testing::ValuesIn(engine_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwise
