#include "simulator/workload/sent_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "planner/engines/engines.h"
#include "planner/lowering/lower.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "simulator/clock/simulate.h"
#include "simulator/clock/step_report.h"

namespace shardwise::sim {
namespace {

Plan sending_plan(const char* model, std::int64_t gpus, const Layout& layout,
                  const char* cluster = "dgx-h100") {
  Plan plan;
  plan.model = *load_model(model);
  plan.cluster = *with_gpus(*find_cluster(cluster), gpus);
  plan.engine = *find_engine("megatron_ddp");
  plan.layout = layout;
  plan.job.global_batch_size = 32;
  return plan;
}

Layout layout_of(std::int32_t tp, std::int32_t cp, std::int32_t pp, std::int32_t dp) {
  Layout layout;
  layout.tp = tp;
  layout.cp = cp;
  layout.pp = pp;
  layout.dp_shard = dp;
  layout.zero_stage = 1;
  layout.sequence_parallel = tp > 1;
  return layout;
}

std::vector<Plan> plans() {
  std::vector<Plan> all = {sending_plan("llama-3.1-8b", 32, layout_of(4, 1, 2, 4)),
                           sending_plan("llama-3.1-8b", 32, layout_of(2, 2, 2, 4)),
                           sending_plan("llama-3.1-8b", 16, layout_of(1, 1, 1, 16))};
  Layout experts = layout_of(1, 2, 1, 8);
  experts.ep = 8;
  all.push_back(sending_plan("mixtral-8x7b", 16, experts));
  Layout replicas = layout_of(2, 1, 1, 4);
  replicas.dp_replicate = 2;
  all.push_back(sending_plan("llama-3.1-8b", 16, replicas));
  // Two GPUs share a NIC.
  all.push_back(sending_plan("llama-3.1-8b", 16, layout_of(2, 1, 2, 4), "dgx-a100"));
  return all;
}

Bytes sum_of(const StageSent& sent, Stream stream) {
  Bytes sum;
  for (const SentPart& part : sent.parts) {
    if (part.stream != stream) continue;
    for (const Bytes each : part.bytes) sum += each;
  }
  return sum;
}

TEST(SentBytes, OfTheGroupsSumToThoseOfTheReportTierByTier) {
  for (const Plan& plan : plans()) {
    const Simulation simulation = simulate(plan);
    const std::vector<StageSent> sent = sent_by_stage(plan, simulation.program);
    const StepTimeline& timeline = timeline_of(simulation.report);
    ASSERT_EQ(sent.size(), timeline.stages.size());
    for (std::size_t s = 0; s < sent.size(); ++s) {
      std::set<std::size_t> told;
      for (const LinkTime& link : timeline.stages[s].links) {
        const auto tier = std::ranges::find_if(plan.cluster.tiers, [&](const LinkTier& each) {
          return link.tier.starts_with(each.name);
        });
        ASSERT_NE(tier, plan.cluster.tiers.end());
        const auto index = static_cast<std::size_t>(tier - plan.cluster.tiers.begin());
        told.insert(index);
        Bytes sum;
        for (const SentPart& part : sent[s].parts) sum += part.bytes[index];
        EXPECT_EQ(sum, link.sent) << plan.cluster.name << " stage " << s << ' ' << link.tier;
        EXPECT_EQ(sum, sent[s].over(index));
      }
      for (std::size_t tier = 0; tier < kMaxTiers; ++tier) {
        EXPECT_EQ(told.contains(tier), sent[s].over(tier) > Bytes(0));
      }
    }
  }
}

TEST(SentBytes, HaveAPartForEachGroupOnceAndNoneThatIsEmpty) {
  for (const Plan& plan : plans()) {
    for (const StageSent& sent : sent_by_stage(plan, lower(plan, Granularity::layer))) {
      std::set<std::pair<Stream, GroupKind>> seen;
      for (const SentPart& part : sent.parts) {
        EXPECT_TRUE(seen.insert({part.stream, part.group}).second);
        EXPECT_GT(*std::ranges::max_element(part.bytes), Bytes(0));
        EXPECT_GE(*std::ranges::min_element(part.bytes), Bytes(0));
      }
    }
  }
}

// A micro-batch of s tokens leaves a stage as s x h activations of 2 bytes, and its gradients enter
// the stage below likewise; sequence parallelism leaves a rank its part of them.
TEST(SentBytes, OfMessagesAreActivationsAndTheirGradients) {
  const Plan plan = sending_plan("llama-3.1-8b", 32, layout_of(4, 1, 2, 4));
  const std::vector<StageSent> sent = sent_by_stage(plan, lower(plan, Granularity::layer));
  constexpr std::int64_t kHidden = 4096;
  const std::int64_t microbatches = 32 / 4;
  const Bytes message(plan.job.sequence_length * kHidden * 2 / 4);
  ASSERT_EQ(sent.size(), 2U);
  for (const StageSent& each : sent) EXPECT_EQ(sum_of(each, Stream::send), microbatches * message);
}

// Rajbhandari et al. 2020, section 7: a reduce-scatter of gradients and an all-gather of parameters
// each send (n - 1) / n of them; the gradients are summed in 4 bytes, the parameters have 2.
TEST(SentBytes, OfZeroOneAreTheZeroPapers) {
  const Plan plan = sending_plan("llama-3.1-8b", 8, layout_of(1, 1, 1, 8));
  const StageSent sent = sent_by_stage(plan, lower(plan, Granularity::layer)).front();
  const auto parameters = static_cast<double>(plan.model.parameter_count());
  const auto near = [&](Stream stream, double bytes_each) {
    const double expected = parameters * bytes_each * 7 / 8;
    EXPECT_NEAR(static_cast<double>(sum_of(sent, stream).value()) / expected, 1, 1e-3);
  };
  near(Stream::reduce_scatter, 4);
  near(Stream::all_gather, 2);
}

}  // namespace
}  // namespace shardwise::sim
