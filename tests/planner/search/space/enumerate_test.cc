#include "planner/search/space/enumerate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/support/sanitized.h"

namespace shardwise {
namespace {

/// A layout as text, for sets.
std::string text_of(const Layout& layout) {
  std::string text;
  for (const std::string& key : layout_keys()) text += key + "=" + field_text(layout, key) + " ";
  return text;
}

struct EnumeratedJob {
  ModelSpec model;
  ClusterSpec cluster;
  JobSpec job;
  EngineProfile engine;

  EnumeratedJob(const std::string& model_name, std::int64_t gpus, const std::string& engine_name)
      : model(*load_model(model_name)),
        cluster(*with_gpus(*find_cluster("dgx-h100"), gpus)),
        engine(*find_engine(engine_name)) {
    job.global_batch_size = 16;
    job.sequence_length = 1024;
  }
  LayoutQuestion question() const { return layout_question(model, cluster, job, engine); }
};

std::set<std::string> walked(const LayoutQuestion& question, const SearchSpace& space,
                             SpaceCounts& counts) {
  const Enumerator enumerator(question, space);
  counts = enumerator.no_counts();
  ShapeCache shapes(*question.cluster);
  std::set<std::string> layouts;
  for (DegreeGroup& group : enumerator.degree_groups(counts)) {
    enumerator.place(group, shapes);
    for (const std::int32_t size : enumerator.micro_batch_sizes()) {
      const WorkItem item = enumerator.work_item(group, size, counts);
      for (const WorkItem::Stretch& stretch : item.stretches) {
        for (const PipelineChoice& pipeline : stretch.pipelines) {
          for (const LayerChoice& layer : item.layers) {
            for (const WorkItem::PlacedMesh& mesh : stretch.meshes) {
              for (const StateChoice& states : mesh.states) {
                for (const PlacedOrder& order : mesh.mesh->orders) {
                  Layout layout = item.base;
                  layout.pp = stretch.pp;
                  layout.dp_shard = mesh.mesh->dp_shard;
                  layout.dp_replicate = mesh.mesh->dp_replicate;
                  set(layout, pipeline);
                  set(layout, layer);
                  set(layout, states);
                  layout.order = order.order;
                  EXPECT_TRUE(layouts.insert(text_of(layout)).second) << "twice";
                }
              }
            }
          }
        }
      }
    }
  }
  return layouts;
}

/// The values of each field, as texts. The degrees come first.
using Values = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// Every combination of `values`, all rules asked of each; of orders alike the first.
std::set<std::string> brute_force(const LayoutQuestion& question, const SearchSpace& space,
                                  const Values& values, std::int64_t& enumerated) {
  std::vector<Layout> all{Layout{}};
  for (const auto& [key, texts] : values) {
    std::vector<Layout> next;
    for (const Layout& layout : all) {
      for (const std::string& text : texts) {
        next.push_back(layout);
        EXPECT_EQ(set_field(next.back(), key, text), "");
      }
    }
    all = std::move(next);
    if (key == "dp_replicate") {
      std::erase_if(all, [&](const Layout& l) { return l.world() != question.cluster->gpus; });
    }
  }
  enumerated =
      static_cast<std::int64_t>(all.size()) * static_cast<std::int64_t>(space.order.size());
  std::erase_if(all, [&](const Layout& l) {
    for (const LayoutRule& rule : layout_rules()) {
      if (rule.broken(question, l)) return true;
    }
    for (const SearchRule& each : search_rules()) {
      const bool applies = std::ranges::find(space.rules, each.rule.id) != space.rules.end();
      if (applies && each.rule.broken(question, l)) return true;
    }
    return false;
  });
  std::set<std::string> layouts;
  for (Layout layout : all) {
    std::vector<std::vector<GroupShape>> seen;
    for (const RankOrder& order : space.order) {
      layout.order = order;
      std::vector<GroupShape> shapes;
      for (const GroupKind kind :
           {GroupKind::tp, GroupKind::cp, GroupKind::ep, GroupKind::etp, GroupKind::pp,
            GroupKind::dp_shard_cp, GroupKind::dp_replicate, GroupKind::edp_shard}) {
        const bool routed =
            kind == GroupKind::ep || kind == GroupKind::etp || kind == GroupKind::edp_shard;
        if (routed && question.model->num_experts == 0) continue;
        shapes.push_back(group_shape(*question.cluster, layout, kind));
      }
      if (layout.reshard_after_forward > 1) {
        shapes.push_back(group_shape(*question.cluster, layout, GroupKind::reshard));
      }
      if (std::ranges::find(seen, shapes) != seen.end()) continue;
      seen.push_back(shapes);
      layouts.insert(text_of(layout));
    }
  }
  return layouts;
}

class EnumeratorOfModel : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// Each round leaves every field at most two or three values, so that their product is small.
TEST_P(EnumeratorOfModel, FindsExactlyTheLayoutsThatBreakNoRule) {
  const auto [model, engine] = GetParam();
  std::mt19937 random(7);
  const auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  std::size_t found = 0;
  constexpr int kRounds = test::kSanitized ? 3 : 12;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    EnumeratedJob job(model, pick(2) == 0 ? 8 : 16, engine);
    if (pick(3) == 0) job.job.attention = AttentionKernel::materialised;
    const LayoutQuestion question = job.question();
    SearchSpace space = search_space(question, pick(2) == 0 ? Breadth::usual : Breadth::full);
    Values values;
    // The first value is the one that most layouts can have: 1, none, off.
    const auto narrow = [&](const std::string& key, auto& domain, std::size_t most) {
      const bool keeps_first = most > 1 || pick(4) > 0;
      std::shuffle(domain.begin() + (keeps_first ? 1 : 0), domain.end(), random);
      if (domain.size() > most) domain.resize(most);
      std::vector<std::string>& texts = values.emplace_back(key, std::vector<std::string>()).second;
      using Value = typename std::remove_reference_t<decltype(domain)>::value_type;
      for (const Value value : domain) {
        if constexpr (std::is_same_v<Value, bool>) {
          texts.push_back(value ? "true" : "false");
        } else if constexpr (std::is_enum_v<Value>) {
          texts.emplace_back(name_of(value));
        } else if (key == "reshard_after_forward") {
          texts.push_back(value == 0 ? "false" : value == 1 ? "true" : std::to_string(value));
        } else {
          texts.push_back(std::to_string(value));
        }
      }
    };
    // A number of ranks is the only value where it is asked for.
    if (question.engine->reshards_to_groups && round % 3 == 0) space.reshard_after_forward = {2};
    std::shuffle(space.zero_stage.begin(), space.zero_stage.end(), random);
    narrow("tp", space.tp, 2);
    narrow("cp", space.cp, 2);
    narrow("pp", space.pp, 3);
    narrow("dp_shard", space.dp_shard, 9);
    narrow("dp_replicate", space.dp_replicate, 9);
    narrow("vpp", space.vpp, 2);
    narrow("ep", space.ep, 2);
    narrow("etp", space.etp, 2);
    narrow("micro_batch_size", space.micro_batch_size, 2);
    narrow("zero_stage", space.zero_stage, 2);
    narrow("sequence_parallel", space.sequence_parallel, 2);
    narrow("outer_shards_optimizer", space.outer_shards_optimizer, 1 + pick(2));
    narrow("reshard_after_forward", space.reshard_after_forward, 1 + pick(2));
    narrow("reduce_every_microbatch", space.reduce_every_microbatch, 1 + pick(2));
    narrow("offload_optimizer", space.offload_optimizer, 1 + pick(2));
    narrow("offload_activations", space.offload_activations, 1);
    narrow("double_buffer", space.double_buffer, 1 + pick(2));
    narrow("fp32_gradients", space.fp32_gradients, 1 + pick(2));
    narrow("recompute", space.recompute, 2);
    narrow("schedule", space.schedule, 2);
    narrow("cp_kind", space.cp_kind, 1 + pick(2));
    std::shuffle(space.order.begin(), space.order.end(), random);
    space.order.resize(std::min<std::size_t>(space.order.size(), 5));

    SpaceCounts counts;
    const std::set<std::string> walk = walked(question, space, counts);
    std::int64_t enumerated = 0;
    const std::set<std::string> brute = brute_force(question, space, values, enumerated);
    EXPECT_EQ(walk, brute);
    EXPECT_EQ(counts.enumerated, enumerated);
    EXPECT_EQ(counts.legal, static_cast<std::int64_t>(brute.size()));
    EXPECT_EQ(counts.enumerated, counts.pruned_total() + counts.legal);
    found += brute.size();
  }
  EXPECT_GT(found, 8U * kRounds) << "the rounds found next to nothing";
}

INSTANTIATE_TEST_SUITE_P(
    Models, EnumeratorOfModel,
    testing::Values(std::tuple("gpt2", "megatron_ddp"), std::tuple("gpt2", "fsdp2"),
                    std::tuple("gpt2", "megatron_fsdp"), std::tuple("gpt2", "shardwise"),
                    std::tuple("mixtral-8x7b", "megatron_ddp"),
                    std::tuple("mixtral-8x7b", "deepspeed")),
    [](const auto& each) {
      std::string name = std::string(std::get<0>(each.param)) + "_" + std::get<1>(each.param);
      std::ranges::replace_if(
          name, [](char c) { return c == '-' || c == '.'; }, '_');
      return name;
    });

TEST(SearchSpace, OfEveryEngineHasUsualLayouts) {
  for (const std::string& engine : engine_names()) {
    const EnumeratedJob job(find_engine(engine)->tied_head ? "gpt2" : "pythia-1.4b", 8, engine);
    const LayoutQuestion question = job.question();
    SpaceCounts counts;
    walked(question, search_space(question, Breadth::usual), counts);
    EXPECT_GT(counts.legal, 0) << engine;
  }
}

TEST(SearchSpace, WithoutFusedAttentionHasLayoutsWithAndWithoutContextParallelism) {
  EnumeratedJob job("gpt2", 8, "megatron_ddp");
  job.job.precision = DType::fp32;
  job.job.sequence_length = 2048;
  const LayoutQuestion question = job.question();
  SpaceCounts counts;
  std::set<std::string> one;
  std::set<std::string> several;
  for (const std::string& layout :
       walked(question, search_space(question, Breadth::usual), counts)) {
    (layout.find("cp=1 ") != std::string::npos ? one : several).insert(layout);
  }
  EXPECT_FALSE(one.empty());
  ASSERT_FALSE(several.empty());
  for (const std::string& layout : several) {
    EXPECT_NE(layout.find("cp_kind=all_gather"), std::string::npos) << layout;
  }
}

TEST(SearchSpace, OfCudnnsAttentionIsThatOfFlashAttention) {
  EnumeratedJob job("gpt2", 8, "megatron_ddp");
  job.job.sequence_length = 2048;
  const auto walk = [&](AttentionKernel kernel) {
    job.job.attention = kernel;
    const LayoutQuestion question = job.question();
    SpaceCounts counts;
    return walked(question, search_space(question, Breadth::usual), counts);
  };
  EXPECT_EQ(walk(AttentionKernel::cudnn), walk(AttentionKernel::flash));
}

// Calculon's exhaustive search of the same job has 7,126,368 configurations.
TEST(SearchSpace, OfGpt3On4096GpusHasMillionsOfLegalLayouts) {
  EnumeratedJob job("gpt3-175b", 4096, "megatron_ddp");
  job.job.global_batch_size = 1536;
  job.job.sequence_length = 2048;
  const LayoutQuestion question = job.question();
  const SearchSpace space = search_space(question, Breadth::full);
  const Enumerator enumerator(question, space);
  SpaceCounts counts = enumerator.no_counts();
  ShapeCache shapes(job.cluster);
  for (DegreeGroup& group : enumerator.degree_groups(counts)) {
    enumerator.place(group, shapes);
    for (const std::int32_t size : enumerator.micro_batch_sizes()) {
      enumerator.work_item(group, size, counts);
    }
  }
  EXPECT_GE(counts.legal, 7'000'000);
  EXPECT_EQ(counts.enumerated, counts.pruned_total() + counts.legal);
}

TEST(SearchSpace, OpensWhatRefinesALayout) {
  const EnumeratedJob job("gpt2", 8, "megatron_ddp");
  const LayoutQuestion question = job.question();
  SearchSpace space = search_space(question, Breadth::usual);
  SpaceCounts even;
  const std::set<std::string> before = walked(question, space, even);
  EXPECT_EQ(open(space, question, "recompute_interval"), "");
  EXPECT_EQ(space.recompute_interval.size(), 12U);  // gpt2 has 12 blocks
  SpaceCounts counts;
  const std::set<std::string> finer = walked(question, space, counts);
  EXPECT_TRUE(std::ranges::includes(finer, before));
  // Of each layout with full recompute there are twelve, of the others one.
  const auto full = std::ranges::count_if(before, [](const std::string& layout) {
    return layout.find("recompute=full") != std::string::npos;
  });
  ASSERT_GT(full, 0);
  EXPECT_EQ(finer.size(), before.size() + 11 * static_cast<std::size_t>(full));

  EXPECT_EQ(open(space, question, "first_stage_layers"), "");
  EXPECT_EQ(open(space, question, "overlap_grad_reduce"), "");
  EXPECT_GT(space.first_stage_layers.size(), 6U);
  EXPECT_EQ(space.overlap_grad_reduce.size(), 2U);
  walked(question, space, counts);
  EXPECT_GT(counts.legal, static_cast<std::int64_t>(finer.size()));
  EXPECT_EQ(counts.enumerated, counts.pruned_total() + counts.legal);
}

TEST(SearchSpace, IsNarrowedByLocksAndWidenedByOpening) {
  const EnumeratedJob job("gpt2", 8, "megatron_ddp");
  const LayoutQuestion question = job.question();
  SearchSpace space = search_space(question, Breadth::usual);
  EXPECT_EQ(lock(space, "tp", "4"), "");
  EXPECT_THAT(space.tp, testing::ElementsAre(4));
  EXPECT_EQ(lock(space, "tpp", "4"), "tpp is not a field of a layout (did you mean tp?)");
  EXPECT_EQ(lock(space, "tp", "x"), "tp: x is not an integer from 1 to 4194304");
  EXPECT_EQ(open(space, question, "offload_optimizer"), "");
  EXPECT_EQ(space.offload_optimizer.size(), 2U);
  EXPECT_EQ(open(space, question, "offlod_optimizer"),
            "offlod_optimizer is not a field of a layout (did you mean offload_optimizer?)");
  EXPECT_THAT(space.rules, testing::Contains("usual_sequence_parallel"));
  EXPECT_EQ(lock(space, "sequence_parallel", "false"), "");
  EXPECT_THAT(space.rules, testing::Not(testing::Contains("usual_sequence_parallel")));
}

}  // namespace
}  // namespace shardwise
