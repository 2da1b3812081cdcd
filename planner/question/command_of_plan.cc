#include "planner/question/command_of_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "planner/question/adapter_flags.h"
#include "planner/question/flags.h"
#include "planner/question/plan_texts.h"
#include "planner/question/power_flag.h"
#include "planner/question/subject.h"
#include "planner/spec/plan/plan_fields.h"

namespace shardwise {
namespace {

/// Adds to `given` what is otherwise than wanted. \returns whether there was something
bool add_differing(const Texts& wanted, const Texts& found, Texts& given) {
  bool differs = false;
  for (const auto& [key, text] : wanted) {
    if (found.at(key) == text) continue;
    differs = true;
    given[key] = text;
  }
  return differs;
}

Diagnostics cannot(const std::string& what) {
  return {{"", 0, 0, "", what, "save the plan and give it to shardwise simulate"}};
}

std::string command_of(const AskedEstimate& asked, const char* verb) {
  std::string command = fmt::format("shardwise {}", verb);
  const auto add = [&](const std::string& field, const std::string& text) {
    if (!text.empty()) command += fmt::format(" {} {}", flag_of(field), shell_word(text));
  };
  add("model", asked.job.model);
  add("cluster", asked.job.cluster);
  add("gpus", asked.job.gpus);
  add("engine", asked.job.engine);
  for (const Texts* const texts : {&asked.job.texts, &asked.layout.texts}) {
    for (const auto& [field, text] : *texts) {
      // A switch takes its value behind "=".
      if (text == "true" || text == "false") {
        command += fmt::format(" {}={}", flag_of(field), text);
      } else {
        add(field, text);
      }
    }
  }
  return command;
}

}  // namespace

Result<AskedEstimate> asked_of(const Plan& plan) {
  AskedEstimate asked;
  asked.job.model = plan.model.name;
  asked.job.cluster = plan.cluster.name;
  asked.job.gpus = std::to_string(plan.cluster.gpus);
  asked.job.engine = plan.engine.name;
  const Layout usual;
  for (const char* const degree : {"tp", "cp", "pp", "ep", "dp_shard", "dp_replicate", "vpp",
                                   "schedule", "micro_batch_size", "zero_stage"}) {
    const std::string text = field_text(plan.layout, degree);
    if (text != field_text(usual, degree)) asked.layout.texts[degree] = text;
  }
  if (plan.model.num_experts > 0 && plan.layout.etp != plan.layout.tp) {
    asked.layout.texts["etp"] = field_text(plan.layout, "etp");
  }
  asked.job.texts["global_batch_size"] = std::to_string(plan.job.global_batch_size);
  asked.job.texts.merge(adapter_texts(plan.model));
  if (plan.job.frozen_base && asked.job.texts.count("lora_targets") == 0) {
    asked.job.texts["lora_targets"] = kNoAdapters;
  }
  asked.job.texts["sequence_length"] = std::to_string(plan.job.sequence_length);
  // What a field is when nobody gives it follows from others: a field that is given may settle or
  // unsettle the next.
  constexpr int kMostRounds = 4;
  bool gives_all = false;
  for (int round = 0; round < kMostRounds; ++round) {
    Result<Subject> subject = read_subject(asked.job);
    if (!subject) return subject.problems();
    if (subject->model != plan.model) {
      return cannot(fmt::format("{} of the catalogue is another model", plan.model.name));
    }
    const double watts = plan.cluster.gpu.tdp_watts;
    if (watts > 0 && watts < subject->cluster.gpu.tdp_watts) {
      asked.job.texts[kPowerField] = fmt::format("{:g}", watts);
      continue;
    }
    if (subject->cluster != plan.cluster) {
      return cannot(fmt::format("{} of the catalogue is another cluster, or has another price",
                                plan.cluster.name));
    }
    if (subject->engine != plan.engine) {
      return cannot(fmt::format("{} is another engine here", plan.engine.name));
    }
    const Result<Layout> layout = read_layout(asked.layout, *subject);
    if (!layout) {
      // Legal once all of it is given.
      if (gives_all) return layout.problems();
      gives_all = true;
      asked.layout.texts = texts_of(plan.layout);
      // Typed, these say something else than the plan.
      if (plan.layout.ddp_bucket_size == 0) asked.layout.texts.erase("ddp_bucket_size");
      if (plan.layout.zero_stage == 0) asked.layout.texts.erase("overlap_param_gather");
      continue;
    }
    const bool job = add_differing(texts_of(plan.job), texts_of(subject->job), asked.job.texts);
    if (!add_differing(texts_of(plan.layout), texts_of(*layout), asked.layout.texts) && !job) {
      return asked;
    }
  }
  return cannot("no flags say this job");
}

std::string command_of(const AskedEstimate& asked) { return command_of(asked, "estimate"); }

std::string simulate_command_of(AskedEstimate asked) {
  if (asked.layout.texts.empty()) asked.layout.texts["tp"] = "1";
  return command_of(asked, "simulate");
}

}  // namespace shardwise
