// Plans that the search itself returns for CPUs, of drawn models on 4 to 8 ranks: each trains, with
// the losses of the same ranks without a pipeline, and near those of ranks that share no layers, in
// the bytes of the ledger. All hundred of them:
// SHARDWISE_WHOLE_DRAWS=1 build/dev/bin/executor_launch_test --gtest_filter='SearchedPlans.*'
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/launch/executable.h"
#include "planner/cost/memory/memory.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/question/layout_words.h"
#include "planner/search/search.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "tests/executor/launch/plans.h"
#include "tests/executor/launch/trained_plan.h"
#include "tests/support/models.h"
#include "tests/support/sanitized.h"

namespace shardwise::exec::test {
namespace {

constexpr int kPlans = 100;

/// Of the hundred so many are trained: a tenth unless SHARDWISE_WHOLE_DRAWS is set.
bool is_drawn(int number) {
  static const bool whole = std::getenv("SHARDWISE_WHOLE_DRAWS") != nullptr;
  if (shardwise::test::kSanitized) return number % 25 == 0;
  return whole || number % 10 == 0;
}

template <class Value>
Value one_of(std::mt19937& random, std::initializer_list<Value> values) {
  return values.begin()[random() % values.size()];
}

ModelSpec draw_model(std::mt19937& random) {
  const auto number = random() % 8;
  if (number == 0) return *load_model("gpt2-tiny");
  if (number == 1) return *load_model("llama-tiny");
  const auto layers = one_of<std::int64_t>(random, {2, 3, 4, 6, 8});
  const auto heads = one_of<std::int64_t>(random, {2, 4});
  ModelSpec model = shardwise::test::llama(layers, 8 * heads, 24 * heads, heads, heads / 2, 256);
  model.model_type = "llama";
  return model;
}

/// Plans of one question that its search lists or has on its front.
std::vector<Plan> searched(std::mt19937& random) {
  const ModelSpec model = draw_model(random);
  const auto ranks = one_of<std::int64_t>(random, {4, 5, 6, 8});
  const ClusterSpec cluster = *with_gpus(*find_cluster("laptop"), ranks);
  JobSpec job;
  job.precision = one_of(random, {DType::fp32, DType::bf16});
  job.loss = LossKernel::chunked;
  job.sequence_length = 16;
  job.global_batch_size = ranks * one_of<std::int64_t>(random, {1, 2, 3});
  job.calculate_per_token_loss = random() % 4 == 0;
  SearchRequest request;
  request.model = &model;
  request.cluster = &cluster;
  request.job = &job;
  request.engines = engines_of_today(cluster);
  request.breadth = one_of(random, {Breadth::usual, Breadth::full});
  request.executed = true;
  if (random() % 2 == 0) request.locks = {{"zero_stage", one_of(random, {"0", "1", "2", "3"})}};
  const Result<SearchResult> found = search(request);
  if (!found) return {};
  std::vector<Plan> plans;
  for (const std::vector<Candidate>* list : {&found->best, &found->front}) {
    for (const Candidate& each : *list) {
      plans.push_back({model, cluster, job, *request.engines.front(), each.layout});
    }
  }
  return plans;
}

/// The hundred: up to five of each question.
std::vector<Plan> hundred() {
  constexpr std::size_t kOfAQuestion = 5;
  std::mt19937 random(20261130);
  std::vector<Plan> all;
  while (all.size() < kPlans) {
    std::vector<Plan> plans = searched(random);
    for (std::size_t i = 0; i < kOfAQuestion && !plans.empty() && all.size() < kPlans; ++i) {
      const auto taken = plans.begin() + static_cast<std::ptrdiff_t>(random() % plans.size());
      all.push_back(*taken);
      plans.erase(taken);
    }
  }
  return all;
}

std::string name_of_plan(int number, const Plan& plan) {
  return fmt::format("{}: {}, {}, {} sequences, {}", number, plan.model.name,
                     name_of(plan.job.precision), plan.job.global_batch_size,
                     in_words(differing_fields(Layout(), plan.layout)));
}

/// The same ranks of data parallelism, each with all layers.
Plan without_pipeline(Plan plan) {
  plan.layout.pp = 1;
  plan.layout.vpp = 1;
  plan.layout.schedule = PipelineSchedule::one_f_one_b;
  plan.layout.order = Layout{}.order;
  plan.cluster = *with_gpus(plan.cluster, plan.layout.world());
  return plan;
}

/// The same ranks of data parallelism, each with all of all layers.
Plan without_shared_layers(Plan plan) {
  plan.layout.tp = 1;
  return without_pipeline(std::move(plan));
}

void expect_near(const Plan& plan, const TrainedPlan& trained, const TrainedPlan& alone) {
  const double tolerance = plan.job.precision == DType::bf16 ? 10.0 / 512 : 1e-5;
  for (std::size_t step = 0; step < alone.losses.size(); ++step) {
    EXPECT_NEAR(trained.losses[step], alone.losses[step], tolerance * alone.losses[step]);
  }
}

void expect_the_losses_of_one_stage(const Plan& plan, const TrainedPlan& trained) {
  const TrainedPlan alone = train_plan(without_pipeline(plan), 2);
  if (plan.model.tie_word_embeddings) return expect_near(plan, trained, alone);
  EXPECT_EQ(trained.losses, alone.losses);
  EXPECT_EQ(trained.norms, alone.norms);
}

void expect_the_bytes_of_the_ledger(const Plan& plan, const StepReport& report) {
  const LayoutMemory said =
      layout_memory_on(plan.cluster.gpu, plan.model, plan.job, plan.engine, plan.layout);
  ASSERT_EQ(report.stages.size(), said.stages.size());
  // Parts of a table that arrive from the other stage when passes are over: not in the ledger.
  const bool receives = plan.model.tie_word_embeddings && plan.layout.pp > 1 &&
                        plan.layout.zero_stage > 0 && plan.layout.dp() > 1;
  for (std::size_t stage = 0; stage < said.stages.size(); ++stage) {
    for (std::size_t p = 0; p < kMemoryPhases; ++p) {
      const auto phase = static_cast<MemoryPhase>(p);
      const bool passes = phase == MemoryPhase::first_forward_backward ||
                          phase == MemoryPhase::steady_forward_backward;
      if (receives && passes) continue;
      EXPECT_EQ(in_categories(report.stages[stage][phase]),
                in_categories(said.stages[stage][phase]))
          << "stage " << stage << ", " << name_of(phase);
    }
  }
}

TEST(SearchedPlans, TrainWithTheLossesOfOneStageInTheBytesOfTheLedger) {
  const std::vector<Plan> plans = hundred();
  std::map<std::string, int> drawn;
  for (int number = 0; number < kPlans; ++number) {
    const Plan& plan = plans[static_cast<std::size_t>(number)];
    SCOPED_TRACE(name_of_plan(number, plan));
    EXPECT_TRUE(cannot_execute(plan).empty());
    drawn[plan.layout.pp > 1 ? std::string(name_of(plan.layout.schedule)) : "no pipeline"] += 1;
    if (plan.layout.tp > 1) drawn[plan.layout.pp > 1 ? "tp and pp" : "tp"] += 1;
    if (!is_drawn(number)) continue;
    const TrainedPlan trained = train_plan(plan, 2);
    ASSERT_EQ(trained.losses.size(), 2U);
    EXPECT_TRUE(std::isfinite(trained.losses.back()));
    if (plan.layout.pp > 1) expect_the_losses_of_one_stage(plan, trained);
    if (plan.layout.tp > 1) {
      expect_near(plan, trained, train_plan(without_shared_layers(plan), 2));
    }
    expect_the_bytes_of_the_ledger(plan, trained.report);
  }
  for (const char* kind : {"no pipeline", "one_f_one_b", "tp", "tp and pp"})
    EXPECT_GT(drawn[kind], 10) << kind;
}

}  // namespace
}  // namespace shardwise::exec::test
