#include "planner/search/pricing/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/support/sanitized.h"

namespace shardwise {
namespace {

/// Compares a share of the layouts it is shown with evaluate().
class Comparer final : public LayoutVisitor {
 public:
  Comparer(const ModelSpec& model, const ClusterSpec& cluster, const JobSpec& job,
           const EngineProfile& engine, double share)
      : model_(model), cluster_(cluster), job_(job), engine_(engine), share_(share) {}

  Seconds memory(const Layout&, const MemoryPrice&, Seconds floor, std::int64_t orders) override {
    shown += orders;
    floor_ = floor;
    return Seconds(INFINITY);
  }
  void time(const Layout& layout, const MemoryPrice& price, Seconds step_time,
            std::int64_t index) override {
    EXPECT_EQ(index, next_++);
    // What is not timed because of its floor would not have been faster.
    EXPECT_LE(floor_, step_time);
    tight += floor_ > 0.5 * step_time ? 1 : 0;
    if (std::uniform_real_distribution<>(0, 1)(random_) > share_) return;
    ++compared;
    const Evaluation naive = evaluate(model_, cluster_, job_, engine_, layout);
    const bool same = naive.needed == price.needed && naive.point == price.point &&
                      naive.upper == price.upper &&
                      std::abs(naive.step_time / step_time - 1) <= 1e-12;
    if (same) return;
    std::string text;
    for (const std::string& key : layout_keys()) text += key + "=" + field_text(layout, key) + " ";
    ADD_FAILURE() << text << "\n  point " << price.point.value() << " naive " << naive.point.value()
                  << "\n  upper " << price.upper.value() << " naive " << naive.upper.value()
                  << "\n  time " << step_time.value() << " naive " << naive.step_time.value();
  }
  void next_item() { next_ = 0; }

  std::int64_t shown = 0;
  std::int64_t compared = 0;
  std::int64_t tight = 0;  // whose floor is more than half their time

 private:
  const ModelSpec& model_;
  const ClusterSpec& cluster_;
  const JobSpec& job_;
  const EngineProfile& engine_;
  double share_;
  std::int64_t next_ = 0;
  Seconds floor_;
  std::mt19937_64 random_{11};
};

/// Asks for every layout twice: first without a limit, then with the slowest of its orders as one.
class AskingTwice final : public LayoutVisitor {
 public:
  Seconds memory(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {
    if (again_) return slowest_[next_++];
    slowest_.emplace_back(0);
    return Seconds(1e300);
  }
  void time(const Layout&, const MemoryPrice&, Seconds step_time, std::int64_t) override {
    ++(again_ ? second : first);
    if (!again_) slowest_.back() = std::max(slowest_.back(), step_time);
  }
  void ask_again() { again_ = true; }

  std::int64_t first = 0;
  std::int64_t second = 0;

 private:
  bool again_ = false;
  std::size_t next_ = 0;
  std::vector<Seconds> slowest_;
};

/// Compares bounds on memory with the memory of layouts, which it has no time for.
class BoundedMemory final : public LayoutVisitor {
 public:
  bool sees_all() const override { return false; }
  Seconds limit() override { return Seconds(1e300); }
  bool may_matter(const MemoryPrice& least, std::int64_t /*first*/,
                  std::int64_t /*orders*/) override {
    least_ = least;
    return true;
  }
  Seconds memory(const Layout&, const MemoryPrice& price, Seconds, std::int64_t) override {
    ++compared;
    above +=
        least_.needed > price.needed || least_.point > price.point || least_.upper > price.upper
            ? 1
            : 0;
    // Less by what a layer computes in and gathers, mostly.
    close += 2 * least_.point.value() > price.point.value() ? 1 : 0;
    return Seconds(-1);
  }
  void time(const Layout&, const MemoryPrice&, Seconds, std::int64_t) override {}

  std::int64_t compared = 0;
  std::int64_t above = 0;
  std::int64_t close = 0;

 private:
  MemoryPrice least_;
};

struct EvaluatedCase {
  const char* model;
  const char* engine;
  std::int64_t gpus;
  std::int64_t batch;
  std::int64_t sequence;
  Breadth breadth;
};

class EvaluatorOf : public testing::TestWithParam<EvaluatedCase> {};

// The search's answer to every question is that of the path that looks at one layout at a time.
TEST_P(EvaluatorOf, EqualsTheNaivePath) {
  const EvaluatedCase& c = GetParam();
  const ModelSpec model = *load_model(c.model);
  const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), c.gpus);
  const EngineProfile engine = *find_engine(c.engine);
  JobSpec job;
  job.global_batch_size = c.batch;
  job.sequence_length = c.sequence;
  const LayoutQuestion question = layout_question(model, cluster, job, engine);
  const SearchSpace space = search_space(question, c.breadth);
  const Enumerator enumerator(question, space);

  SpaceCounts counts = enumerator.no_counts();
  ShapeCache shapes(cluster);
  std::vector<DegreeGroup> groups = enumerator.degree_groups(counts);
  std::vector<WorkItem> items;
  for (DegreeGroup& group : groups) {
    enumerator.place(group, shapes);
    for (const std::int32_t size : enumerator.micro_batch_sizes()) {
      items.push_back(enumerator.work_item(group, size, counts));
    }
  }
  ASSERT_GT(counts.legal, 0);
  constexpr double kCompared = 400;
  constexpr std::size_t kTried = test::kSanitized ? 64 : 1;  // of so many items one
  Comparer comparer(model, cluster, job, engine, kCompared / static_cast<double>(counts.legal));
  Evaluator evaluator(model, cluster, job, engine);
  for (std::size_t i = 0; i < items.size(); i += kTried) {
    comparer.next_item();
    evaluator.run(items[i], comparer);
  }
  if constexpr (kTried == 1) {
    EXPECT_EQ(comparer.shown, counts.legal);
    EXPECT_GT(comparer.compared, kCompared / 2);
  }
  EXPECT_GT(comparer.compared, 0);
  EXPECT_GT(comparer.tight, 0);

  BoundedMemory bounded;
  for (std::size_t i = 0; i < items.size(); i += kTried) evaluator.run(items[i], bounded);
  EXPECT_GT(bounded.compared, 0);
  EXPECT_EQ(bounded.above, 0) << "a bound is above the memory of a layout";
  EXPECT_GT(2 * bounded.close, bounded.compared);

  AskingTwice asking;
  constexpr std::size_t kEvery = 5 * kTried;
  for (std::size_t i = 0; i < items.size(); i += kEvery) evaluator.run(items[i], asking);
  asking.ask_again();
  for (std::size_t i = 0; i < items.size(); i += kEvery) evaluator.run(items[i], asking);
  EXPECT_GT(asking.first, 0);
  EXPECT_EQ(asking.second, asking.first) << "a bound is above the time of a layout";
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, EvaluatorOf,
    testing::Values(EvaluatedCase{"llama-3.1-70b", "megatron_ddp", 64, 512, 8192, Breadth::usual},
                    EvaluatedCase{"llama-3.1-8b", "megatron_ddp", 16, 64, 4096, Breadth::full},
                    EvaluatedCase{"llama-3.1-8b", "fsdp2", 16, 64, 4096, Breadth::full},
                    EvaluatedCase{"gpt2-xl", "megatron_fsdp", 8, 32, 1024, Breadth::full},
                    EvaluatedCase{"gpt2-xl", "shardwise", 8, 32, 1024, Breadth::full},
                    EvaluatedCase{"gpt2-xl", "deepspeed", 24, 96, 1024, Breadth::full},
                    EvaluatedCase{"gpt2-xl", "fsdp1", 12, 96, 1024, Breadth::full},
                    EvaluatedCase{"mixtral-8x7b", "megatron_ddp", 16, 64, 4096, Breadth::usual},
                    EvaluatedCase{"mixtral-8x7b", "megatron_fsdp", 8, 16, 4096, Breadth::usual},
                    EvaluatedCase{"deepseek-v2-lite", "megatron_ddp", 16, 64, 4096, Breadth::usual},
                    EvaluatedCase{"t5-large", "fsdp2", 8, 32, 512, Breadth::usual}),
    [](const auto& each) {
      std::string name = std::string(each.param.model) + "_" + each.param.engine;
      std::ranges::replace_if(
          name, [](char ch) { return ch == '-' || ch == '.'; }, '_');
      return name + (each.param.breadth == Breadth::full ? "_full" : "");
    });

}  // namespace
}  // namespace shardwise
