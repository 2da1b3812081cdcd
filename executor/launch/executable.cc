#include "executor/launch/executable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "executor/engine/program_binder.h"
#include "executor/transformer/layer.h"
#include "executor/weights/consistent_model.h"
#include "planner/engines/executed.h"
#include "planner/lowering/lower.h"
#include "planner/spec/plan/engine_profile.h"
#include "planner/spec/plan/names.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise::exec {
namespace {

class Refusals {
 public:
  void unless(bool fine, const std::string& path, const std::string& value,
              const std::string& hint) {
    if (!fine) {
      made_.push_back({"", 0, 0, path, fmt::format("{} cannot be executed", value), hint});
    }
  }
  void add(const std::vector<NoDegree>& reasons) {
    for (const NoDegree& each : reasons) unless(false, each.path, each.value, each.hint);
  }
  /// A line "pointer: what is wrong" of the kernels.
  void add(const std::string& line) {
    const std::size_t colon = line.find(": ");
    const std::string path = line.substr(0, colon);
    if (std::ranges::find(made_, path, &Diagnostic::path) != made_.end()) return;
    // Lines of jobs say themselves what is.
    const std::string hint =
        path.starts_with("/model")
            ? fmt::format("dense models of {} are executable", fmt::join(kExecutableFamilies, ", "))
            : "";
    made_.push_back({"", 0, 0, path, line.substr(colon + 2), hint});
  }
  Diagnostics take() { return std::move(made_); }

 private:
  Diagnostics made_;
};

void check_layout_of(const Layout& layout, Refusals& refused) {
  for (const ExecutedField& field : executed_fields()) {
    const std::string value = field_text(layout, std::string(field.key));
    refused.unless(value == field.value, fmt::format("/layout/{}", field.key), value,
                   std::string(field.hint));
  }
}

/// Of a plan with several stages.
void check_pipeline(const Plan& plan, Refusals& refused) {
  const Layout& layout = plan.layout;
  if (layout.pp == 1) return;
  refused.add(no_pipeline(plan.cluster, plan.engine, layout.pp));
  std::vector<std::string_view> schedules;
  for (const PipelineSchedule each : executed_schedules()) schedules.push_back(name_of(each));
  refused.unless(executes_schedule(layout), "/layout/schedule",
                 std::string(name_of(layout.schedule)),
                 fmt::format("{} are", fmt::join(schedules, ", ")));
}

/// bf16 weights are updated without a wider copy under our own engine alone.
void check_job(const JobSpec& job, const EngineProfile& engine, Refusals& refused) {
  const bool rounds = job.precision == DType::bf16 && job.main_dtype == DType::bf16 &&
                      engine.known_as() == "shardwise";
  refused.unless(job.main_dtype == DType::fp32 || rounds, "/job/main_dtype",
                 std::string(name_of(job.main_dtype)),
                 "fp32 is, and bf16 with precision bf16 and engine shardwise");
  refused.unless(job.moment_dtype == DType::fp32, "/job/moment_dtype",
                 std::string(name_of(job.moment_dtype)), "fp32 is");
  refused.unless(job.optimizer == Optimizer::adamw, "/job/optimizer",
                 std::string(shardwise::name_of(job.optimizer)), "adamw is");
  refused.unless(!is_bitsandbytes(job.adamw), "/job/adamw",
                 std::string(shardwise::name_of(job.adamw)), "fused is");
}

}  // namespace

Diagnostics cannot_execute(const Plan& plan) {
  Refusals refused;
  const std::span<const std::string_view> engines = executed_engines();
  refused.unless(std::ranges::find(engines, plan.engine.known_as()) != engines.end(),
                 "/engine/name", plan.engine.name, fmt::format("{} are", fmt::join(engines, ", ")));
  check_layout_of(plan.layout, refused);
  check_pipeline(plan, refused);
  refused.add(no_tensor_parallelism(plan.cluster, plan.engine, plan.layout.tp));
  check_job(plan.job, plan.engine, refused);
  for (const std::string& lacking : cannot_run(plan.model, plan.job)) refused.add(lacking);
  Diagnostics problems = refused.take();
  if (problems.empty()) {
    if (auto other = inconsistent(plan.model)) problems.push_back(*std::move(other));
  }
  if (problems.empty()) problems = too_many_operations(plan);
  if (!problems.empty()) return problems;
  const StepProgram program = lower(plan);
  for (const StageProgram& stage : program.stages) {
    for (const ProgramOp& op : stage.operations) {
      if (has_kernel(stage, op)) continue;
      return {{"", 0, 0, "/layout", fmt::format("{} has no kernel", name_of(stage, op)),
               "passes, messages, gathers and reductions have"}};
    }
  }
  return problems;
}

}  // namespace shardwise::exec
