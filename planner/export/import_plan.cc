#include "planner/export/import_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "planner/export/absent_settings.h"
#include "planner/export/check_configuration.h"
#include "planner/export/check_recipe.h"
#include "planner/export/configuration/auto_of_model.h"
#include "planner/export/configuration/described_model.h"
#include "planner/export/configuration/placed_problems.h"
#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/recipe.h"
#include "planner/export/framework/setting_values.h"
#include "planner/export/import_assumptions.h"
#include "planner/export/kept_of.h"
#include "planner/model/hf_config.h"
#include "planner/question/adapter_flags.h"
#include "planner/question/flags.h"
#include "planner/question/module_names.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/json/catalogue.h"
#include "planner/spec/plan/plan_fields.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

/// A text without the spaces and parentheses that change nothing: "([0]*3+[1]*58)".
std::string bare_expression(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  return text;
}

/// Whether a number that changes neither memory nor time may be another than the model's.
enum class Numerics : std::uint8_t { agree, differ };

/// The settings of the architecture that the configuration states and the model has otherwise.
Diagnostics contradictions(const Framework& framework, const Settings& settings,
                           const ModelSpec& model, Numerics numerics) {
  Values facts = model_facts(model);
  if (model.max_position_embeddings > 0) {
    facts["model.positions"] = std::to_string(model.max_position_embeddings);
  }
  Diagnostics problems;
  for (const SettingSpec& spec : framework.settings) {
    const auto given = settings.given.find(spec.name);
    const auto fact = facts.find(spec.field);
    if (given == settings.given.end() || fact == facts.end() || !holds(spec.when, facts)) continue;
    const std::optional<std::string> wanted = theirs(spec, fact->second);
    if (!wanted) continue;
    const std::string theirs = canonical(spec.kind, *wanted).value_or(*wanted);
    const std::string& stated = settings.values.at(spec.name);
    if (bare_expression(theirs) == bare_expression(stated)) continue;
    const bool is_numeric = spec.numeric_when && holds(*spec.numeric_when, facts);
    if (is_numeric && numerics == Numerics::differ) continue;
    const GivenSetting& place = *given->second;
    problems.push_back({place.file, place.line, place.column, place.path,
                        fmt::format("{}, but {} has {}", shown(stated), model.name, theirs),
                        "another model, by --model, or another value here"});
  }
  return problems;
}

/// The model that a setting names: of two that name one the last, a recipe and not its family. A
/// recipe may train one with whose plans it is not written.
std::optional<std::string> named_model(const Framework& framework, const Settings& settings) {
  std::optional<std::string> named;
  for (const SettingSpec& spec : framework.settings) {
    const auto at = settings.values.find(spec.name);
    if (spec.field == "model" && at != settings.values.end()) named = ours(spec, at->second);
  }
  return named ? named : trained_model(framework, settings.values);
}

/// What a model costs: its facts without numbers that change neither memory nor time.
Values sizes_of(const ModelSpec& model) {
  Values facts = model_facts(model);
  for (const char* number : {"norm_epsilon", "rope_theta", "rope_scaling", "rope_factor",
                             "router_before_choice", "router_normalizes", "router_score",
                             "router_groups", "router_group_topk", "router_scaling"}) {
    facts.erase(std::string("model.") + number);
  }
  return facts;
}

/// Whether the framework is told how many experts there are, and has none where it is not.
bool has_no_experts(const Framework& framework, const Settings& settings) {
  return std::ranges::any_of(framework.settings, [&](const SettingSpec& spec) {
    const auto at = settings.values.find(spec.name);
    return spec.field == "model.num_experts" && at != settings.values.end() && at->second == "0";
  });
}

/// Whether a model is another one where the configuration leaves a setting at its default: it has
/// what no value says (ALiBi, and no --position-embedding-type), or other matrices (no --swiglu).
bool needs_unsaid(const Framework& framework, const Settings& settings, const ModelSpec& model) {
  constexpr std::array<std::string_view, 3> kMatrices = {"model.gated_mlp", "model.grouped_queries",
                                                         "model.latent_attention"};
  const Values facts = model_facts(model);
  return std::ranges::any_of(framework.settings, [&](const SettingSpec& spec) {
    const auto fact = facts.find(spec.field);
    const bool is_open = settings.given.contains(spec.name) ||
                         std::ranges::find(settings.open, spec.name) != settings.open.end();
    if (fact == facts.end() || is_open || !spec.by_default) return false;
    if (!holds(spec.when, facts)) return false;
    const std::optional<std::string> wanted = theirs(spec, fact->second);
    const bool is_matrix = std::ranges::find(kMatrices, spec.field) != kMatrices.end();
    return !wanted || (is_matrix && canonical(spec.kind, *wanted) != spec.by_default);
  });
}

/// The models of the catalogue that have the stated sizes. Of several that cost the same it is the
/// first.
std::vector<std::string> models_with(const Framework& framework, const Settings& settings,
                                     Numerics numerics) {
  std::vector<std::string> names;
  std::vector<Values> sizes;
  const bool dense = has_no_experts(framework, settings);
  for (const std::string& name : catalogue_names("models")) {
    const Result<ModelSpec> model = load_model(name);
    if (!model || (dense && model->num_experts > 0)) continue;
    if (!contradictions(framework, settings, *model, numerics).empty()) continue;
    if (needs_unsaid(framework, settings, *model)) continue;
    Values own = sizes_of(*model);
    if (std::ranges::find(sizes, own) != sizes.end()) continue;
    sizes.push_back(std::move(own));
    names.push_back(name);
  }
  return names;
}

/// The model that a setting names or that all stated sizes are of, or why there is none.
Result<std::string> model_of(const Framework& framework, const Settings& settings,
                             const std::string& file) {
  if (const auto named = named_model(framework, settings)) return *named;
  if (is_other_recipe(framework, settings.values)) {
    const auto given = settings.given.find(framework.recipes.recipe);
    if (given != settings.given.end()) {
      const GivenSetting& place = *given->second;
      const std::optional<Finding> wrong = wrong_recipe(framework, settings);
      return Diagnostic{place.file,
                        place.line,
                        place.column,
                        place.path,
                        wrong ? wrong->what.message
                              : fmt::format("which model {} trains is not known",
                                            shown(settings.values.at(framework.recipes.recipe))),
                        wrong ? fmt::format("{}, or the model as --model", wrong->what.hint)
                              : "--model NAME, or its config.json"};
    }
  }
  if (stated_sizes(framework, settings) < kFewestSizes) {
    return Diagnostic{file,
                      0,
                      0,
                      "--model",
                      "does not say which model it trains",
                      "--model NAME, or its config.json"};
  }
  std::vector<std::string> names = models_with(framework, settings, Numerics::agree);
  if (names.empty()) names = models_with(framework, settings, Numerics::differ);
  // Of several that have what is stated, those that have the defaults of the rest.
  if (names.size() > 1) {
    std::vector<std::string> whole;
    for (const std::string& name : names) {
      const Result<ModelSpec> model = load_model(name);
      if (model && absent_settings(framework, settings, *model).empty()) whole.push_back(name);
    }
    if (!whole.empty()) names = std::move(whole);
  }
  if (names.size() == 1) return names.front();
  if (names.empty()) {
    if (std::optional<std::string> text = described_model(framework, settings)) {
      const Result<ModelSpec> model = load_model(*text);
      const bool is_it =
          model && contradictions(framework, settings, *model, Numerics::differ).empty();
      if (is_it) return *std::move(text);
    }
  }
  return Diagnostic{file,
                    0,
                    0,
                    "--model",
                    names.empty() ? "no model of the catalogue has these sizes"
                                  : fmt::format("models with the sizes that it states: {}",
                                                fmt::join(names, ", ")),
                    names.empty() ? "--model with its config.json, or every size in the command: "
                                    "--vocab-size too"
                                  : "--model says which"};
}

/// A program of Megatron-LM that trains another architecture than equal blocks of a decoder.
std::optional<Diagnostic> other_program(const Framework& framework,
                                        const Configuration& configuration) {
  constexpr std::array<std::string_view, 7> kOthers = {
      "pretrain_hybrid.py", "pretrain_mamba.py", "pretrain_vlm.py", "pretrain_t5.py",
      "pretrain_bert.py",   "pretrain_retro.py", "pretrain_ict.py"};
  if (framework.name != "megatron-lm" ||
      std::ranges::find(kOthers, configuration.program) == kOthers.end()) {
    return std::nullopt;
  }
  return Diagnostic{configuration.file,
                    0,
                    0,
                    "",
                    fmt::format("{} trains another architecture", configuration.program),
                    "a plan follows from the arguments of pretrain_gpt.py"};
}

/// Puts a fact where a question has it, unless a flag states it.
void ask(Texts& texts, const std::string& field, const std::string& value, const std::string& file,
         Diagnostics& problems) {
  std::string& text = texts[field];
  if (text.empty()) {
    text = value;
  } else if (text != value && !value.empty()) {
    problems.push_back(flag_contradiction(field, text, value, file));
  }
}

/// What holds whatever the configuration says.
Values known_facts(const ModelSpec& model, const AskedImport& asked) {
  Values known = model_facts(model);
  const auto take = [&](const Texts& texts, const char* field, const char* fact) {
    const auto at = texts.find(field);
    if (at != texts.end() && !at->second.empty()) known[fact] = at->second;
  };
  take(asked.job.texts, "global_batch_size", kFlagBatch);
  take(asked.layout.texts, "micro_batch_size", kFlagMicroBatch);
  return known;
}

/// Whether the batch of a step follows from the number of ranks, which nothing says.
bool needs_ranks(const Values& facts) {
  const auto passes = facts.find("num_microbatches");
  const bool several = passes != facts.end() && passes->second != "1";
  const bool local = facts.contains("local_batch") && !facts.contains("micro_batch_size");
  const bool each = several || local || facts.contains("batch_per_rank");
  return each && !facts.contains("dp") && !facts.contains("global_batch_size");
}

/// Takes facts away that a flag states otherwise, where the training script decides and no setting
/// states the field: they are what most scripts do.
void leave_to_flags(const Framework& framework, const Settings& settings, const AskedImport& asked,
                    Values& facts) {
  for (const ScriptField& each : framework.by_script) {
    const bool is_set = given_of_field(framework, settings, each.field) != nullptr;
    const auto stated = [&](const Texts& texts) {
      const auto at = texts.find(each.field);
      return at != texts.end() && !at->second.empty();
    };
    if (!is_set && (stated(asked.layout.texts) || stated(asked.job.texts))) {
      facts.erase(each.field);
    }
  }
}

/// Of adapters, which are the model's and no field of a job.
bool is_of_adapters(const std::string& field) {
  return std::ranges::find(kAdapterFlags, field, &AdapterFlag::field) != kAdapterFlags.end();
}

/// The question that facts and flags ask together.
Diagnostics fill_question(const Values& facts, const std::string& file, AskedImport& asked) {
  Diagnostics problems;
  const Texts job = texts_of(JobSpec());
  for (const auto& [field, value] : facts) {
    const auto& keys = layout_keys();
    if (std::ranges::find(keys, field) != keys.end()) {
      ask(asked.layout.texts, field, value, file, problems);
    } else if (job.contains(field) || field == kModulesField || is_of_adapters(field)) {
      ask(asked.job.texts, field, value, file, problems);
    }
  }
  const auto one = [&](const char* name, std::string& text) {
    const auto at = facts.find(name);
    if (at == facts.end()) return;
    if (text.empty()) text = at->second;
    if (text != at->second) problems.push_back(flag_contradiction(name, text, at->second, file));
  };
  one("engine", asked.job.engine);
  one("gpus", asked.job.gpus);
  return problems;
}

}  // namespace

Diagnostic flag_contradiction(const std::string& field, const std::string& text,
                              const std::string& value, const std::string& file) {
  const bool is_command = file == "command line";
  return wrong_flag(
      flag_of(field),
      fmt::format("{}, but {} has {}", text, is_command ? "the command behind --" : file, value),
      fmt::format("leave the flag out, or change the {}", is_command ? "command" : "file"));
}

Result<Import> import_plan(const Framework& framework, const Configuration& configuration,
                           AskedImport asked) {
  if (std::optional<Diagnostic> other = other_program(framework, configuration)) {
    return *std::move(other);
  }
  Result<Settings> settings = settings_of(framework, configuration);
  if (!settings) return settings.problems();
  const ModelBy model_by = asked.job.model.empty() ? ModelBy::configuration : ModelBy::flag;
  if (asked.job.model.empty()) {
    Result<std::string> model = model_of(framework, *settings, configuration.file);
    if (!model) return model.problems();
    asked.job.model = *std::move(model);
  }
  const Result<ModelSpec> model = load_model(asked.job.model);
  if (!model) return model.problems();
  const std::optional<std::string> named = named_model(framework, *settings);
  if (named && *named != asked.job.model) {
    const Result<ModelSpec> other = load_model(*named);
    if (other && model_facts(*other) != model_facts(*model)) {
      return flag_contradiction("model", asked.job.model, *named, configuration.file);
    }
  }
  const auto all = [&](Diagnostics found) {
    return with_refused_values(std::move(found), framework, *settings);
  };
  Diagnostics problems = contradictions(framework, *settings, *model, Numerics::differ);
  if (!problems.empty()) return all(std::move(problems));

  const std::optional<Assumption> filled = fill_auto_of_model(framework, *model, *settings);
  Values known = known_facts(*model, asked);
  known.insert(configuration.facts.begin(), configuration.facts.end());
  if (configuration.ranks > 0) {
    known["gpus"] = std::to_string(configuration.ranks);
  } else if (!asked.job.gpus.empty()) {
    known["gpus"] = asked.job.gpus;
  }
  const std::optional<std::int64_t> ranks =
      known.contains("gpus") ? parse_integer(known.at("gpus")) : std::nullopt;
  problems = contradictions_of(framework, configuration, *settings, ranks.value_or(0));
  if (!problems.empty()) return all(std::move(problems));
  Values facts = facts_of(framework, *settings, std::move(known), problems);
  if (!problems.empty()) return all(std::move(problems));
  leave_to_flags(framework, *settings, asked, facts);
  if (needs_ranks(facts)) {
    return Diagnostic{configuration.file,
                      0,
                      0,
                      "--gpus",
                      "states a batch for each rank, and not how many ranks there are",
                      "add --gpus, or the launcher that starts them"};
  }
  const Texts stated = asked.layout.texts;
  problems = fill_question(facts, configuration.file, asked);
  if (!problems.empty()) return all(std::move(problems));

  Result<Subject> subject = read_subject(asked.job);
  if (!subject) {
    return all(
        placed(subject.problems(), framework, *settings, configuration.file, asked.job.texts));
  }
  const Result<Layout> layout = read_layout(asked.layout, *subject, BatchWhenOpen::one_microbatch);
  if (!layout) {
    return all(placed(layout.problems(), framework, *settings, configuration.file, stated));
  }
  Import made;
  made.plan = with_stated_reductions(
      {subject->model, subject->cluster, subject->job, subject->engine, *layout});
  Result<KeptSettings> kept = kept_of(framework, configuration, *settings, made.plan);
  if (!kept) return kept.problems();
  made.plan.kept = *std::move(kept);
  made.assumptions = import_assumptions(framework, *settings, asked, *subject, made.plan, model_by);
  if (filled) made.assumptions.push_back(*filled);
  if (asked.job.model.starts_with('{')) {
    made.assumptions.push_back(
        {"import.described",
         fmt::format("no model of the catalogue has the stated sizes: {} is the transformer that "
                     "they describe (--model NAME, or its config.json, for another)",
                     made.plan.model.name),
         "docs/frameworks.md, Import"});
  }
  return made;
}

}  // namespace shardwise
