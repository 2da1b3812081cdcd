#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "planner/spec/plan/schedule_facts.h"
#include "tests/planner/lowering/lowered.h"
#include "tests/planner/lowering/sampler.h"

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
        if (vpp > 1 && !facts_of(schedule).takes_vpp) continue;
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

/// The names of operations with what they wait for and cost.
std::string order_of(const StepProgram& program) {
  std::string order;
  for (const StageProgram& stage : program.stages) {
    for (const ProgramOp& op : stage.operations) {
      order += name_of(stage, op) + " " + std::to_string(op.cost) + " on " +
               std::to_string(static_cast<int>(op.stream)) + " after";
      for (const std::uint32_t wait : stage.of(op.waits)) order += " " + std::to_string(wait);
      order += "\n";
    }
  }
  return order;
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
      if (model.tie_word_embeddings && !plan.engine.tied_head) continue;
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
        ASSERT_EQ(order_of(lower_without_buffers(plan)), order_of(program)) << text_of(plan.layout);
        const StepProgram kernels = lower(plan, Granularity::kernel);
        ASSERT_EQ(order_of(lower_without_buffers(plan, Granularity::kernel)), order_of(kernels))
            << text_of(plan.layout);
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
