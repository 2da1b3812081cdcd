// A search that is not counted answers as one that prices every layout.
#include "planner/search/best_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "planner/search/pricing/search_memory.h"
#include "tests/planner/search/search_job.h"
#include "tests/support/sanitized.h"

namespace shardwise {
namespace {

std::vector<Candidate> listed(const std::optional<Candidate>& one) {
  return one ? std::vector<Candidate>{*one} : std::vector<Candidate>();
}

/// Asks both ways. \returns what was found
SearchResult ask(SearchJob job, const std::shared_ptr<SearchMemory>& memory) {
  job.request.front = false;
  const SearchResult counted = job.found();
  job.request.counted = false;
  job.request.memory = memory;
  const SearchResult found = job.found();
  expect_same(found.best, counted.best);
  expect_same(found.risky, counted.risky);
  expect_same(listed(found.smallest), listed(counted.smallest));
  EXPECT_EQ(found.counts.front().space.legal, counted.counts.front().space.legal);
  return found;
}

class BestFirstOf : public testing::TestWithParam<std::string> {};

// Of every engine, from memory in which nothing fits to one in which all does; then with other
// bandwidths, which the memory of searches takes for the same layouts.
TEST_P(BestFirstOf, AnswersAsASearchThatPricesEveryLayout) {
  const auto memory = std::make_shared<SearchMemory>();
  int fitting = 0;
  int none = 0;
  for (const std::string model : {"llama-7b", "mixtral-8x7b"}) {
    if (model == "mixtral-8x7b" && (GetParam() == "deepspeed" || test::kSanitized)) continue;
    SearchJob job(model, model == "llama-7b" ? 16 : 8, GetParam());
    for (const int threads : {1, 3}) {
      for (const double gib : {4.0, 9.0, 14.0, 20.0, 40.0, 80.0, 200.0}) {
        SCOPED_TRACE(model + " " + std::to_string(gib) + " GiB");
        job.request.threads = threads;
        job.request.top = gib > 20 ? 5 : 1;
        job.cluster.gpu.hbm_bytes = Bytes(static_cast<std::int64_t>(gib * (1 << 30)));
        const SearchResult found = ask(job, memory);
        fitting += found.best.empty() ? 0 : 1;
        none += found.best.empty() && found.risky.empty() ? 1 : 0;
        for (const double factor : {0.1, 4.0}) {
          SearchJob other = job;
          for (LinkTier& tier : other.cluster.tiers) tier.bandwidth = factor * tier.bandwidth;
          ask(other, memory);
        }
      }
    }
  }
  EXPECT_GT(fitting, 0);
  EXPECT_GT(none, 0);
}

INSTANTIATE_TEST_SUITE_P(Engines, BestFirstOf, testing::ValuesIn(engine_names()),
                         [](const auto& each) { return each.param; });

TEST(StoppedBestFirst, EndsWithoutAnAnswer) {
  SearchJob job("gpt2-xl", 16, "megatron_fsdp");
  std::stop_source source;
  source.request_stop();
  job.request.front = false;
  job.request.counted = false;
  job.request.stop = source.get_token();
  const SearchResult result = job.found();
  EXPECT_TRUE(result.stopped);
  EXPECT_TRUE(result.best.empty());
}

}  // namespace
}  // namespace shardwise
