#include "planner/question/stack_flag.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "planner/cost/memory/bucket_rules.h"
#include "planner/cost/software/timing.h"
#include "planner/question/flags.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr const char* kTuned = "tuned";
constexpr const char* kOrdinary = "ordinary";

bool runs_torch_operators(const EngineProfile& engine) {
  return engine.kernels == Kernels::eager && engine.gradient_buffer == GradientBuffer::copy_in &&
         !has_megatron_modules(engine);
}

/// Sets what is open; returns what it set, in words.
std::vector<std::string> set_open(const std::vector<std::pair<std::string, std::string>>& settings,
                                  std::map<std::string, std::string>& texts) {
  std::vector<std::string> set;
  for (const auto& [field, value] : settings) {
    std::string& text = texts[field];
    if (!text.empty()) continue;
    text = value;
    set.push_back(fmt::format("{} {}", flag_of(field), value));
  }
  return set;
}

void say(const char* id, const std::vector<std::string>& set, Subject& subject) {
  if (set.empty()) return;
  subject.assumptions.push_back({id,
                                 fmt::format("--stack {} of {}: {}", subject.stack,
                                             subject.engine.name, fmt::join(set, ", ")),
                                 "docs/time.md, Stacks"});
}

}  // namespace

bool has_stacks(const EngineProfile& engine) {
  return runs_torch_operators(engine) || has_megatron_modules(engine);
}

StackSettings stack_settings(const EngineProfile& engine, const ModelSpec& model,
                             const std::string& stack) {
  StackSettings set;
  const bool tuned = stack == kTuned;
  if (runs_torch_operators(engine)) {
    set.job = {{"kernels", tuned ? "compiled" : "eager"},
               {"rms_norm", tuned ? "fused" : "composite"}};
    if (!tuned) set.job.emplace_back("loss", "materialised");
    if (engine.main_weights == MainWeights::parameter && !engine.keeps_buckets) {
      set.job.emplace_back("adamw", tuned ? "fused" : "foreach");
    }
    return set;
  }
  set.job = {{"loss", tuned ? "fused_fp32" : "materialised"}};
  if (chooses_buckets(engine)) {
    set.layout = {{"overlap_grad_reduce", tuned ? "true" : "false"},
                  {"overlap_param_gather", tuned ? "true" : "false"}};
  }
  // Megatron refuses experts under tensor parallelism alone.
  if (!tuned && model.num_experts == 0) set.layout.emplace_back("sequence_parallel", "false");
  return set;
}

bool asks_for_stack(const std::map<std::string, std::string>& texts) {
  const auto at = texts.find(kStackField);
  return at != texts.end() && !at->second.empty();
}

void take_stack(std::map<std::string, std::string>& texts, Subject& subject,
                Diagnostics& problems) {
  const auto node = texts.extract(kStackField);
  if (node.empty() || node.mapped().empty()) return;
  const std::string& stack = node.mapped();
  if (stack != kTuned && stack != kOrdinary) {
    problems.push_back(wrong_flag("--stack", fmt::format("'{}' is unknown", shown(stack)),
                                  fmt::format("use {} or {}", kTuned, kOrdinary)));
    return;
  }
  const EngineProfile& engine = subject.engine;
  if (engine.name.empty()) return;
  if (!has_stacks(engine)) {
    problems.push_back(
        wrong_flag("--stack", fmt::format("{} has one stack", engine.name), "leave it out"));
    return;
  }
  subject.stack = stack;
  say("stack", set_open(stack_settings(engine, subject.model, stack).job, texts), subject);
}

void add_stack(std::map<std::string, std::string>& texts, Subject& subject) {
  if (subject.stack.empty()) return;
  const StackSettings set = stack_settings(subject.engine, subject.model, subject.stack);
  say("stack.layout", set_open(set.layout, texts), subject);
}

}  // namespace shardwise
