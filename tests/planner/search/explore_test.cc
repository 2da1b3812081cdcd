#include "planner/search/explore.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <stop_token>
#include <thread>
#include <tuple>
#include <vector>

#include "planner/estimate/estimate.h"
#include "tests/planner/search/search_job.h"

namespace shardwise {
namespace {

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
void expect_same_exploration(const Exploration& a, const Exploration& b) {
  EXPECT_EQ(a.index, b.index);
  EXPECT_EQ(a.engine, b.engine);
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.upper, b.upper);
  EXPECT_EQ(a.fit, b.fit);
  EXPECT_EQ(a.worst_stage, b.worst_stage);
  EXPECT_TRUE(same_bits(a.least_time, b.least_time));
  EXPECT_TRUE(same_bits(a.step_time, b.step_time));
  ASSERT_EQ(a.layout.rows(), b.layout.rows());
  for (std::size_t row = 0; row < a.rows(); ++row) ASSERT_EQ(a.layout[row], b.layout[row]);
}

/// Counts of a search that has all layouts that fit as ranked.
void expect_counts(const std::vector<SearchCounts>& counts,
                   const std::vector<SearchCounts>& of_search) {
  ASSERT_EQ(counts.size(), of_search.size());
  for (std::size_t e = 0; e < counts.size(); ++e) {
    EXPECT_EQ(counts[e].space.enumerated, of_search[e].space.enumerated);
    EXPECT_EQ(counts[e].space.legal, of_search[e].space.legal);
    ASSERT_EQ(counts[e].space.pruned.size(), of_search[e].space.pruned.size());
    for (std::size_t r = 0; r < counts[e].space.pruned.size(); ++r) {
      EXPECT_EQ(counts[e].space.pruned[r].rule, of_search[e].space.pruned[r].rule);
      EXPECT_EQ(counts[e].space.pruned[r].layouts, of_search[e].space.pruned[r].layouts);
    }
    EXPECT_EQ(counts[e].ranked, of_search[e].ranked + of_search[e].too_slow);
    EXPECT_EQ(counts[e].too_slow, 0);
    EXPECT_EQ(counts[e].at_risk, of_search[e].at_risk);
    EXPECT_EQ(counts[e].does_not_fit, of_search[e].does_not_fit);
  }
}

struct ExploredCase {
  const char* model;
  std::int64_t gpus;
  std::vector<const char*> engines;
  Bytes hbm;
};

class Explore : public testing::TestWithParam<ExploredCase> {
 protected:
  static SearchJob job() {
    const ExploredCase& c = GetParam();
    SearchJob job(c.model, c.gpus, c.engines.front());
    job.cluster.gpu.hbm_bytes = c.hbm;
    job.request.engines.clear();
    for (const char* engine : c.engines) job.request.engines.push_back(find_engine(engine));
    return job;
  }
};

TEST_P(Explore, HasEveryLayoutThatASearchCounts) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  const SearchResult found = job.found();
  expect_counts(all.counts, found.counts);
  std::map<std::pair<std::int32_t, Fit>, std::int64_t> rows;
  for (std::size_t row = 0; row < all.rows(); ++row) ++rows[{all.engine[row], all.fit[row]}];
  std::int64_t legal = 0;
  for (std::size_t e = 0; e < all.counts.size(); ++e) {
    const auto engine = static_cast<std::int32_t>(e);
    EXPECT_EQ((rows[{engine, Fit::fits}]), all.counts[e].ranked);
    EXPECT_EQ((rows[{engine, Fit::at_risk}]), all.counts[e].at_risk);
    EXPECT_EQ((rows[{engine, Fit::does_not_fit}]), all.counts[e].does_not_fit);
    legal += all.counts[e].space.legal;
  }
  EXPECT_EQ(static_cast<std::int64_t>(all.rows()), legal);
  EXPECT_FALSE(all.thinned);
  EXPECT_FALSE(all.stopped);
  EXPECT_EQ(all.usable, found.usable);
  EXPECT_EQ(all.held, found.held);
}

TEST_P(Explore, EqualsBruteForce) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  const std::vector<Candidate> expected = job.all();
  ASSERT_EQ(all.rows(), expected.size());
  int tight = 0;
  for (std::size_t row = 0; row < all.rows(); ++row) {
    const Candidate& each = expected[row];
    ASSERT_EQ(all.layout[row], each.layout);
    EXPECT_EQ(all.engine[row], each.engine);
    EXPECT_EQ(all.point[row], each.cost.point);
    EXPECT_EQ(all.upper[row], each.cost.upper);
    ASSERT_TRUE(all.timed(row));
    EXPECT_NEAR(all.step_time[row] / each.cost.step_time, 1, 1e-12);
    EXPECT_LE(all.least_time[row], all.step_time[row]);
    tight += all.least_time[row] > 0.8 * all.step_time[row] ? 1 : 0;
  }
  EXPECT_GT(tight, 0);
}

TEST_P(Explore, NamesTheWorstStageAsAnEstimateDoes) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  for (std::size_t row = 0; row < all.rows(); row += 7) {
    const EngineProfile& engine = *job.request.engines[static_cast<std::size_t>(all.engine[row])];
    const Verdict verdict =
        estimate(job.model, job.cluster, job.job, engine, all.layout[row]).verdict;
    EXPECT_EQ(all.fit[row], verdict.fit);
    EXPECT_EQ(all.worst_stage[row], verdict.worst_stage);
  }
}

TEST_P(Explore, RanksAsASearch) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  for (const Objective objective : {Objective::step_time, Objective::memory}) {
    job.request.objective = objective;
    const SearchResult found = job.found();
    std::vector<Layout> best;  // of each set of degrees
    std::set<std::tuple<std::int32_t, std::vector<std::int32_t>>> seen;
    for (const std::uint32_t row : ranked_rows(all, objective)) {
      const Layout l = all.layout[row];
      if (all.fit[row] != Fit::fits || best.size() == found.best.size()) break;
      const std::vector<std::int32_t> degrees = {l.tp,  l.cp,       l.pp,          l.ep,
                                                 l.etp, l.dp_shard, l.dp_replicate};
      if (seen.insert({all.engine[row], degrees}).second) best.push_back(l);
    }
    EXPECT_EQ(best, layouts_of(found.best));
  }
}

TEST_P(Explore, SortsByFitThenObjective) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  for (const Objective objective : {Objective::step_time, Objective::memory}) {
    const Rows rows = ranked_rows(all, objective);
    EXPECT_EQ(rows.size(), all.rows());
    EXPECT_EQ(std::set(rows.begin(), rows.end()).size(), rows.size());
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const std::uint32_t a = rows[i - 1];
      const std::uint32_t b = rows[i];
      ASSERT_LE(all.fit[a], all.fit[b]);
      if (all.fit[a] != all.fit[b]) continue;
      // What does not fit is sorted by how much it lacks.
      const Objective by = all.fit[a] == Fit::does_not_fit ? Objective::memory : objective;
      EXPECT_FALSE(ranks_before(by, all.candidate(b), all.candidate(a)));
    }
  }
}

TEST_P(Explore, HasTheFrontOfBruteForce) {
  SearchJob job = Explore::job();
  const Exploration all = explored(job);
  const std::vector<Candidate> fitting = that_fit(job.all(), all.usable);
  std::vector<Layout> expected;
  for (const Candidate& each : fitting) {
    const bool beaten = std::ranges::any_of(fitting, [&](const Candidate& other) {
      const bool as_good =
          other.cost.point <= each.cost.point && other.cost.step_time <= each.cost.step_time;
      const bool better = other.cost.point < each.cost.point ||
                          other.cost.step_time < each.cost.step_time || other.index < each.index;
      return as_good && better;
    });
    if (!beaten) expected.push_back(each.layout);
  }
  std::vector<Layout> front;
  for (const std::uint32_t row : front_rows(all)) front.push_back(all.layout[row]);
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(std::ranges::is_permutation(front, expected));
  EXPECT_EQ(front, layouts_of(job.found().front));
}

TEST_P(Explore, IsTheSameForAnyNumberOfThreads) {
  SearchJob job = Explore::job();
  const Exploration one = explored(job);
  for (const int threads : {2, 5}) {
    job.request.threads = threads;
    const Exploration many = explored(job);
    expect_same_exploration(many, one);
    expect_counts(many.counts, one.counts);
  }
}

TEST_P(Explore, HandsOutEveryRowOnceAndTheBestBoundsFirst) {
  for (const int threads : {1, 3}) {
    SearchJob job = Explore::job();
    job.request.threads = threads;
    const std::thread::id asking = std::this_thread::get_id();
    ExploreOptions options;
    int priced = 0;
    std::vector<bool> handed_out;
    std::vector<std::vector<std::uint32_t>> batches;
    options.priced = [&](const Exploration& all) {
      ++priced;
      EXPECT_EQ(std::this_thread::get_id(), asking);
      for (std::size_t row = 0; row < all.rows(); ++row) ASSERT_FALSE(all.timed(row));
      handed_out.resize(all.rows());
    };
    options.timed = [&](const Exploration& all, std::span<const std::uint32_t> rows) {
      EXPECT_EQ(std::this_thread::get_id(), asking);
      batches.emplace_back(rows.begin(), rows.end());
      for (const std::uint32_t row : rows) {
        EXPECT_FALSE(handed_out[row]);
        handed_out[row] = true;
      }
      for (std::size_t row = 0; row < all.rows(); ++row) {
        ASSERT_EQ(all.timed(row), handed_out[row]);
      }
    };
    const Exploration all = explored(job, options);
    EXPECT_EQ(priced, 1);
    EXPECT_EQ(std::ranges::count(handed_out, true), static_cast<std::ptrdiff_t>(all.rows()));
    // The best bound of those that fit does not fall from batch to batch.
    Seconds least(0);
    ASSERT_GT(batches.size(), 1U);
    for (const auto& batch : batches) {
      Seconds best(INFINITY);
      for (const std::uint32_t row : batch) {
        if (all.fit[row] == Fit::fits) best = std::min(best, all.least_time[row]);
      }
      EXPECT_GE(best, least);
      least = best;
    }
  }
}

TEST_P(Explore, KeepsTheBatchesThatItHandedOutWhenItIsStopped) {
  SearchJob job = Explore::job();
  const Exploration whole = explored(job);
  for (const int threads : {1, 3}) {
    std::stop_source source;
    job.request.threads = threads;
    job.request.stop = source.get_token();
    Rows handed_out;
    ExploreOptions options;
    options.timed = [&](const Exploration&, std::span<const std::uint32_t> rows) {
      EXPECT_TRUE(handed_out.empty());
      handed_out.assign(rows.begin(), rows.end());
      source.request_stop();
    };
    const Exploration part = explored(job, options);
    EXPECT_TRUE(part.stopped);
    EXPECT_EQ(part.point, whole.point);
    EXPECT_TRUE(same_bits(part.least_time, whole.least_time));
    EXPECT_FALSE(handed_out.empty());
    EXPECT_LT(handed_out.size(), whole.rows());
    for (std::size_t row = 0; row < part.rows(); ++row) {
      const bool has = std::ranges::binary_search(handed_out, row);
      ASSERT_EQ(part.timed(row), has);
      if (!has) continue;
      EXPECT_EQ(part.step_time[row], whole.step_time[row]);
    }
  }
}

TEST_P(Explore, HasNoRowsWhenItIsStoppedBefore) {
  SearchJob job = Explore::job();
  std::stop_source source;
  source.request_stop();
  job.request.stop = source.get_token();
  ExploreOptions options;
  options.priced = [](const Exploration&) { ADD_FAILURE() << "nothing was priced"; };
  const Exploration all = explored(job, options);
  EXPECT_TRUE(all.stopped);
  EXPECT_EQ(all.rows(), 0U);
  EXPECT_EQ(all.layout.rows(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Explore,
    testing::Values(ExploredCase{"gpt2-xl", 16, {"megatron_ddp"}, 30_GiB},
                    ExploredCase{"gpt2-xl", 12, {"fsdp2", "deepspeed"}, 24_GiB},
                    ExploredCase{"llama-3.1-8b", 16, {"megatron_fsdp"}, 60_GiB},
                    ExploredCase{"deepseek-v2-lite", 8, {"megatron_ddp"}, 80_GiB}),
    [](const auto& each) {
      std::string name = each.param.model;
      for (const char* engine : each.param.engines) {
        name += std::string("_") + engine;
      }
      std::ranges::replace_if(
          name, [](char ch) { return ch == '-' || ch == '.'; }, '_');
      return name;
    });

/// Two times of one layout, and two memories, are in one cell when they are this near.
constexpr double kCell = 1.0 / 16;

TEST(ThinnedExploration, KeepsTheBestOfEachCellAndTheAnswer) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  job.cluster.gpu.hbm_bytes = 30_GiB;
  const Exploration all = explored(job);
  ExploreOptions options;
  options.most_rows = all.rows() / 4;
  const Exploration few = explored(job, options);
  EXPECT_TRUE(few.thinned);
  const SearchResult found = job.found();
  EXPECT_LE(few.rows(), options.most_rows + found.best.size() + found.front.size());
  expect_counts(few.counts, all.counts);
  // Each row is that of the whole.
  for (std::size_t row = 0; row < few.rows(); ++row) {
    const auto at = std::ranges::lower_bound(all.index, few.index[row]);
    ASSERT_NE(at, all.index.end());
    ASSERT_EQ(*at, few.index[row]);
    const auto same = static_cast<std::size_t>(at - all.index.begin());
    EXPECT_EQ(few.layout[row], all.layout[same]);
    EXPECT_EQ(few.point[row], all.point[same]);
    EXPECT_EQ(few.worst_stage[row], all.worst_stage[same]);
    EXPECT_EQ(few.least_time[row], all.least_time[same]);
    EXPECT_EQ(few.step_time[row], all.step_time[same]);
  }
  std::vector<Layout> front;
  for (const std::uint32_t row : front_rows(few)) front.push_back(few.layout[row]);
  EXPECT_EQ(front, layouts_of(found.front));
  EXPECT_EQ(few.layout[ranked_rows(few, Objective::step_time).front()], found.best.front().layout);
  job.request.threads = 3;
  expect_same_exploration(explored(job, options), few);
}

TEST(ThinnedExploration, LeavesNoPartOfTheMemoryEmpty) {
  SearchJob job("gpt2-xl", 16, "megatron_ddp");
  const Exploration all = explored(job);
  ExploreOptions options;
  options.most_rows = all.rows() - 1;
  const Exploration few = explored(job, options);
  ASSERT_TRUE(few.thinned);
  EXPECT_LT(few.rows(), all.rows());
  for (std::size_t row = 0; row < all.rows(); ++row) {
    bool near = false;
    for (std::size_t other = 0; other < few.rows() && !near; ++other) {
      const double ratio = static_cast<double>(few.point[other].value()) /
                           static_cast<double>(all.point[row].value());
      near = few.fit[other] == all.fit[row] && std::abs(ratio - 1) < kCell;
    }
    ASSERT_TRUE(near) << all.point[row].value();
  }
}

TEST(ExploreRequest, SaysWhatIsWrongWithALock) {
  SearchJob job("gpt2", 8, "megatron_ddp");
  job.request.locks = {{"tq", "2"}};
  const Result<Exploration> result = explore(job.ask());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.problems().front().message, "tq is not a field of a layout (did you mean tp?)");
}

TEST(LayoutColumns, HoldEveryField) {
  Layout layout;
  layout.tp = 3;
  layout.sequence_parallel = true;
  layout.zero_stage = 2;
  layout.fp32_gradients = false;
  layout.recompute = Recompute::full;
  layout.order = {Axis::pp, Axis::dp_replicate, Axis::dp_shard, Axis::ep, Axis::cp, Axis::tp};
  LayoutColumns columns;
  columns.resize(2);
  columns.set(1, layout);
  EXPECT_EQ(columns[1], layout);
  EXPECT_EQ(columns.column<&Layout::tp>()[1], 3);
  EXPECT_EQ(columns.column<&Layout::sequence_parallel>()[1], 1);
  EXPECT_EQ(columns.column<&Layout::fp32_gradients>()[1], 0);
  EXPECT_EQ(columns.column<&Layout::order>()[1].front(), Axis::pp);
}

}  // namespace
}  // namespace shardwise
