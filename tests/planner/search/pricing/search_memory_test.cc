#include "planner/search/pricing/search_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "planner/schedule/kept_slots.h"
#include "planner/search/explore.h"
#include "planner/search/pricing/pipeline_stages.h"
#include "tests/planner/search/search_job.h"
#include "tests/support/sanitized.h"

namespace shardwise {
namespace {

struct Question {
  const char* name;
  std::function<void(SearchJob&)> change;
};

/// One after the other, as somebody drags one thing and then another.
std::vector<Question> questions() {
  return {{"first", [](SearchJob&) {}},
          {"the same", [](SearchJob&) {}},
          {"batch", [](SearchJob& j) { j.job.global_batch_size = 64; }},
          {"sequence", [](SearchJob& j) { j.job.sequence_length = 2048; }},
          {"bandwidth", [](SearchJob& j) { j.cluster.tiers.back().bandwidth = 10_GBps; }},
          {"latency", [](SearchJob& j) { j.cluster.tiers.front().latency = Seconds(1e-4); }},
          {"host link", [](SearchJob& j) { j.cluster.host_link = 4_GBps; }},
          {"GPUs", [](SearchJob& j) { j.cluster = *with_gpus(j.cluster, 32); }},
          {"memory", [](SearchJob& j) { j.cluster.gpu.hbm_bytes = 30_GiB; }},
          {"offload", [](SearchJob& j) { j.request.opened = {"offload_activations"}; }},
          {"schedules", [](SearchJob& j) { j.request.opened = {"schedule"}; }},
          {"fewer GPUs", [](SearchJob& j) { j.cluster = *with_gpus(j.cluster, 12); }},
          {"engine", [](SearchJob& j) { j.request.engines = {find_engine("shardwise")}; }},
          {"model",
           [](SearchJob& j) {
             j.model = *load_model("llama-3.1-8b");
             j.cluster = *with_gpus(j.cluster, 16);
           }},
          {"full space", [](SearchJob& j) {
             j.request.opened.clear();
             j.request.breadth = Breadth::full;
             j.request.locks = {{"order", "tp-cp-ep-dp_shard-dp_replicate-pp"}, {"cp", "1"}};
           }}};
}

TEST(SearchMemory, ChangesNoAnswerOfASearch) {
  for (const int threads : {1, 3}) {
    if (test::kSanitized && threads == 1) continue;
    SearchJob job("gpt2-xl", 16, "megatron_ddp");
    job.request.threads = threads;
    const auto memory = std::make_shared<SearchMemory>();
    for (const Question& question : questions()) {
      SCOPED_TRACE(question.name);
      question.change(job);
      job.request.memory = nullptr;
      const SearchResult alone = job.found();
      job.request.memory = memory;
      const SearchResult with = job.found();
      ASSERT_FALSE(alone.best.empty());
      expect_same(with.best, alone.best);
      expect_same(with.front, alone.front);
      for (std::size_t e = 0; e < alone.counts.size(); ++e) {
        EXPECT_EQ(with.counts[e].ranked, alone.counts[e].ranked);
        EXPECT_EQ(with.counts[e].too_slow, alone.counts[e].too_slow);
      }
    }
  }
}

TEST(SearchMemory, ChangesNoExploration) {
  int changes = 0;
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  const auto memory = std::make_shared<SearchMemory>();
  for (const Question& question : questions()) {
    if (std::string(question.name) == "full space") break;
    SCOPED_TRACE(question.name);
    question.change(job);
    if (test::kSanitized && changes++ % 4 != 0) continue;
    job.request.memory = nullptr;
    const Exploration alone = *explore(job.ask());
    job.request.memory = memory;
    const Exploration with = *explore(job.ask());
    ASSERT_EQ(with.index, alone.index);
    EXPECT_EQ(with.point, alone.point);
    EXPECT_EQ(with.least_time, alone.least_time);
    EXPECT_EQ(with.step_time, alone.step_time);
  }
}

Layout pipeline() {
  Layout layout;
  layout.pp = 4;
  layout.vpp = 2;
  return layout;
}

TEST(SearchMemory, KeepsSchedules) {
  const auto memory = std::make_shared<SearchMemory>();
  const Layout layout = pipeline();
  const auto slots = memory->schedule(layout, 16, false)->slots(layout, 16, false);
  Layout other = layout;  // what the order of passes does not depend on
  other.tp = 8;
  other.micro_batch_size = 4;
  EXPECT_EQ(memory->schedule(other, 16, false)->slots(other, 16, false), slots);
  EXPECT_NE(memory->schedule(layout, 32, false)->slots(layout, 32, false), slots);
  EXPECT_NE(memory->schedule(layout, 16, true)->slots(layout, 16, true), slots);
  other.vpp = 1;
  EXPECT_NE(memory->schedule(other, 16, false)->slots(other, 16, false), slots);
  EXPECT_EQ(slots->slots, pipeline_slots(layout, 16).slots);
}

TEST(SearchMemory, SharesSlotsWithEstimatesOfTheSameSchedule) {
  const Layout layout = pipeline();
  const auto slots = kept_slots(layout, 24, false);
  EXPECT_EQ(std::make_shared<SearchMemory>()->schedule(layout, 24, false)->slots(layout, 24, false),
            slots);
  EXPECT_EQ(slots->slots, pipeline_slots(layout, 24).slots);
}

TEST(KeptSlots, AreMadeAgainOnceManyOthersWereAskedFor) {
  Layout layout = pipeline();
  const auto before = kept_slots(layout, 28, false);
  layout.pp = 64;
  for (const int m : {320, 384, 448, 512}) kept_slots(layout, m, false);
  const auto after = kept_slots(pipeline(), 28, false);
  EXPECT_NE(after, before);
  EXPECT_EQ(after->slots, before->slots);
}

TEST(SearchMemory, KeepsPathsForStagesThatHoldTheSameLayers) {
  const auto memory = std::make_shared<SearchMemory>();
  const Layout layout = pipeline();
  const ModelSpec model = *load_model("gpt2-xl");
  const std::size_t kinds = model.kinds.size();
  const std::vector<StageLayers> stages = assign_stages(model, layout);
  const PathCounts path(3 * kinds + 1, 2.0);
  memory->schedule(layout, 16, false)->add(stages, kinds, path);
  const auto known = [&](const ModelSpec& of, const Layout& at, std::int64_t microbatches) {
    return memory->schedule(at, microbatches, false)
        ->paths(assign_stages(of, at), of.kinds.size())
        .added();
  };
  EXPECT_EQ(known(model, layout, 16), 1U);
  EXPECT_EQ(known(model, layout, 32), 0U);
  EXPECT_EQ(known(*load_model("llama-3.1-8b"), layout, 16), 0U);
  Layout uneven = layout;
  uneven.first_stage_layers = 10;
  EXPECT_EQ(known(model, uneven, 16), 0U);
}

TEST(SearchMemory, KeepsWhatASearchHasFound) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  const auto memory = std::make_shared<SearchMemory>();
  job.request.memory = memory;
  const SearchResult found = job.found();
  const auto pipelined =
      std::ranges::find_if(found.best, [](const Candidate& each) { return each.layout.pp > 1; });
  ASSERT_NE(pipelined, found.best.end());
  const Layout& layout = pipelined->layout;
  const std::int64_t microbatches =
      job.job.global_batch_size / (layout.dp() * layout.micro_batch_size);
  const auto schedule = memory->schedule(layout, microbatches, false);
  EXPECT_GT(schedule->slot_count(), 0U);
  EXPECT_GT(schedule->paths(assign_stages(job.model, layout), job.model.kinds.size()).added(), 0U);
}

TEST(SearchMemory, LendsTablesOfTheSameLinks) {
  const auto memory = std::make_shared<SearchMemory>();
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 64);
  const ClusterTables* first = nullptr;
  {
    const auto tables = memory->borrow(cluster);
    first = tables.get();
    const auto others = memory->borrow(cluster);
    EXPECT_NE(others.get(), first) << "two have the same tables at once";
  }
  ClusterSpec larger = cluster;
  larger.gpus = 128;
  EXPECT_EQ(memory->borrow(larger)->cluster.tiers, cluster.tiers);
  EXPECT_EQ(memory->borrow(larger)->cluster.gpus, 64) << "new tables were made";
  ClusterSpec slower = cluster;
  slower.tiers.back().bandwidth = 1_GBps;
  EXPECT_EQ(memory->borrow(slower)->cluster.tiers, slower.tiers);
}

TEST(SearchMemory, ForgetsTheSchedulesThatWereAskedForLongestAgo) {
  const auto memory = std::make_shared<SearchMemory>();
  Layout layout;
  layout.pp = 128;
  const auto ask = [&](std::int64_t microbatches) {
    return memory->schedule(layout, microbatches, false)->slots(layout, microbatches, false);
  };
  const std::weak_ptr<const PipelineSlots> first = ask(400);
  const std::size_t each = first.lock()->slots.size();
  const std::weak_ptr<const PipelineSlots> used = ask(401);
  constexpr std::size_t kMost = std::size_t{8} << 20;
  for (std::size_t i = 0; i < kMost / each + 2; ++i) {
    ask(402 + static_cast<std::int64_t>(i));
    ask(401);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_FALSE(used.expired());
}

}  // namespace
}  // namespace shardwise
