#include "cli/flags/job_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>

#include "planner/engines/engines.h"
#include "planner/question/adapter_flags.h"
#include "planner/question/asked_engines.h"
#include "planner/question/field_texts.h"
#include "planner/question/field_values.h"
#include "planner/question/flags.h"
#include "planner/question/module_names.h"
#include "planner/question/power_flag.h"
#include "planner/question/stack_flag.h"

namespace shardwise::cli {
namespace {

template <std::size_t kCount>
void add_fields(CLI::App& verb, const std::array<FieldText, kCount>& fields,
                std::map<std::string, std::string>& texts) {
  for (const FieldText& d : fields) {
    CLI::Option* option = verb.add_option(flag_of(d.field), texts[d.field], d.text)->group(d.group);
    if (d.field == std::string_view("recompute_operations")) {
      verb.add_option(flag_of(kModulesField), texts[kModulesField],
                      "The same by Megatron-Core's modules")
          ->group(d.group)
          ->type_name("MODULE,…");
    }
    if (d.field == std::string_view("bytes_per_token_input")) {
      verb.add_option(flag_of(kPowerField), texts[kPowerField], kPowerText)
          ->group(d.group)
          ->type_name("WATTS");
    }
    if (d.field == std::string_view("kernels")) {
      verb.add_option(flag_of(kStackField), texts[kStackField], kStackText)
          ->group(d.group)
          ->type_name("KIND");
    }
    if (d.field == std::string_view("frozen_base")) {
      for (const AdapterFlag& flag : kAdapterFlags) {
        verb.add_option(flag_of(flag.field), texts[flag.field], flag.text)
            ->group(d.group)
            ->type_name(flag.value);
      }
    }
    if (*d.value == '\0') {
      // A switch: bare it is true, --flag=false turns it off.
      option->expected(0, 1)->default_str("true")->type_name("");
    } else {
      option->type_name(d.value)->transform(
          [field = d.field](const std::string& text) { return typed_value(field, text); });
    }
  }
}

}  // namespace

void add_job_flags(CLI::App& verb, AskedJob& asked, JobScope scope) {
  const bool one_gpu = scope == JobScope::one_gpu;
  verb.add_option(one_gpu ? "model,--model" : "--model", asked.model,
                  "Catalogue name, or a Hugging Face config.json")
      ->required()
      ->type_name("NAME|FILE")
      ->group(kJobGroup);
  if (scope == JobScope::one_cluster) {
    verb.add_option("--cluster", asked.cluster, "Catalogue name, or a cluster file")
        ->required()
        ->type_name("NAME|FILE")
        ->group(kJobGroup);
  }
  if (scope != JobScope::many_clusters) {
    verb.add_option("--gpus", asked.gpus, "GPUs to train on [one node]")
        ->type_name("N")
        ->group(kJobGroup);
  }
  add_job_fields(verb, asked, one_gpu ? "fsdp2" : kUsualEngine);
}

void add_job_fields(CLI::App& verb, AskedJob& asked, const char* usual_engine) {
  verb.add_option("--engine", asked.engine,
                  fmt::format("{} [{}]", fmt::join(engine_names(), ", "), usual_engine))
      ->type_name("NAME")
      ->group(kJobGroup);
  add_fields(verb, kJobTexts, asked.texts);
}

void add_layout_flags(CLI::App& verb, AskedLayout& asked) {
  add_fields(verb, kLayoutTexts, asked.texts);
}

}  // namespace shardwise::cli
