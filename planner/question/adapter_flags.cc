#include "planner/question/adapter_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/cost/software/timing.h"
#include "planner/cost/software/usual_kernels.h"
#include "planner/question/flags.h"
#include "planner/spec/text/number.h"
#include "planner/spec/text/split.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr std::int64_t kMostRank = 65'536;
constexpr std::pair<const char*, BaseFormat> kFormats[] = {
    {"nf4", BaseFormat::nf4}, {"nf4_double", BaseFormat::nf4_double}, {"int8", BaseFormat::int8}};

std::string take(std::map<std::string, std::string>& texts, const char* field) {
  const auto node = texts.extract(field);
  return node.empty() ? std::string() : node.mapped();
}

/// bitsandbytes' matrices are modules of PyTorch's, and are not cut.
bool takes_packed(const EngineProfile& engine, const JobSpec& job) {
  return engine.gradient_buffer == GradientBuffer::copy_in &&
         kernels_of(job, engine) != Kernels::planned;
}

/// PEFT's default for models that have both (Llama, Mistral, Mixtral, Qwen2, Gemma and more), and
/// that of its rank.
/// Source: huggingface/peft@00073fe8:src/peft/utils/constants.py,
/// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING; src/peft/tuners/lora/config.py, r.
constexpr const char* kPeftsTargets = "q_proj,v_proj";

/// Adapters nobody names of a model that is frozen: PEFT's own under PyTorch's engines, where the
/// model has those matrices.
std::string usual_targets(const Subject& subject) {
  if (!subject.job.frozen_base || !takes_packed(subject.engine, subject.job)) return "";
  if (has_megatron_modules(subject.engine)) return "";
  const std::vector<std::string> has = adapter_targets(subject.model);
  const bool both = std::ranges::count(has, "q_proj") > 0 && std::ranges::count(has, "v_proj") > 0;
  return both ? kPeftsTargets : "";
}

}  // namespace

AdapterTexts take_adapter_texts(std::map<std::string, std::string>& texts) {
  AdapterTexts taken;
  taken.targets = take(texts, "lora_targets");
  taken.rank = take(texts, "lora_rank");
  taken.base = take(texts, "base_format");
  if (taken.targets.empty()) return taken;
  const auto adamw = texts.find("adamw");
  taken.adamw_open = adamw == texts.end() || adamw->second.empty();
  std::string& frozen = texts["frozen_base"];
  if (frozen.empty()) frozen = "true";
  return taken;
}

void add_asked_adapters(const AdapterTexts& asked, Subject& subject, Diagnostics& problems) {
  const bool none = asked.targets == kNoAdapters;
  const bool nothing = asked.targets.empty() && asked.rank.empty() && asked.base.empty();
  const std::string usual = nothing ? usual_targets(subject) : "";
  if (none || (asked.targets.empty() && usual.empty())) {
    const char* alone = !asked.rank.empty() ? "--lora-rank" : "--base-format";
    if (asked.rank.empty() && asked.base.empty()) {
      if (subject.job.frozen_base) {
        subject.assumptions.push_back(
            {"adapters.unnamed",
             "no adapters are named, so their own memory and time are left out (--lora-targets)",
             "docs/memory.md, Adapters"});
      }
      return;
    }
    problems.push_back(wrong_flag(alone, "no adapters are trained", "name them: --lora-targets"));
    return;
  }
  const std::size_t before = problems.size();
  AdapterChoice choice;
  choice.targets = split_at(nothing ? usual : asked.targets, ',');
  if (!subject.job.frozen_base) {
    problems.push_back(wrong_flag("--lora-targets", "adapters are trained on a frozen model",
                                  "leave out --frozen-base=false"));
  }
  if (!asked.rank.empty()) {
    const std::string problem = read_integer(asked.rank, 1, kMostRank, choice.rank);
    if (!problem.empty()) problems.push_back(wrong_flag("--lora-rank", problem));
  }
  if (!asked.base.empty()) {
    const auto* const format =
        std::ranges::find_if(kFormats, [&](const auto& each) { return asked.base == each.first; });
    if (format == std::end(kFormats)) {
      problems.push_back(wrong_flag("--base-format",
                                    fmt::format("'{}' is unknown", shown(asked.base)),
                                    "use int8, nf4 or nf4_double"));
    } else if (!takes_packed(subject.engine, subject.job)) {
      problems.push_back(wrong_flag(
          "--base-format",
          fmt::format("matrices of bitsandbytes are not modelled under {}", subject.engine.name),
          "use --engine fsdp1, fsdp2 or deepspeed"));
    } else {
      choice.base = format->second;
    }
  }
  if (problems.size() > before) return;
  const std::vector<std::string> unknown = add_adapters(subject.model, choice);
  if (!unknown.empty()) {
    problems.push_back(wrong_flag(
        "--lora-targets",
        fmt::format("{} has no linear layer '{}'", subject.model.name, shown(unknown.front())),
        fmt::format("it has {}; all-linear is all of them but the head",
                    fmt::join(adapter_targets(subject.model), ", "))));
    return;
  }
  constexpr const char* kSource = "docs/memory.md, Adapters";
  const bool packed = choice.base != BaseFormat::as_computed;
  const std::string which =
      nothing ? fmt::format(" on {} (--lora-targets), PEFT's default,", usual) : "";
  subject.assumptions.push_back(
      {"adapters",
       fmt::format(
           "adapters of rank {} (--lora-rank){} with dropout before them, as PEFT adds them",
           choice.rank, which) +
           (packed ? ", beside matrices of bitsandbytes" : ""),
       kSource});
  if (multiplies_adapters_wide(subject.job, subject.engine)) {
    subject.assumptions.push_back(
        {"adapters.wide",
         "adapters in fp32 multiply in fp32, as where neither autocast nor FSDP's mixed precision "
         "casts them (--main-dtype bf16: all of it in 16 bits)",
         kSource});
  }
  if (!packed) return;
  JobSpec& job = subject.job;
  if (job.main_dtype == DType::fp32) {
    subject.assumptions.push_back(
        {"adapters.dtype",
         "adapters, embedding and head in fp32, as PEFT casts them; QLoRA's own script and TRL "
         "train adapters in 16 bits (--main-dtype bf16)",
         kSource});
  }
  const bool qlora = choice.base != BaseFormat::int8;
  if (qlora && asked.adamw_open && takes_bitsandbytes(job, subject.engine) &&
      job.moment_dtype == DType::fp32) {
    job.adamw = AdamwKernel::paged;
    subject.assumptions.push_back(
        {"adapters.adamw", "bitsandbytes' paged AdamW, as QLoRA's recipes have it (--adamw)",
         kSource});
  }
}

std::map<std::string, std::string> adapter_texts(const ModelSpec& model) {
  std::map<std::string, std::string> texts;
  const std::optional<AdapterChoice> choice = adapters_of(model);
  if (!choice) return texts;
  texts["lora_targets"] = fmt::format("{}", fmt::join(choice->targets, ","));
  texts["lora_rank"] = std::to_string(choice->rank);
  for (const auto& [name, format] : kFormats) {
    if (format == choice->base) texts["base_format"] = name;
  }
  return texts;
}

}  // namespace shardwise
