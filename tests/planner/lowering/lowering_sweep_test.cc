#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>

#include "planner/cost/layout_rules.h"
#include "planner/search/space.h"
#include "planner/spec/plan_fields.h"
#include "tests/planner/lowering/lowered.h"

namespace shardwise::test {
namespace {

TEST(Lower, MakesAProgramOfOneStageForEveryEngine) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    for (const int zero_stage : engine.zero_stages) {
      for (const std::int64_t m : {1, 3}) {
        Layout layout;
        layout.dp_shard = 8;
        layout.zero_stage = static_cast<std::int8_t>(zero_stage);
        const Plan plan = small_plan(engine, layout, m);
        for (const StepKind step : {StepKind::steady, StepKind::first}) {
          EXPECT_EQ(problems_of(lower(plan, Granularity::layer, step)), "")
              << name << " ZeRO-" << zero_stage << " m " << m;
        }
      }
    }
  }
}

TEST(Lower, MakesAProgramOfEverySchedule) {
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    if (!engine.pipeline) continue;
    for (const PipelineSchedule schedule : engine.schedules) {
      for (const std::int32_t vpp : {1, 2}) {
        if (vpp > 1 && schedule != PipelineSchedule::one_f_one_b) continue;
        for (const int zero_stage : engine.zero_stages) {
          Layout layout;
          layout.pp = 4;
          layout.vpp = vpp;
          layout.dp_shard = 2;
          layout.schedule = schedule;
          layout.zero_stage = static_cast<std::int8_t>(zero_stage);
          const Plan plan = small_plan(engine, layout, 8, 16);
          EXPECT_EQ(problems_of(lower(plan)), "") << name << " ZeRO-" << zero_stage << " "
                                                  << static_cast<int>(schedule) << " x " << vpp;
        }
      }
    }
  }
}

/// Draws layouts of the full search space.
class Sampler {
 public:
  Sampler(const LayoutQuestion& question, std::uint32_t seed)
      : question_(question), space_(search_space(question, Breadth::full)), random_(seed) {}

  Layout draw() {
    Layout l;
    l.tp = any(space_.tp);
    l.cp = any(space_.cp);
    l.pp = any(space_.pp);
    l.vpp = any(space_.vpp);
    l.first_stage_layers = any(space_.first_stage_layers);
    l.last_stage_layers = any(space_.last_stage_layers);
    l.ep = any(space_.ep);
    l.etp = any(space_.etp);
    l.dp_replicate = any(space_.dp_replicate);
    // Some engines have data parallelism alone, which chance would rarely find.
    if (random_() % 2 == 0) l.tp = l.cp = l.pp = l.vpp = l.ep = l.etp = 1;
    const std::int64_t taken = std::int64_t{l.tp} * l.cp * l.pp * l.dp_replicate;
    l.dp_shard =
        static_cast<std::int32_t>(std::max<std::int64_t>(1, question_.cluster->gpus / taken));
    l.micro_batch_size = any(space_.micro_batch_size);
    l.recompute_interval = any(space_.recompute_interval);
    l.zero_stage = any(space_.zero_stage);
    l.sequence_parallel = any(space_.sequence_parallel);
    l.outer_shards_optimizer = any(space_.outer_shards_optimizer);
    l.reshard_after_forward = any(space_.reshard_after_forward);
    l.reduce_every_microbatch = any(space_.reduce_every_microbatch);
    l.offload_optimizer = any(space_.offload_optimizer);
    l.offload_activations = any(space_.offload_activations);
    l.double_buffer = any(space_.double_buffer);
    l.fp32_gradients = any(space_.fp32_gradients);
    l.overlap_grad_reduce = any(space_.overlap_grad_reduce);
    l.overlap_param_gather = any(space_.overlap_param_gather);
    l.recompute = any(space_.recompute);
    l.schedule = any(space_.schedule);
    l.cp_kind = any(space_.cp_kind);
    return l;
  }
  bool legal(const Layout& layout) const {
    for (const LayoutRule& rule : layout_rules()) {
      if (!rule.redundant && rule.broken(question_, layout)) return false;
    }
    return true;
  }

 private:
  template <class T>
  T any(const std::vector<T>& values) {
    std::uniform_int_distribution<std::size_t> index(0, values.size() - 1);
    return values[index(random_)];
  }

  LayoutQuestion question_;
  SearchSpace space_;
  std::mt19937 random_;
};

std::string text_of(const Layout& layout) {
  std::string text;
  for (const std::string& key : layout_keys()) text += key + "=" + field_text(layout, key) + " ";
  return text;
}

/// Names that two operations of a stage share.
std::string shared_names(const StepProgram& program) {
  std::string shared;
  for (const StageProgram& stage : program.stages) {
    std::set<std::string> names;
    for (const ProgramOp& op : stage.operations) {
      if (!names.insert(name_of(stage, op)).second) shared += name_of(stage, op) + " ";
    }
  }
  return shared;
}

TEST(Lower, MakesAProgramOfEveryLayoutThatASearchCanRank) {
  constexpr int kEach = 40;
  const std::vector<ModelSpec> models = {llama(8, 512, 1408, 8, 4, 32000), gpt(8, 512, 8, 32000),
                                         mixture(8, 512, 8, 8, 2, 512, 256)};
  std::uint32_t seed = 20261121;
  for (const std::string& name : engine_names()) {
    for (const ModelSpec& model : models) {
      Plan plan;
      plan.model = model;
      plan.engine = *find_engine(name);
      plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 16);
      plan.job.sequence_length = 1024;
      plan.job.global_batch_size = 16;
      const LayoutQuestion question =
          layout_question(plan.model, plan.cluster, plan.job, plan.engine);
      Sampler sampler(question, ++seed);
      int lowered = 0;
      for (int tries = 0; tries < 400'000 && lowered < kEach; ++tries) {
        plan.layout = sampler.draw();
        if (!sampler.legal(plan.layout)) continue;
        ++lowered;
        const StepProgram program = lower(plan);
        ASSERT_EQ(problems_of(program), "")
            << name << " " << model.name << " seed " << seed << " " << text_of(plan.layout);
        const StepProgram kernels = lower(plan, Granularity::kernel);
        ASSERT_EQ(problems_of(kernels) + shared_names(kernels), "")
            << name << " " << model.name << " seed " << seed << " " << text_of(plan.layout);
        ASSERT_EQ(shared_names(program), "")
            << name << " " << model.name << " seed " << seed << " " << text_of(plan.layout);
      }
      EXPECT_GE(lowered, kEach / 4) << name << " " << model.name;
    }
  }
}

}  // namespace
}  // namespace shardwise::test
