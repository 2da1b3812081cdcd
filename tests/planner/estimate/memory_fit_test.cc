// Verdicts of drawn layouts: what must fit decides, cached memory does not.

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "planner/cost/software/runtime_memory.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/report/memory_numbers.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

constexpr int kFitDraws = 400;

/// A legal question whose memory is near what a GPU has.
struct FitCase {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  EngineProfile engine;
  Layout layout;

  StepReport report() const { return estimate(model, cluster, job, engine, layout); }
  /// With so much more slack, however large.
  StepReport with_slack(std::int64_t more) const {
    FitCase changed = *this;
    RuntimeMemory& runtime = changed.engine.runtime;
    runtime = runtime_memory(engine, cluster.gpu);
    runtime.slack_bytes += more;
    runtime.slack_most_share = 10;
    runtime.slack_most_bytes = 0;
    runtime.slack_whole_share = 0;
    return changed.report();
  }
};

class DrawsFits {
 public:
  std::optional<FitCase> next() {
    FitCase made{test::llama(8, 2048, 5632, 16, 8, 32000), *find_cluster("dgx-a100"), {}, {}, {}};
    const std::vector<std::string> names = engine_names();
    made.engine = *find_engine(names[index(names.size())]);
    Layout& l = made.layout;
    l.tp = one_of({1, 1, 2});
    l.pp = one_of({1, 1, 2});
    l.dp_shard = 8 / (l.tp * l.pp);
    l.sequence_parallel = l.tp > 1;
    l.micro_batch_size = one_of({1, 2, 4});
    l.zero_stage =
        static_cast<std::int8_t>(made.engine.zero_stages[index(made.engine.zero_stages.size())]);
    l.recompute = one_of({Recompute::none, Recompute::selective, Recompute::full});
    made.job.sequence_length = one_of({1024, 4096});
    made.job.global_batch_size = 64;
    if (!is_legal(made.model, made.cluster, made.job, made.engine, l)) return std::nullopt;
    const Verdict whole = made.report().verdict;
    const double share = std::uniform_real_distribution<double>(0.9, 1.3)(random_);
    made.cluster.gpu.hbm_bytes =
        Bytes(static_cast<std::int64_t>(static_cast<double>(whole.needed.value()) * share));
    return made;
  }
  std::int64_t slack() { return static_cast<std::int64_t>(index(std::size_t{80} << 30U)); }

 private:
  std::size_t index(std::size_t size) {
    return std::uniform_int_distribution<std::size_t>(0, size - 1)(random_);
  }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(index(values.size())));
  }

  std::mt19937_64 random_{20261129};
};

TEST(MemoryFit, IsNeverRefusedWhereWhatMustFitDoes) {
  DrawsFits draws;
  int fitting = 0;
  int refused = 0;
  for (int i = 0; i < kFitDraws; ++i) {
    const std::optional<FitCase> drawn = draws.next();
    if (!drawn) continue;
    const StepReport report = drawn->report();
    bool has_room = true;
    for (const StageMemory& stage : report.stages) {
      for (const Ledger& ledger : stage.phases) {
        const Bytes allocated = ledger.allocated();
        const Bytes outside = ledger.total() - ledger.reserved();
        has_room = has_room &&
                   allocated + outside + Bytes(allocated.value() / 50) <= report.verdict.usable;
      }
    }
    const bool refuses = report.verdict.fit == Fit::does_not_fit;
    EXPECT_FALSE(refuses && has_room) << drawn->engine.name;
    fitting += has_room ? 1 : 0;
    refused += refuses ? 1 : 0;
  }
  EXPECT_GT(fitting, kFitDraws / 10);
  EXPECT_GT(refused, kFitDraws / 20);
}

TEST(MemoryFit, IsNotRefusedForLargerSlack) {
  DrawsFits draws;
  int changed = 0;
  for (int i = 0; i < kFitDraws; ++i) {
    const std::optional<FitCase> drawn = draws.next();
    if (!drawn) continue;
    const Verdict before = drawn->with_slack(0).verdict;
    const Verdict after = drawn->with_slack(draws.slack()).verdict;
    EXPECT_EQ(after.needed, before.needed) << drawn->engine.name;
    EXPECT_GE(after.point, before.point);
    EXPECT_EQ(after.fit == Fit::does_not_fit, before.fit == Fit::does_not_fit)
        << drawn->engine.name;
    changed += after.fit != before.fit ? 1 : 0;
  }
  EXPECT_GT(changed, 0);
}

TEST(MemoryFit, HasThreeNumbersThatNestAndThePhaseThatEndsARun) {
  DrawsFits draws;
  for (int i = 0; i < kFitDraws; ++i) {
    const std::optional<FitCase> drawn = draws.next();
    if (!drawn) continue;
    const StepReport report = drawn->report();
    const MemoryNumbers numbers = memory_numbers(report);
    EXPECT_LE(numbers.allocated, numbers.reserved);
    EXPECT_LT(numbers.reserved, numbers.nvidia_smi);
    EXPECT_EQ(numbers.nvidia_smi, report.verdict.point);
    EXPECT_LE(report.verdict.needed, report.verdict.point);
    const auto worst = static_cast<std::size_t>(report.verdict.worst_stage);
    EXPECT_EQ(report.stages[worst][numbers.ends_in].allocated(), numbers.allocated);
  }
}

// 62.3 GiB allocated, 83 with cached blocks: it ran on a card of 80 GB.
TEST(MemoryFit, OfARunThatCachesMoreThanTheGpuHasIsAtRisk) {
  const MemoryPeaks peaks = {65_GiB, 83_GiB, 90_GiB, Bytes(0)};
  EXPECT_EQ(fit_of(peaks, 79_GiB), Fit::at_risk);
  EXPECT_EQ(fit_of(peaks, 64_GiB), Fit::does_not_fit);
  EXPECT_EQ(fit_of(peaks, 90_GiB), Fit::fits);
  MemoryPeaks offloaded = peaks;
  offloaded.host_lacks = 1_GiB;
  EXPECT_EQ(fit_of(offloaded, 90_GiB), Fit::does_not_fit);
}

}  // namespace
}  // namespace shardwise
