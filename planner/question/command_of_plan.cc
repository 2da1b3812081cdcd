#include "planner/question/command_of_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/question/flags.h"
#include "planner/question/subject.h"
#include "planner/spec/json_writer.h"
#include "planner/spec/plan_fields.h"
#include "planner/spec/reader.h"

namespace shardwise {
namespace {

using Texts = std::map<std::string, std::string>;

std::string text_of(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::boolean:
      return value.boolean ? "true" : "false";
    case JsonValue::Kind::integer:
      return fmt::format("{}", value.integer);
    case JsonValue::Kind::number:
      return fmt::format("{}", value.number);
    case JsonValue::Kind::array: {
      std::vector<std::string> parts;
      for (const JsonValue& each : value.elements) parts.push_back(text_of(each));
      return fmt::format("{}", fmt::join(parts, ","));
    }
    default:
      return value.string;
  }
}

/// A job's fields as their flags take them.
Texts texts_of(const JobSpec& job) {
  JsonWriter json;
  json.begin_object();
  write_fields(json, job);
  json.end_object();
  Texts texts;
  const Result<JsonValue> read = parse_json(json.text(), "job");
  for (const JsonMember& each : read->members) texts[each.key] = text_of(each.value);
  return texts;
}

Texts texts_of(const Layout& layout) {
  Texts texts;
  for (const std::string& key : layout_keys()) texts[key] = field_text(layout, key);
  return texts;
}

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
  asked.job.texts["sequence_length"] = std::to_string(plan.job.sequence_length);
  // What a field is when nobody gives it follows from others: a field that is given may settle or
  // unsettle the next.
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    Result<Subject> subject = read_subject(asked.job);
    if (!subject) return subject.problems();
    if (subject->model != plan.model) {
      return cannot(fmt::format("{} of the catalogue is another model", plan.model.name));
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
      if (asked.layout.texts.size() == layout_keys().size()) return layout.problems();
      asked.layout.texts = texts_of(plan.layout);
      continue;
    }
    const bool job = add_differing(texts_of(plan.job), texts_of(subject->job), asked.job.texts);
    if (!add_differing(texts_of(plan.layout), texts_of(*layout), asked.layout.texts) && !job) {
      return asked;
    }
  }
  return cannot("no flags say this job");
}

std::string command_of(const AskedEstimate& asked) {
  std::string command = "shardwise estimate";
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

}  // namespace shardwise
