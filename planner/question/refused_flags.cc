#include "planner/question/refused_flags.h"

#include <map>
#include <string>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/legality/refusals.h"
#include "planner/question/flags.h"
#include "planner/spec/plan/names.h"

namespace shardwise {
namespace {

using Texts = std::map<std::string, std::string>;

std::string field_or_empty(const Texts& texts, const char* field) {
  const auto at = texts.find(field);
  return at == texts.end() ? "" : at->second;
}

bool is_on(const Texts& texts, const char* field) { return field_or_empty(texts, field) == "true"; }

}  // namespace

Diagnostics refused_flags(const AskedJob& job, const AskedLayout& asked,
                          const EngineProfile& engine, const Layout& layout) {
  Diagnostics problems;
  const auto refuse = [&](const char* field, const char* rule, const char* why, const char* hint) {
    problems.push_back(wrong_flag(flag_of(field), why + refusal_clause(engine.name, rule), hint));
  };
  if (is_on(asked.texts, "overlap_param_gather") && chooses_buckets(engine) &&
      layout.zero_stage == 0) {
    refuse("overlap_param_gather", "param_gather_of_replicas",
           "Megatron gathers no parameters under ZeRO stage 0",
           "leave it out, or use --zero-stage 1");
  }
  if (is_on(job.texts, "fused_gradient_accumulation") &&
      engine.kernels == Kernels::transformer_engine &&
      engine.gradient_buffer == GradientBuffer::copy_in) {
    refuse("fused_gradient_accumulation", "fused_accumulation_of_fsdp2",
           "FSDP2 has no gradient buffer to add to", "leave it out");
  }
  const std::string kernels = field_or_empty(job.texts, "kernels");
  if (field_or_empty(job.texts, "loss") == "fused" && engine.loss == LossKernel::fused_fp32 &&
      (kernels.empty() || kernels == name_of(Kernels::transformer_engine))) {
    refuse("loss", "transformer_engine_loss",
           "Megatron has turned off Transformer Engine's fused loss as unstable",
           "use fused_fp32 or materialised");
  }
  return problems;
}

}  // namespace shardwise
