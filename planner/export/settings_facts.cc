#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/export/import_plan.h"
#include "planner/export/setting_values.h"
#include "planner/export/stage_layout.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// A value that the framework's file has, in the one spelling of settings_of().
std::string spelt(const Framework& framework, const std::string& setting,
                  const std::string& value) {
  return canonical(framework.find(setting)->kind, value).value_or(value);
}

/// Of an option: the layers of a stage, or more.
constexpr const char* kStageLayers = "@stage_layers";

/// Layers of the model's first stage; nothing where the configuration does not say.
std::optional<std::int64_t> stage_layers(const Framework& framework, const Values& values,
                                         const Values& facts) {
  const auto layers = facts.find("model.num_hidden_layers");
  if (layers == facts.end()) return std::nullopt;
  std::int64_t stages = 1;
  for (const SettingSpec& spec : framework.settings) {
    const auto at = values.find(spec.name);
    if (spec.field != "pp" || at == values.end()) continue;
    stages = std::max<std::int64_t>(parse_integer(at->second).value_or(1), 1);
  }
  return (parse_integer(layers->second).value_or(0) + stages - 1) / stages;
}

bool settings_hold(const Option& option, const Framework& framework, const Values& values,
                   const Values& facts) {
  return std::ranges::all_of(option.settings, [&](const auto& wanted) {
    const auto at = values.find(wanted.first);
    if (at == values.end()) return false;
    if (wanted.second != kStageLayers) {
      return at->second == spelt(framework, wanted.first, wanted.second);
    }
    const std::optional<std::int64_t> stated = parse_integer(at->second);
    const std::optional<std::int64_t> all = stage_layers(framework, values, facts);
    return stated && all && *stated >= *all;
  });
}

/// A condition on what is not known yet may hold.
bool may_hold(const Conditions& conditions, const Values& facts) {
  return std::ranges::all_of(conditions, [&](const Clause& clause) {
    return !facts.contains(clause.name) || holds(clause, facts);
  });
}

/// Problem of a setting whose value is not among those that a plan can have.
Diagnostic nothing_in_a_plan(const SettingSpec& spec, const GivenSetting& place,
                             const std::string& value, const std::vector<std::string>& known) {
  const auto instead =
      std::ranges::find_if(spec.instead, [&](const auto& each) { return each.first == value; });
  const bool is_explained = instead != spec.instead.end();
  return {place.file,
          place.line,
          place.column,
          place.path,
          fmt::format("no plan has {}", shown(value)),
          is_explained ? instead->second
                       : fmt::format("a plan can have {} {}", spec.name, fmt::join(known, " or "))};
}

/// The values that options of a choice have for a setting.
std::vector<std::string> known_values(const Choice& choice, const std::string& setting) {
  std::vector<std::string> known;
  for (const Option& option : choice.options) {
    const auto at = option.settings.find(setting);
    if (at == option.settings.end() || at->second == kStageLayers) continue;
    if (std::ranges::find(known, at->second) == known.end()) known.push_back(at->second);
  }
  return known;
}

/// What the other settings of a choice need to be for a value of one of them, as the option that is
/// nearest to them has it: "with --recompute-num-layers 1, not 4".
std::string needed_beside(const Framework& framework, const Choice& choice,
                          const Settings& settings, const std::string& name) {
  std::vector<std::string> best;
  bool found = false;
  for (const Option& option : choice.options) {
    const auto own = option.settings.find(name);
    if (own == option.settings.end() ||
        spelt(framework, name, own->second) != settings.values.at(name)) {
      continue;
    }
    std::vector<std::string> needed;
    const bool is_of_stage = std::ranges::any_of(
        option.settings, [](const auto& each) { return each.second == kStageLayers; });
    if (is_of_stage) continue;
    for (const auto& [setting, value] : option.settings) {
      const std::string wanted = spelt(framework, setting, value);
      const auto at = settings.values.find(setting);
      if (at != settings.values.end() && at->second == wanted) continue;
      if (framework.find(setting)->kind == SettingKind::on) {
        needed.push_back(fmt::format("{} {}", wanted == "true" ? "with" : "without", setting));
        continue;
      }
      const bool is_there = at != settings.values.end() && !at->second.empty();
      needed.push_back(fmt::format("with {} {}{}", setting, wanted,
                                   is_there ? ", not " + shown(at->second) : ""));
    }
    if (found && needed.size() >= best.size()) continue;
    best = std::move(needed);
    found = true;
  }
  return fmt::format("{}", fmt::join(best, " and "));
}

/// What the choice makes of its settings is what they say, or a problem.
void check_choice(const Framework& framework, const Choice& choice, const Option* taken,
                  const Settings& settings, Diagnostics& problems) {
  const auto check = [&](const std::string& name, bool decides) {
    const auto given = settings.given.find(name);
    if (given == settings.given.end()) return;
    const std::string& stated = settings.values.at(name);
    const std::vector<std::string> known = known_values(choice, name);
    const bool known_word = std::ranges::any_of(
        known, [&](const std::string& each) { return spelt(framework, name, each) == stated; });
    const bool is_taken = taken != nullptr && taken->settings.contains(name) &&
                          spelt(framework, name, taken->settings.at(name)) == stated;
    if (is_taken || (known_word && !decides)) return;
    Diagnostic problem = nothing_in_a_plan(*framework.find(name), *given->second, stated, known);
    if (known_word) {
      const std::string needed = needed_beside(framework, choice, settings, name);
      problem.hint = needed.empty() ? fmt::format("not with what else is stated of {}", choice.name)
                                    : fmt::format("{} {} is read {}", name, shown(stated), needed);
    }
    problems.push_back(std::move(problem));
  };
  for (const std::string& name : choice.decides) check(name, true);
  for (const std::string& name : choice.knows) check(name, false);
}

/// A setting is filled in later.
bool is_open(const std::string& name, const Settings& settings) {
  return std::ranges::find(settings.open, name) != settings.open.end();
}

/// A setting of the choice is filled in later.
bool is_open(const Choice& choice, const Settings& settings) {
  return std::ranges::any_of(
      settings.open, [&](const std::string& name) { return !known_values(choice, name).empty(); });
}

void take_choices(const Framework& framework, const Settings& settings, Values& facts,
                  Diagnostics& problems) {
  for (const Choice& choice : framework.choices) {
    if (is_open(choice, settings)) continue;
    const auto taken = std::ranges::find_if(choice.options, [&](const Option& option) {
      return settings_hold(option, framework, settings.values, facts) &&
             may_hold(meant(option.plan, facts), facts);
    });
    const Option* option = taken == choice.options.end() ? nullptr : &*taken;
    check_choice(framework, choice, option, settings, problems);
    if (option == nullptr) continue;
    for (const Clause& clause : meant(option->plan, facts)) {
      if (clause.kind == Clause::Kind::is && clause.texts.size() == 1) {
        facts.emplace(clause.name, clause.texts.front());
      }
    }
  }
}

/// A fact as a number; nothing where it is not there.
std::optional<std::int64_t> count(const Values& facts, const std::string& name) {
  const auto at = facts.find(name);
  return at == facts.end() ? std::nullopt : parse_integer(at->second);
}

constexpr std::int64_t kMostCount = 1 << 30;

/// A degree that is not stated is 1.
std::int64_t degree(const Values& facts, const char* name) {
  return std::clamp<std::int64_t>(count(facts, name).value_or(1), 1, kMostCount);
}

/// Facts by the settings that have their field. What is stated counts before a default.
/// \param problems   takes values that no plan has
/// \param conflicts  takes settings that state another value of a field than one before them
void take_fields(const Framework& framework, const Settings& settings, Values& facts,
                 Diagnostics& problems, Diagnostics& conflicts) {
  std::map<std::string, const GivenSetting*> stated;  // by field
  for (const SettingSpec& spec : framework.settings) {
    if (spec.field.empty() || spec.only_written || spec.field.starts_with("model.")) continue;
    const auto at = settings.values.find(spec.name);
    if (at == settings.values.end() || !holds(spec.when, facts)) continue;
    if (spec.open == at->second || is_open(spec.name, settings)) continue;
    const auto given = settings.given.find(spec.name);
    const bool is_stated = given != settings.given.end();
    const auto before = stated.find(spec.field);
    if (!is_stated && before != stated.end()) continue;
    const std::optional<std::string> value = ours(spec, at->second);
    if (!value) {
      // Of a recipe outside the table a user names the model.
      if (!is_stated || spec.field == "model" || spec.kept) continue;
      std::vector<std::string> known;
      for (const auto& [our_word, their_word] : spec.words) {
        if (std::ranges::find(known, their_word) == known.end()) known.push_back(their_word);
      }
      problems.push_back(nothing_in_a_plan(spec, *given->second, at->second, known));
      continue;
    }
    // Of two that name the model the last is the recipe, the first its family.
    if (before != stated.end() && facts.at(spec.field) != *value && spec.field != "model") {
      const GivenSetting& place = *given->second;
      conflicts.push_back(
          {place.file, place.line, place.column, place.path,
           fmt::format("{}, but {} has {}", at->second, before->second->path, facts.at(spec.field)),
           "a plan has one value for both"});
      continue;
    }
    facts[spec.field] = *value;
    facts["ranks_per_shard"] = std::to_string(  // of the degrees so far, for settings behind them
        std::min(degree(facts, "tp") * degree(facts, "cp"), kMostCount) *
        degree(facts, "dp_replicate"));
    if (is_stated) stated[spec.field] = given->second;
  }
}

/// Gives facts that are those of another, "@nodes", its value; without one they are not known.
void resolve(Values& facts) {
  for (auto& [name, value] : facts) value = meant(value, facts);
  std::erase_if(facts, [](const auto& fact) { return fact.second.starts_with('@'); });
}

std::optional<std::int64_t> positive(const Values& facts, const std::string& name) {
  const auto value = count(facts, name);
  return value && *value > 0 && *value <= kMostCount ? value : std::nullopt;
}

/// Says a fact unless it is stated.
void add(Values& facts, const char* name, std::int64_t value) {
  facts.emplace(name, std::to_string(value));
}

/// The chunks of a stage, of the layers of a chunk.
void add_chunks(Values& facts) {
  const auto chunk = count(facts, "layers_per_chunk");
  if (!chunk) return;
  const std::int64_t layers = count(facts, "model.num_hidden_layers").value_or(0);
  const std::int64_t stage = layers / degree(facts, "pp");
  if (*chunk > 0 && stage >= *chunk) facts["vpp"] = std::to_string(stage / *chunk);
}

/// Says what is wrong with the settings that give a field, where they stand.
void add_problem(const Framework& framework, const Settings& settings, std::string_view field,
                 const std::string& what, const std::string& fix, Diagnostics& problems) {
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    if (spec.field != field || given == settings.given.end()) continue;
    const GivenSetting& place = *given->second;
    problems.push_back({place.file, place.line, place.column, place.path, what, fix});
  }
}

/// All ranks, where nothing says them and the batch of a step has all of its factors.
void add_ranks(const Framework& framework, const Settings& settings, Values& facts,
               Diagnostics& problems) {
  if (facts.contains("gpus") || facts.contains("dp_shard")) return;
  const auto batch = positive(facts, "global_batch_size");
  const auto each = positive(facts, "micro_batch_size");
  const auto passes = positive(facts, "num_microbatches");
  if (!batch || !each || !passes) return;
  const std::int64_t of_rank = *each * *passes;
  if (*batch % of_rank == 0) {
    const std::int64_t inner = std::min(degree(facts, "tp") * degree(facts, "cp"), kMostCount);
    add(facts, "gpus", *batch / of_rank * std::min(inner * degree(facts, "pp"), kMostCount));
    return;
  }
  add_problem(
      framework, settings, "global_batch_size",
      fmt::format("{} is no multiple of {} x {}, the batch of a rank", *batch, *each, *passes),
      "leave one of the three out", problems);
}

/// The chunks and the layers of stages, of a text that has each of them.
void add_stages(const Framework& framework, const Settings& settings, Values& facts,
                Diagnostics& problems) {
  const auto text = facts.find("stage_layout");
  if (text == facts.end()) return;
  const StageLayout stages = read_stage_layout(text->second, degree(facts, "pp"),
                                               count(facts, "model.num_hidden_layers").value_or(0));
  if (stages.problem.empty()) {
    facts["vpp"] = std::to_string(stages.vpp);
    facts["first_stage_layers"] = std::to_string(stages.first_stage_layers);
    facts["last_stage_layers"] = std::to_string(stages.last_stage_layers);
    return;
  }
  add_problem(framework, settings, "stage_layout",
              fmt::format("no plan has {}", shown(text->second)), stages.problem, problems);
}

/// The data-parallel ranks, of all ranks or of shards and replicas.
void add_data_parallel(Values& facts) {
  const std::int64_t tp_cp = std::min(degree(facts, "tp") * degree(facts, "cp"), kMostCount);
  add(facts, "tp_cp", tp_cp);
  if (const auto gpus = count(facts, "gpus")) {
    const std::int64_t inner = std::min(tp_cp * degree(facts, "pp"), kMostCount);
    if (*gpus >= inner && *gpus <= kMostCount) add(facts, "dp", *gpus / inner);
  } else if (facts.contains("dp_shard")) {
    const std::int64_t ranks = degree(facts, "dp_shard") * degree(facts, "dp_replicate");
    add(facts, "dp", std::min(ranks, kMostCount));
  }
}

/// DeepSpeed's groups for a second shard of weights have all ranks at most.
/// Source: deepspeed/utils/groups.py:944
void lower_hybrid_group(const Framework& framework, Values& facts) {
  const auto group = count(facts, "reshard_after_forward");
  const auto dp = count(facts, "dp");
  if (framework.name != "deepspeed" || !group || !dp || *group <= *dp) return;
  facts["reshard_after_forward"] = *dp > 1 ? std::to_string(*dp) : "true";
}

/// The batch of a step and of a micro-batch, of each other, or of a rank's part.
void add_batches(Values& facts) {
  const bool ranks_are_known = facts.contains("dp");
  const std::int64_t dp = degree(facts, "dp");
  if (const auto local = positive(facts, "local_batch")) {
    if (degree(facts, "pp") == 1) add(facts, "micro_batch_size", *local);
    if (ranks_are_known) add(facts, "global_batch_size", *local * dp);
  }
  const std::int64_t sequences = std::min(degree(facts, "micro_batch_size") * dp, kMostCount);
  if (const auto each = positive(facts, "batch_per_rank")) {
    add(facts, "global_batch_size", *each * dp);
  } else if (const auto passes = positive(facts, "num_microbatches"); passes && ranks_are_known) {
    add(facts, "global_batch_size", *passes * sequences);
  }
  const auto batch = count(facts, "global_batch_size");
  if (batch && ranks_are_known && !facts.contains("micro_batch_size")) {
    const std::int64_t passes = degree(facts, "num_microbatches");
    add(facts, "micro_batch_size", std::max<std::int64_t>(*batch / dp / passes, 1));
  }
  const auto step = batch ? batch : positive(facts, kFlagBatch);
  if (!step || !ranks_are_known) return;
  const char* each = facts.contains("micro_batch_size") ? "micro_batch_size" : kFlagMicroBatch;
  const std::int64_t pass = std::min(degree(facts, each) * dp, kMostCount);
  add(facts, "num_microbatches", std::max<std::int64_t>(*step / pass, 1));
}

/// SGD with a share of the last step has a state.
void add_momentum(Values& facts) {
  const auto share = facts.find("optimizer_momentum");  // beside sgd alone
  if (share != facts.end() && share->second != "0") facts["optimizer"] = "sgd_momentum";
}

/// Gives fields that nothing states the one value that the framework has.
void take_limits(const std::vector<Limit>& limits, Values& facts) {
  for (const Limit& limit : limits) {
    if (limit.values.size() != 1 || limit.values.front().starts_with('@')) continue;
    if (holds(limit.when, facts)) facts.emplace(limit.field, limit.values.front());
  }
}

}  // namespace

Diagnostics two_values_of(const Framework& framework, const Settings& settings) {
  Values facts;
  Diagnostics other_problems;
  Diagnostics conflicts;
  take_choices(framework, settings, facts, other_problems);
  take_fields(framework, settings, facts, other_problems, conflicts);
  return conflicts;
}

Values facts_of(const Framework& framework, const Settings& settings, Values known,
                Diagnostics& problems) {
  Values facts = std::move(known);
  if (framework.engines.size() == 1) facts.emplace("engine", framework.engines.front());
  take_choices(framework, settings, facts, problems);
  take_fields(framework, settings, facts, problems, problems);
  resolve(facts);
  add_chunks(facts);
  add_ranks(framework, settings, facts, problems);
  add_stages(framework, settings, facts, problems);
  add_data_parallel(facts);
  lower_hybrid_group(framework, facts);
  add_batches(facts);
  add_momentum(facts);
  take_limits(framework.unstated, facts);
  take_limits(framework.limits, facts);
  return facts;
}

}  // namespace shardwise
