#include "gui/models/question/subject_model.h"

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "planner/cost/software/usual_kernels.h"
#include "planner/estimate/loss_rows.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/question/asked_engines.h"
#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise::view {
namespace {

using Keys = std::vector<std::string>;

/// The plan with these fields of its layout, and the others as the engine has them.
Result<Plan> with_fields(Plan plan, const Keys& keys) {
  AskedLayout asked;
  for (const std::string& key : keys) asked.texts[key] = field_text(plan.layout, key);
  Subject subject;
  subject.model = std::move(plan.model);
  subject.cluster = std::move(plan.cluster);
  subject.job = plan.job;
  subject.engine = std::move(plan.engine);
  subject.gpus_given = true;
  const Result<Layout> layout = read_layout(asked, subject);
  if (!layout) return layout.problems();
  Plan changed{std::move(subject.model), std::move(subject.cluster), std::move(subject.job),
               std::move(subject.engine), *layout};
  Diagnostics problems = check_plan(changed);
  if (!problems.empty()) return problems;
  return changed;
}

/// A precision that the GPU computes in: the job's where it can.
void settle_precision(Plan& plan) {
  for (const DType dtype : {plan.job.precision, DType::bf16, DType::fp16, DType::fp32}) {
    plan.job.precision = dtype;
    if (check_precision(plan.cluster, plan.job).empty()) return;
  }
}

/// The first of fewer and fewer fields that leaves a legal layout.
Result<Plan> settled(Plan plan) {
  settle_precision(plan);
  plan.job.loss_chunk_rows = usual_loss_chunk_rows(plan.cluster.gpu);
  const Keys most = {"tp",         "cp",       "pp",       "vpp", "ep", "micro_batch_size",
                     "zero_stage", "schedule", "recompute"};
  const std::vector<Keys> tries = {most,
                                   Keys{"tp", "cp", "pp", "ep", "micro_batch_size", "recompute"},
                                   Keys{"tp", "pp"},
                                   Keys{"tp"},
                                   Keys{"pp"},
                                   Keys{}};
  Result<Plan> last = Diagnostics{};
  for (const Keys& keys : tries) {
    last = with_fields(plan, keys);
    if (last) return last;
  }
  return last;
}

}  // namespace

Result<Plan> with_named_model(const Plan& plan, const std::string& name) {
  Result<ModelSpec> model = load_model(name);
  if (!model) return model.problems();
  Plan changed = plan;
  changed.model = *std::move(model);
  return settled(std::move(changed));
}

Result<Plan> with_named_cluster(const Plan& plan, const std::string& name) {
  const Result<ClusterSpec> found = find_cluster(name);
  if (!found) return found.problems();
  // As many GPUs where its nodes divide them.
  Result<ClusterSpec> cluster = with_gpus(*found, plan.cluster.gpus);
  if (!cluster) cluster = with_gpus(*found, found->gpus_per_node);
  if (!cluster) return cluster.problems();
  Plan changed = plan;
  changed.cluster = *std::move(cluster);
  return settled(std::move(changed));
}

Result<Plan> with_named_engine(const Plan& plan, const std::string& name) {
  Diagnostics problems;
  const EngineProfile* const engine = read_engine(name, problems);
  if (engine == nullptr) return problems;
  Plan changed = plan;
  // A loss that was the engine's becomes the next one's.
  changed.job.loss = LossKernel::by_engine;
  if (loss_of(changed.job, plan.engine) != plan.job.loss) changed.job.loss = plan.job.loss;
  changed.engine = *engine;
  return settled(std::move(changed));
}

}  // namespace shardwise::view
