#include "executor/launch/resume.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.h"
#include "executor/checkpoint/folder_owner.h"
#include "executor/checkpoint/rank_part.h"
#include "executor/launch/command.h"
#include "executor/storage/durable_file.h"
#include "planner/spec/text/error.h"

namespace shardwise::exec {
namespace {

namespace fs = std::filesystem;

/// Makes the folder for checkpoints. \returns why there can be none
Diagnostics made(const std::string& folder) {
  const auto wrong = [](const std::string& message) {
    return Diagnostics{
        wrong_use("--checkpoint-dir", message, "name a folder that can be created or written to")};
  };
  try {
    make_folder(folder);
  } catch (const IoError& broken) {
    return wrong(broken.what());
  }
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return wrong(fmt::format("{} cannot be written: {}", folder,
                           std::error_code(errno, std::system_category()).message()));
}

/// A checkpoint that may be resumed from, or why it is none.
struct Candidate {
  fs::path path;
  std::int64_t step = -1;  // of its name; -1: the user named it
  std::string skipped;     // why it is passed over, empty where it is not
};

bool is_latest(const RunOptions& options) {
  return options.resume == "latest" || options.resume == "auto";
}

/// What one run has in a folder, the latest first, and what is passed over between.
Result<std::vector<Candidate>> candidates_of(const fs::path& folder, bool may_begin) {
  const FolderContents contents = contents_of(folder);
  std::vector<Candidate> found;
  if (contents.checkpoints.empty() && may_begin) return found;
  bool several = !contents.owner;
  for (const NamedCheckpoint& each : contents.checkpoints) {
    Candidate candidate = {each.path, each.step, ""};
    if (each.run && contents.owner && *each.run != *contents.owner) {
      candidate.skipped = fmt::format("of run {}, and the folder is run {}'s",
                                      short_run_id(*each.run), short_run_id(*contents.owner));
    }
    found.push_back(std::move(candidate));
  }
  several = several && std::ranges::any_of(contents.checkpoints,
                                           [](const auto& each) { return each.run.has_value(); });
  if (several) {
    return wrong_use(
        "--resume",
        fmt::format("{} has checkpoints of several runs: {}", folder.string(), contents.text()),
        fmt::format("name one of them, --resume {} for example",
                    contents.checkpoints.back().path.string()));
  }
  for (const PassedOver& each : contents.others) {
    found.push_back({each.path, each.step, each.why});
  }
  std::ranges::stable_sort(found, std::greater<>(), &Candidate::step);
  return found;
}

/// What --resume stands for.
Result<std::vector<Candidate>> candidates_of(const RunOptions& options) {
  if (is_latest(options)) {
    if (options.checkpoint_dir.empty()) {
      return wrong_use("--resume", options.resume + " needs a folder", "add --checkpoint-dir");
    }
    return candidates_of(options.checkpoint_dir, options.resume == "auto");
  }
  std::error_code ignored;
  const fs::path named = options.resume;
  const bool one = fs::exists(fs::symlink_status(named / kManifestName, ignored));
  if (one || complete_steps(named).empty()) return std::vector<Candidate>{{named, -1, ""}};
  return candidates_of(named, false);
}

/// A candidate that every rank opened, or what is wrong with it.
struct Opened {
  std::optional<SavedCheckpoint> saved;
  Diagnostics damage;  // another checkpoint may do
  Diagnostics misuse;  // none will
};

/// The first tensor that is not that of the plan's model, and how many more: of another model all
/// of them may be.
Diagnostics other_model(const SavedCheckpoint& saved, const Plan& plan) {
  Diagnostics found = saved.differences(saved_tensors(plan));
  if (found.size() < 2) return found;
  const std::size_t more = found.size() - 1;
  found.resize(1);
  found.front().message += fmt::format(", and {} tensor{} more differ{}", more,
                                       more == 1 ? "" : "s", more == 1 ? "s" : "");
  return found;
}

/// Flags and a plan that do not go with a checkpoint.
Diagnostics misuse_of(const SavedCheckpoint& saved, const Plan& plan, const RunOptions& options) {
  const Manifest& manifest = saved.manifest();
  Diagnostics problems = other_model(saved, plan);
  if (options.seed_given && options.train.seed != manifest.seed && !options.resume_on_other_data) {
    problems.push_back(wrong_use(
        "--seed", fmt::format("{}, the checkpoint has {}", options.train.seed, manifest.seed),
        "leave --seed out, or add --resume-on-other-data"));
  }
  // A job that is started again may have been killed after its last checkpoint.
  const bool finished = is_latest(options) && options.train.steps == manifest.step;
  if (options.train.steps <= manifest.step && !finished) {
    problems.push_back(wrong_use(
        "--steps",
        fmt::format("{}, the checkpoint has trained {}", options.train.steps, manifest.step),
        "--steps includes the steps before the checkpoint"));
  }
  return problems;
}

/// Opens a checkpoint and compares its checksums, each rank those of its share.
Opened open_together(const fs::path& path, std::int64_t step, const Plan& plan,
                     const RunOptions& options, const Together& together) {
  Opened opened;
  Diagnostics own;
  try {
    Result<SavedCheckpoint> saved =
        SavedCheckpoint::open(path, step >= 0 ? std::optional(step) : std::nullopt);
    if (!saved) {
      own = saved.problems();
    } else {
      opened.saved.emplace(*std::move(saved));
    }
  } catch (const IoError& broken) {
    own = {{path.string(), 0, 0, "", broken.what(), ""}};
  }
  opened.damage = together.gather(own);
  if (!opened.damage.empty() || !opened.saved) return opened;
  opened.misuse = together.gather(misuse_of(*opened.saved, plan, options));
  if (!opened.misuse.empty()) return opened;
  try {
    own = opened.saved->altered(static_cast<std::size_t>(together.rank()),
                                static_cast<std::size_t>(together.ranks()));
  } catch (const IoError& broken) {
    own = {{path.string(), 0, 0, "", broken.what(), ""}};
  }
  opened.damage = together.gather(own);
  return opened;
}

void tell_skipped(const fs::path& path, const std::string& why) {
  fmt::print(stderr, "shardwise-run: skipping {}: {}\n", path.string(), why);
  std::fflush(stderr);
}

}  // namespace

Manifest manifest_of(const Plan& plan, const RunOptions& options, const DataIdentity& data,
                     const std::string& run) {
  Manifest manifest;
  if (!run.empty()) manifest.run = run;
  manifest.data = data;
  manifest.seed = options.train.seed;
  manifest.model = plan.model.name;
  manifest.plan_digest = digest(plan);
  manifest.engine = plan.engine.name;
  manifest.zero_stage = int{plan.layout.zero_stage};
  manifest.dp_shard = plan.layout.dp_shard;
  manifest.dp_replicate = plan.layout.dp_replicate;
  manifest.tp = plan.layout.tp;
  manifest.pp = plan.layout.pp;
  manifest.vpp = plan.layout.vpp;
  manifest.optimizer = options.train.optimizer;
  manifest.tensors = saved_tensors(plan);
  return manifest;
}

Result<std::optional<Resumed>> find_resumed(const Plan& plan, RunOptions& options,
                                            const Together& together) {
  if (options.resume.empty()) return std::optional<Resumed>();
  std::vector<Candidate> candidates;
  Diagnostics problems;
  if (together.rank() == 0) {
    Result<std::vector<Candidate>> found = candidates_of(options);
    if (found) {
      candidates = *std::move(found);
    } else {
      problems = found.problems();
    }
  }
  problems = together.gather(problems);
  if (!problems.empty()) return problems;
  const bool nothing = together.from_first(candidates.empty() ? "nothing" : "") == "nothing";
  if (nothing && options.resume == "auto") return std::optional<Resumed>();
  for (std::size_t at = 0;; ++at) {
    for (; at < candidates.size() && !candidates[at].skipped.empty(); ++at) {
      tell_skipped(candidates[at].path, candidates[at].skipped);
    }
    const Candidate next = at < candidates.size() ? candidates[at] : Candidate();
    const fs::path path = together.from_first(next.path.string());
    if (path.empty()) break;
    const std::int64_t step = std::stoll(together.from_first(std::to_string(next.step)));
    Opened opened = open_together(path, step, plan, options, together);
    if (!opened.misuse.empty()) return opened.misuse;
    if (opened.damage.empty() && opened.saved) {
      if (!options.seed_given) options.train.seed = opened.saved->manifest().seed;
      const bool finished = opened.saved->manifest().step == options.train.steps;
      return std::optional(
          Resumed{*std::move(opened.saved), step < 0 ? fs::path() : path.parent_path(), finished});
    }
    if (step < 0) return opened.damage;
    if (together.rank() == 0) tell_skipped(path, summary(opened.damage));
  }
  return wrong_use("--resume",
                   fmt::format("{} has no {}checkpoint",
                               is_latest(options) ? options.checkpoint_dir : options.resume,
                               nothing ? "complete " : "good "),
                   "a run without --resume starts from scratch");
}

Diagnostics other_data(const Manifest& saved, const DataIdentity& data, const RunOptions& options) {
  const DataIdentity& was = saved.data;
  Diagnostics problems;
  if (was.digest.empty() || options.resume_on_other_data) return problems;
  const auto differs = [&](const char* flag, std::string message) {
    problems.push_back(wrong_use(flag, std::move(message),
                                 "use the data of that run, or add --resume-on-other-data"));
  };
  if (was.digest != data.digest) {
    const bool encoded = was.tokenizer != data.tokenizer;
    const auto words = [](const DataIdentity& each) {
      return each.tokenizer.empty() ? "none" : each.tokenizer.substr(0, 12);
    };
    differs(encoded ? "--tokenizer" : "--data",
            encoded
                ? fmt::format("SHA-256 {}, the checkpoint's run had {}", words(data), words(was))
                : fmt::format("{} has {} tokens that differ from the {} of {}", data.source,
                              data.tokens, was.tokens, was.source));
  }
  const auto number = [&](const char* path, std::int64_t is, std::int64_t before) {
    if (is != before) differs(path, fmt::format("{}, the checkpoint's run had {}", is, before));
  };
  number("/job/sequence_length", data.sequence_length, was.sequence_length);
  number("/job/global_batch_size", data.global_batch_size, was.global_batch_size);
  return problems;
}

Diagnostics RunFolder::lock(const RunOptions& options, const Together& together) {
  const fs::path folder = options.checkpoint_dir;
  Diagnostics problems;
  const auto keep = [&](Result<FolderLock> taken) {
    if (taken) {
      lock_.emplace(*std::move(taken));
    } else {
      problems = taken.problems();
    }
  };
  if (together.rank() == 0) keep(FolderLock::take(folder));
  problems = together.gather(problems);
  if (!problems.empty()) return problems;
  if (together.rank() != 0) keep(FolderLock::join(folder, together.rank()));
  if (together.rank() == 0 && lock_ && !lock_->unlocked().empty()) {
    fmt::print(stderr,
               "shardwise-run: {} is on a file system without locks ({}): nothing stops a second "
               "run from writing there\n",
               folder.string(), lock_->unlocked());
  }
  return together.gather(problems);
}

Result<RunFolder> RunFolder::enter(const RunOptions& options, const Together& together) {
  RunFolder entered;
  if (options.checkpoint_dir.empty()) return entered;
  std::error_code ignored;
  const bool there = fs::is_directory(options.checkpoint_dir, ignored);
  if (together.from_first(there ? "there" : "") != "there") return entered;
  const Diagnostics problems = entered.lock(options, together);
  if (!problems.empty()) return problems;
  return entered;
}

Diagnostics RunFolder::claim(const RunOptions& options, const std::optional<Resumed>& resumed,
                             const Together& together) {
  if (options.checkpoint_dir.empty()) return {};
  Diagnostics problems =
      together.gather(together.rank() == 0 ? made(options.checkpoint_dir) : Diagnostics());
  const bool locks = together.from_first(lock_ ? "" : "locks") == "locks";
  if (problems.empty() && locks) problems = lock(options, together);
  if (!problems.empty()) return problems;
  run_ = together.from_first(resumed ? resumed->saved.manifest().run : new_run_id());
  if (together.rank() == 0) {
    std::error_code ignored;
    const bool latest =
        resumed && fs::equivalent(resumed->latest_of, options.checkpoint_dir, ignored);
    const std::int64_t step = resumed ? resumed->saved.manifest().step : 0;
    problems =
        claim_folder(options.checkpoint_dir, {run_, step, latest, options.replace_checkpoints});
  }
  return together.gather(problems);
}

void introduce_resumed(const Manifest& saved, const RunOptions& options) {
  if (saved.step == options.train.steps) {
    fmt::print("run {} has trained all {} steps: nothing remains to train\n",
               short_run_id(saved.run), saved.step);
    return;
  }
  const std::string parts = saved.tp > 1 ? fmt::format("tp {}, ", saved.tp) : "";
  const std::string stages = saved.pp > 1 ? fmt::format("pp {}, ", saved.pp) : "";
  fmt::print(
      "resuming after step {} of run {}, written by {} ZeRO-{}, {}{}dp_shard {}, dp_replicate "
      "{}\n",
      saved.step, short_run_id(saved.run), saved.engine, saved.zero_stage, parts, stages,
      saved.dp_shard, saved.dp_replicate);
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
