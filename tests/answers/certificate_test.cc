// What is proved about the best row, compared with the simulated steps of all layouts.
#include "answers/certificate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "answers/simulated_steps.h"
#include "planner/engines/engines.h"
#include "planner/estimate/loss_rows.h"
#include "planner/model/hf_config.h"
#include "planner/search/layouts_below.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise::sim {
namespace {

constexpr Seconds kAnyTime = Seconds(1e9);

PlanQuestion asked(const std::string& model, const std::string& cluster, std::int64_t gpus,
                   const std::vector<std::string>& engines, std::int64_t batch) {
  PlanQuestion q;
  q.model = *load_model(model);
  q.clusters = {*with_gpus(*find_cluster(cluster), gpus)};
  for (const std::string& engine : engines) q.engines.push_back(find_engine(engine));
  q.job.global_batch_size = batch;
  q.job.sequence_length = 1024;
  q.threads = 2;
  return q;
}

/// Every layout of one engine that fits, with its bound, and its simulated step.
struct AllLayouts {
  std::vector<PlanRow> rows;
  std::vector<Seconds> steps;
};
AllLayouts all_layouts(const PlanQuestion& q, std::size_t engine, std::size_t every = 1) {
  const SearchRequest request = q.request(0, engine);
  const LayoutsBelow below = *layouts_below(request, kAnyTime, 1'000'000);
  // Counted by the search, which has another way to them.
  EXPECT_EQ(std::ssize(below.lowest), search(request)->counts.front().ranked);
  EXPECT_EQ(below.others, kAnyTime);
  AllLayouts all;
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < below.lowest.size(); i += every) {
    PlanRow& row = all.rows.emplace_back();
    row.candidate = below.lowest[i];
    row.candidate.engine = static_cast<std::int32_t>(engine);
    row.cluster = q.clusters.data();
    row.engine = q.engines[engine]->name;
    plans.push_back(plan_of(q, row));
  }
  all.steps = simulated_steps(plans, q.threads);
  return all;
}

/// Of a small space, all of which is simulated.
void expect_proved(const PlanQuestion& q) {
  const PlanAnswer found = *answer(q);
  ASSERT_FALSE(found.best.empty());
  const std::optional<Certificate> proved = certify(q, found);
  ASSERT_TRUE(proved.has_value());
  Seconds least = kAnyTime;
  for (std::size_t e = 0; e < q.engines.size(); ++e) {
    if (!found.engines[e].refused.empty()) continue;
    const AllLayouts all = all_layouts(q, e);
    for (const Seconds step : all.steps) least = std::min(least, step);
  }
  const Seconds best = found.best.front().step();
  EXPECT_LE(best / least - 1, proved->faster);
  EXPECT_GE(proved->faster, 0);
  if (best / least - 1 > kProved) {
    ASSERT_TRUE(proved->fastest.has_value());
  }
  if (proved->fastest) {
    EXPECT_GE(proved->fastest->step(), least);
    EXPECT_LT(proved->fastest->step(), best);
  }
}

TEST(Certificate, IsTrueOfAllLayoutsOfASmallSpace) {
  expect_proved(asked("gpt2", "aws-p4d", 16, {"megatron_ddp", "fsdp2"}, 64));
  expect_proved(asked("gpt2-xl", "dgx-a100", 8, {"megatron_fsdp", "deepspeed"}, 32));
  expect_proved(asked("qwen3-0.6b", "rtx-4090-x8", 8, {"fsdp2", "internevo", "fsdp1"}, 16));
}

// A layout may run other rows of a loss than it was priced with.
TEST(Certificate, IsTrueWhereRowsOfTheLossAreDecided) {
  PlanQuestion q = asked("gpt2", "dgx-a100", 8, {"shardwise"}, 64);
  q.job.loss = LossKernel::chunked;
  q.job.loss_chunk_rows = usual_loss_chunk_rows(q.clusters.front().gpu);
  ASSERT_EQ(q.job.loss_chunk_rows, kOpenLossRows);
  expect_proved(q);
}

TEST(Certificate, SaysTheSameForAnyNumberOfThreads) {
  PlanQuestion q = asked("gpt2-xl", "aws-p4d", 16, {"megatron_ddp", "megatron_fsdp"}, 64);
  const PlanAnswer found = *answer(q);
  const Certificate two = *certify(q, found);
  q.threads = 1;
  const Certificate one = *certify(q, found);
  EXPECT_EQ(one.faster, two.faster);
  EXPECT_EQ(one.simulated, two.simulated);
  EXPECT_EQ(certificate_words(one), certificate_words(two));
}

TEST(Certificate, IsOfSimulatedTimesAlone) {
  PlanQuestion q = asked("gpt2", "aws-p4d", 16, {"megatron_ddp"}, 64);
  q.objective = Objective::memory;
  EXPECT_FALSE(certify(q, *answer(q)).has_value());
  q.objective = Objective::step_time;
  q.simulate = false;
  EXPECT_FALSE(certify(q, *answer(q)).has_value());
}

TEST(Certificate, ProvesLessWhereLayoutsAreTooMany) {
  PlanQuestion q = asked("gpt2-xl", "aws-p4d", 16, {"megatron_ddp"}, 64);
  PlanAnswer found = *answer(q);
  // A row that most of the space may beat.
  for (PlanRow& row : found.best) row.simulated.reset();
  found.best.front().simulated = Seconds(100);
  const Certificate proved = *certify(q, found);
  ASSERT_TRUE(proved.fastest.has_value());
  EXPECT_LE(proved.simulated, 256);
  EXPECT_GE(proved.faster, Seconds(100) / proved.fastest->step() - 1);
  EXPECT_GT(proved.faster, 10);
}

TEST(Certificate, RoundsUpWhatIsProved) {
  Certificate certificate;
  certificate.faster = 0.00401;
  certificate.simulated = 7;
  certificate.valid = 1234;
  EXPECT_EQ(certificate_words(certificate),
            "proved: no layout that fits is more than 0.5 % faster; 7 of 1,234 simulated");
}

class BoundsOf : public testing::TestWithParam<std::string> {};

// Drawn layouts of every engine: of models with experts and without, in pipelines and none.
TEST_P(BoundsOf, AreBelowSimulatedSteps) {
  for (const std::string model : {"llama-7b", "mixtral-8x7b"}) {
    const PlanQuestion q = asked(model, "dgx-h100", 32, {GetParam()}, 128);
    const AllLayouts few = all_layouts(q, 0, model == "llama-7b" ? 61 : 997);
    for (std::size_t i = 0; i < few.rows.size(); ++i) {
      EXPECT_LE(few.rows[i].candidate.cost.step_time, few.steps[i]) << model << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, BoundsOf, testing::ValuesIn(engine_names()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shardwise::sim
