#include "executor/launch/resume.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/rank_part.h"
#include "executor/storage/durable_file.h"
#include "planner/lowering/lowering_context.h"
#include "planner/spec/error.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

Diagnostic wrong_use(const std::string& flag, std::string message, std::string hint) {
  return {"command line", 0, 0, flag, std::move(message), std::move(hint)};
}

std::vector<SavedTensor> tensors_of(const Plan& plan) {
  return saved_tensors(state_units(lowering_context(plan, Granularity::layer, false), 0));
}

/// The folder of one checkpoint that a name stands for.
Result<fs::path> folder_of(const RunOptions& options) {
  const bool latest = options.resume == "latest";
  if (latest && options.checkpoint_dir.empty()) {
    return wrong_use("--resume", "latest of which folder", "add --checkpoint-dir");
  }
  const fs::path folder = latest ? options.checkpoint_dir : options.resume;
  std::error_code ignored;
  const std::vector<std::int64_t> steps = complete_steps(folder);
  if (!latest && (steps.empty() || fs::exists(folder / kManifestName, ignored))) return folder;
  if (!steps.empty()) return folder / complete_name(steps.back());
  return wrong_use("--resume", fmt::format("{} has no complete checkpoint", folder.string()),
                   "a run without --resume begins anew");
}

}  // namespace

Manifest manifest_of(const Plan& plan, const RunOptions& options, const DataIdentity& data) {
  Manifest manifest;
  manifest.data = data;
  manifest.seed = options.train.seed;
  manifest.model = plan.model.name;
  manifest.plan_digest = digest(plan);
  manifest.engine = plan.engine.name;
  manifest.zero_stage = int{plan.layout.zero_stage};
  manifest.dp_shard = plan.layout.dp_shard;
  manifest.dp_replicate = plan.layout.dp_replicate;
  manifest.optimizer = options.train.optimizer;
  manifest.tensors = tensors_of(plan);
  return manifest;
}

Result<std::optional<SavedCheckpoint>> find_resumed(const Plan& plan, RunOptions& options) {
  if (options.resume.empty()) return std::optional<SavedCheckpoint>();
  const Result<fs::path> folder = folder_of(options);
  if (!folder) return folder.problems();
  Result<SavedCheckpoint> saved = SavedCheckpoint::open(*folder);
  if (!saved) return saved.problems();
  Diagnostics problems = saved->differences(tensors_of(plan));
  const Manifest& manifest = saved->manifest();
  const bool reseeded = options.seed_given && options.train.seed != manifest.seed;
  if (reseeded && !options.resume_on_other_data) {
    problems.push_back(wrong_use(
        "--seed", fmt::format("{}, the checkpoint has {}", options.train.seed, manifest.seed),
        "leave --seed out, or add --resume-on-other-data"));
  }
  if (options.train.steps <= manifest.step) {
    problems.push_back(wrong_use(
        "--steps",
        fmt::format("{}, the checkpoint has trained {}", options.train.steps, manifest.step),
        "--steps counts those before the checkpoint too"));
  }
  if (!problems.empty()) return problems;
  if (!reseeded) options.train.seed = manifest.seed;
  return std::optional<SavedCheckpoint>(*std::move(saved));
}

Diagnostics other_data(const Manifest& saved, const DataIdentity& data, const RunOptions& options) {
  const DataIdentity& was = saved.data;
  Diagnostics problems;
  if (was.digest.empty() || options.resume_on_other_data) return problems;
  const auto differs = [&](const char* flag, std::string message) {
    problems.push_back(wrong_use(flag, std::move(message),
                                 "read what the run before read, or add --resume-on-other-data"));
  };
  if (was.digest != data.digest) {
    const bool encoded = was.tokenizer != data.tokenizer;
    const auto words = [](const DataIdentity& each) {
      return each.tokenizer.empty() ? "none" : each.tokenizer.substr(0, 12);
    };
    differs(encoded ? "--tokenizer" : "--data",
            encoded
                ? fmt::format("SHA-256 {}, the checkpoint's run had {}", words(data), words(was))
                : fmt::format("{} has {} tokens and others than the {} of {}", data.source,
                              data.tokens, was.tokens, was.source));
  }
  const auto number = [&](const char* path, std::int64_t is, std::int64_t before) {
    if (is != before) differs(path, fmt::format("{}, the checkpoint's run had {}", is, before));
  };
  number("/job/sequence_length", data.sequence_length, was.sequence_length);
  number("/job/global_batch_size", data.global_batch_size, was.global_batch_size);
  return problems;
}

Diagnostics prepare_checkpoints(const RunOptions& options) {
  if (options.checkpoint_dir.empty()) return {};
  const auto wrong = [](const std::string& message) {
    return Diagnostics{
        wrong_use("--checkpoint-dir", message, "name a folder that can be made or written to")};
  };
  try {
    make_folder(options.checkpoint_dir);
  } catch (const IoError& broken) {
    return wrong(broken.what());
  }
  if (::access(options.checkpoint_dir.c_str(), W_OK | X_OK) == 0) return {};
  return wrong(fmt::format("{} cannot be written: {}", options.checkpoint_dir,
                           std::error_code(errno, std::system_category()).message()));
}

void introduce_resumed(const Manifest& saved, const RunOptions& options) {
  fmt::print("goes on after step {}, written by {} ZeRO-{}, dp_shard {}, dp_replicate {}\n",
             saved.step, saved.engine, saved.zero_stage, saved.dp_shard, saved.dp_replicate);
  const OptimizerRules& was = saved.optimizer;
  const OptimizerRules& is = options.train.optimizer;
  struct Rule {
    const char* name;
    double was;
    double is;
  };
  const std::array<Rule, 6> rules = {
      Rule{"learning_rate", was.peak_learning_rate, is.peak_learning_rate},
      Rule{"min_learning_rate", was.least_learning_rate, is.least_learning_rate},
      Rule{"warmup_steps", static_cast<double>(was.warmup_steps),
           static_cast<double>(is.warmup_steps)},
      Rule{"decay_steps", static_cast<double>(was.decay_steps),
           static_cast<double>(is.decay_steps)},
      Rule{"weight_decay", was.weight_decay, is.weight_decay},
      Rule{"clip_norm", was.clip_norm, is.clip_norm}};
  for (const Rule& rule : rules) {
    if (rule.was != rule.is) fmt::print("{} {}, was {}\n", rule.name, rule.is, rule.was);
  }
}

}  // namespace shardwise::exec
