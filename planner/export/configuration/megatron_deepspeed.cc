#include "planner/export/configuration/megatron_deepspeed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/text/number.h"
#include "planner/spec/text/utf8.h"

namespace shardwise {
namespace {

constexpr const char* kEngineOfJob = "megatron_deepspeed";
constexpr double kMostOfFlag = 1 << 30;

/// One job: Megatron's arguments beside DeepSpeed's switch and JSON.
class MegatronDeepspeedJob {
 public:
  explicit MegatronDeepspeedJob(Configuration& job) : job_(job) {}

  /// Transformers' Trainer names a file behind --deepspeed, and has no layers.
  bool is_one() const {
    const GivenSetting* deepspeed = flag("--deepspeed");
    return deepspeed != nullptr && deepspeed->words.empty() && flag("--num-layers") != nullptr;
  }

  Diagnostics take() {
    Diagnostics problems = unplanned_degrees();
    const GivenSetting& place = *flag("--deepspeed");
    const std::optional<std::int64_t> stage = zero_stage();
    if (!stage) {
      problems.push_back({place.file, place.line, place.column, place.path,
                          "nothing says the ZeRO stage of DeepSpeed",
                          "give DeepSpeed's JSON too, or --zero-stage"});
    }
    if (!problems.empty()) return problems;
    job_.notes.push_back({place.file, place.line, place.column, "",
                          "is a job of Megatron-DeepSpeed: of DeepSpeed's JSON the ZeRO stage is "
                          "read, and its arguments are not written back",
                          "the plan is of the engine megatron_deepspeed"});
    // Its optimizer of bf16 shards states in stage 0 too.
    const bool shards = *stage == 0 && flag("--bf16") != nullptr;
    job_.facts["engine"] = kEngineOfJob;
    job_.facts["zero_stage"] = std::to_string(shards ? 1 : *stage);
    take_recompute();
    std::erase_if(job_.settings, [](const GivenSetting& each) {
      return each.value.has_value() || is_its_own(named(each));
    });
    job_.nulls.clear();
    return {};
  }

 private:
  static std::string named(const GivenSetting& each) {
    std::string name = each.name;
    std::ranges::replace(name, '_', '-');
    return name;
  }

  static bool is_its_own(const std::string& name) {
    constexpr auto kOwn = std::to_array<std::string_view>(
        {"--deepspeed", "--deepspeed-config", "--deepspeed-mpi", "--zero-stage",
         "--deepspeed-activation-checkpointing", "--no-pipeline-parallel",
         "--checkpoint-activations", "--checkpoint-num-layers", "--checkpoint-method",
         "--ds-sequence-parallel-size", "--moe-expert-parallel-size"});
    return std::ranges::find(kOwn, name) != kOwn.end();
  }

  const GivenSetting* flag(std::string_view name) const {
    const GivenSetting* found = nullptr;
    for (const GivenSetting& each : job_.settings) {
      if (!each.value && named(each) == name) found = &each;  // of two the last counts
    }
    return found;
  }

  static std::optional<std::int64_t> integer(const GivenSetting& each) {
    if (each.words.size() != 1) return std::nullopt;
    const std::optional<double> number = parse_number(each.words.front());
    if (!number || *number < 0 || *number > kMostOfFlag) return std::nullopt;
    return static_cast<std::int64_t>(*number);
  }

  /// The JSON's counts: DeepSpeed reads it, and the flag only repeats it.
  std::optional<std::int64_t> zero_stage() const {
    for (const GivenSetting& each : job_.settings) {
      if (!each.value || each.name != "zero_optimization.stage") continue;
      if (const auto stage = integer(each)) return stage;
    }
    const GivenSetting* repeated = flag("--zero-stage");
    return repeated == nullptr ? std::nullopt : integer(*repeated);
  }

  Diagnostics unplanned_degrees() const {
    Diagnostics problems;
    for (const auto& [name, hint] :
         {std::pair("--ds-sequence-parallel-size",
                    "1; --cp under --engine fsdp2 shares a sequence, which torchtitan runs"),
          std::pair("--moe-expert-parallel-size", "1: its experts are not planned")}) {
      const GivenSetting* each = flag(name);
      if (each == nullptr || integer(*each) == 1) continue;
      problems.push_back({each->file, each->line, each->column, each->path,
                          fmt::format("no plan of Megatron-DeepSpeed has {}",
                                      shown(fmt::format("{}", fmt::join(each->words, " ")))),
                          hint});
    }
    return problems;
  }

  /// Megatron-LM has named these otherwise since 2022.
  void take_recompute() {
    const GivenSetting* all = flag("--checkpoint-activations");
    if (all == nullptr) return;
    const GivenSetting* every = flag("--checkpoint-num-layers");
    const std::vector<std::string> interval =
        every == nullptr ? std::vector<std::string>{"1"} : every->words;
    GivenSetting made = *all;
    const auto add = [&](const char* name, std::vector<std::string> words) {
      made.name = name;
      made.words = std::move(words);
      job_.settings.push_back(made);
    };
    add("--recompute-granularity", {"full"});
    add("--recompute-method", {"uniform"});
    add("--recompute-num-layers", interval);
  }

  Configuration& job_;
};

}  // namespace

Diagnostics take_megatron_deepspeed(Configuration& job) {
  MegatronDeepspeedJob made(job);
  return made.is_one() ? made.take() : Diagnostics();
}

bool is_megatron_deepspeed(const Configuration& job) {
  const auto engine = job.facts.find("engine");
  return engine != job.facts.end() && engine->second == kEngineOfJob;
}

}  // namespace shardwise
