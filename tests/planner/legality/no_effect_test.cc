// A value that the rules call another one's double is priced like that one, bytes and time (F2).

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/engines/engines.h"
#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/machine/cluster_reader.h"
#include "tests/planner/lowering/sampler.h"
#include "tests/support/models.h"

namespace shardwise {
namespace {

/// Rules by which a search leaves out what moves the same bytes in another way, replicas without
/// shards as one group or as two: no doubles.
bool is_of_replicas(std::string_view id) {
  return id == "replicas_without_shards" || id == "zero_without_shards";
}

/// The layout that one which breaks a redundant rule doubles.
using Original = std::function<void(const LayoutQuestion&, Layout&)>;
const std::map<std::string_view, Original>& originals() {
  using Q = LayoutQuestion;
  static const std::map<std::string_view, Original> kAll = {
      {"cp_kind_needs_cp", [](const Q&, Layout& l) { l.cp_kind = ContextParallelKind::ring; }},
      {"selective_is_none", [](const Q&, Layout& l) { l.recompute = Recompute::none; }},
      {"interval_without_full", [](const Q&, Layout& l) { l.recompute_interval = 1; }},
      {"outer_without_replicas", [](const Q&, Layout& l) { l.outer_shards_optimizer = false; }},
      {"reshard_without_zero3", [](const Q&, Layout& l) { l.reshard_after_forward = 1; }},
      {"reduce_without_shards", [](const Q&, Layout& l) { l.reduce_every_microbatch = true; }},
      {"reduce_of_one", [](const Q&, Layout& l) { l.reduce_every_microbatch = true; }},
      {"double_buffer_without_shards", [](const Q&, Layout& l) { l.double_buffer = false; }},
      {"gradient_dtype_is_fixed",
       [](const Q&, Layout& l) { l.fp32_gradients = !l.fp32_gradients; }},
      {"bucket_size_of_one", [](const Q&, Layout& l) { l.ddp_bucket_size = 0; }},
      {"bucket_padding_without_shards",
       [](const Q&, Layout& l) { l.ddp_pad_buckets_for_high_nccl_busbw = false; }},
      {"one_loop", [](const Q&, Layout& l) { l.schedule = PipelineSchedule::gpipe; }},
  };
  return kAll;
}

TEST(Doubles, HaveAnOriginalEach) {
  for (const LayoutRule& rule : layout_rules()) {
    if (rule.redundant && !is_of_replicas(rule.id)) {
      EXPECT_TRUE(originals().contains(rule.id)) << rule.id;
    }
  }
}

TEST(Doubles, ArePricedLikeTheirOriginals) {
  std::uint32_t seed = 20261124;
  std::map<std::string_view, int> seen;
  for (const std::string& engine_name : engine_names()) {
    for (const bool experts : {false, true}) {
      const ModelSpec model = experts ? test::mixture(16, 2048, 16, 16, 2, 1024, 0)
                                      : test::llama(16, 4096, 14336, 32, 8, 32000);
      const EngineProfile engine = *find_engine(engine_name);
      const ClusterSpec cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
      JobSpec job;
      job.sequence_length = 2048;
      job.global_batch_size = seed % 2 == 0 ? 32 : 16;
      const LayoutQuestion question = layout_question(model, cluster, job, engine);
      test::Sampler sampler(question, ++seed);
      int drawn = 0;
      for (int tries = 0; tries < 50'000 && drawn < 40; ++tries) {
        Layout layout = sampler.draw();
        // What no space has.
        if (layout.recompute != Recompute::full) layout.recompute_interval = 1 + tries % 2;
        if (layout.pp > 1 && layout.vpp == 1 && tries % 4 == 0) {
          layout.schedule = PipelineSchedule::looped_bfs;
        }
        if (chooses_buckets(engine)) {
          layout.overlap_grad_reduce = layout.overlap_param_gather = tries % 3 > 0;
          layout.ddp_bucket_size = tries % 5 == 0 ? 10'000'000 : 0;
          layout.ddp_pad_buckets_for_high_nccl_busbw = tries % 2 == 0;
        }
        if (!sampler.legal(layout)) continue;
        ++drawn;
        const StepReport own = estimate(model, cluster, job, engine, layout);
        for (const LayoutRule& rule : layout_rules()) {
          if (!rule.redundant || is_of_replicas(rule.id)) continue;
          if (!rule.broken(question, layout)) continue;
          Layout original = layout;
          originals().at(rule.id)(question, original);
          if (!is_legal(model, cluster, job, engine, original)) continue;
          ++seen[rule.id];
          const StepReport other = estimate(model, cluster, job, engine, original);
          const std::string named =
              std::string(rule.id) + " " + engine_name + " " + test::text_of(layout);
          EXPECT_NEAR(own.step_time / other.step_time, 1, 1e-12) << named;
          EXPECT_EQ(own.verdict.point, other.verdict.point) << named;
          EXPECT_EQ(own.verdict.upper, other.verdict.upper) << named;
        }
      }
    }
  }
  EXPECT_GE(seen.size() + 1, originals().size());  // few engines loop
}

}  // namespace
}  // namespace shardwise
