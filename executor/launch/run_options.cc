#include "executor/launch/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/launch/command.h"
#include "executor/launch/run.h"
#include "planner/spec/command_line.h"
#include "planner/spec/number_flags.h"
#include "planner/spec/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kFooter =
    "Examples\n"
    "  shardwise-run train plan.json --ranks 4 --steps 20 --data corpus.txt \\\n"
    "      --report report.json\n"
    "  torchrun --no-python --nproc-per-node 4 shardwise-run train plan.json \\\n"
    "      --steps 1000 --checkpoint-dir run1 --checkpoint-every 100 --resume auto\n"
    "\n"
    "Exit codes\n"
    "  0 done   2 bad input or use   3 environment failure";

constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr Bytes kLargestShard = 1024_GiB * 1024;

void add_files(CLI::App& app, RunOptions& options) {
  app.add_option("plan", options.plan, "The plan to run, a plan.json")->required();
  app.add_option("--data", options.data, "Text, or file of tokens, to train on (a short text)");
  const std::vector<std::string> formats(kDataFormats.begin(), kDataFormats.end());
  app.add_option("--data-format", options.data_format,
                 "detect, text (a token a byte), nanogpt, llmc or megatron (detect)")
      ->check(CLI::IsMember(formats).description(""))
      ->type_name("NAME");
  app.add_option("--tokenizer", options.tokenizer,
                 "A tokenizer.json that encodes the text (a token a byte)");
  app.add_option("--init-from", options.init_from,
                 "Begin with the weights of this folder, Hugging Face's safetensors");
  app.add_option("--save-weights", options.save_weights,
                 "Write config.json and safetensors here after the last step");
  const auto dtype = [&options](std::string_view typed) {
    if (typed == "fp32" || typed == "bf16") {
      options.weights_dtype = typed == "fp32" ? StoredType::f32 : StoredType::bf16;
      return std::string();
    }
    return fmt::format("{} is not fp32 or bf16", shown(typed));
  };
  add_checked(app, "--save-weights-dtype",
              "Numbers of those weights: fp32, as the optimizer has them, or bf16 (fp32)", dtype)
      ->type_name("TYPE");
  add_size(app, "--max-shard-size", options.max_shard_size, 1_B, 1_B, kLargestShard,
           "Size of a file of weights, 200MB or 2GiB for example (5GB)");
  app.add_option("--report", options.report, "Write what was measured here, a report.json");
  app.add_option("--trace", options.trace, "Write the step of median length here, for Perfetto");
  app.add_option("--metrics", options.metrics, "Write a line of JSON a step here");
}

void add_checkpoints(CLI::App& app, RunOptions& options) {
  CLI::Option* const folder = app.add_option("--checkpoint-dir", options.checkpoint_dir,
                                             "Write a checkpoint here after the last step");
  add_integer(app, "--checkpoint-every", options.checkpoint_every, 0, kMostSteps,
              "And whenever so many steps are done")
      ->needs(folder);
  add_integer(app, "--keep", options.keep, 0, kMostSteps, "Checkpoints to keep; 0 keeps all (2)")
      ->needs(folder);
  app.add_option("--resume", options.resume,
                 "Resume from a checkpoint: its folder, or the latest good one of "
                 "--checkpoint-dir (latest; auto: begin anew where there is none yet)");
  app.add_flag("--replace-checkpoints", options.replace_checkpoints,
               "Remove checkpoints of other runs from --checkpoint-dir, and later ones than "
               "the resumed one")
      ->needs(folder);
  app.add_flag("--resume-on-other-data", options.resume_on_other_data,
               "Even with other tokens, sequences, batches or another seed than before");
}

void add_numbers(CLI::App& app, RunOptions& options) {
  TrainOptions& train = options.train;
  OptimizerRules& rules = train.optimizer;
  add_integer(app, "--ranks", options.ranks, 1, 1024,
              "Ranks, threads of this process (the plan's)");
  add_integer(app, "--steps", train.steps, 1, kMostSteps,
              "Steps to train, those before a checkpoint included (20)");
  add_integer(app, "--threads", train.threads, 1, 1024, "Threads that compute, a rank (1)");
  add_integer(app, "--seed", train.seed, 0, std::numeric_limits<std::uint64_t>::max(),
              "Decides weights and the order of the data (1234)");
  add_number(app, "--timeout", options.timeout_s, 0.001, 1e6,
             "Seconds that a rank waits, or an operation takes (600)")
      ->type_name("SECONDS");
  const auto rate = [&app](const char* flag, double& value, const char* text) {
    add_number(app, flag, value, 0, 1e3, text)->type_name("X");
  };
  rate("--learning-rate", rules.peak_learning_rate, "After the warm-up (0.0003)");
  rate("--min-learning-rate", rules.least_learning_rate, "Of the cosine's end (0.00003)");
  add_integer(app, "--warmup-steps", rules.warmup_steps, 0, kMostSteps,
              "Steps of rising learning rate (0)");
  add_integer(app, "--decay-steps", rules.decay_steps, 0, kMostSteps,
              "Steps until the cosine's end, 0 for no decay");
  rate("--weight-decay", rules.weight_decay, "Of matrices (0.1)");
  app.add_flag("--check-for-nan-in-grad", train.checks.nan,
               "Look for what is not a number in each rank's gradients before they are summed");
  app.add_flag("--check-for-large-grads", train.checks.large,
               "Look there for norms of more than 10 times the largest of the first 100");
  // Tokens have at most 32 bits, with a sign or without.
  add_integer(app, "--ignored-token", train.ignored_token, std::numeric_limits<std::int32_t>::min(),
              std::numeric_limits<std::uint32_t>::max(), "A target that does not count (none)");
  rate("--clip-norm", rules.clip_norm, "Longest gradient, 0 for any (1)");
}

}  // namespace

void add_train(CLI::App& app, Verb& verb) {
  CLI::App* const added =
      app.add_subcommand("train", "Train the transformer of a plan as the plan shards it");
  auto options = std::make_shared<RunOptions>();
  options->train.steps = 20;
  added->footer(kFooter);
  add_files(*added, *options);
  add_checkpoints(*added, *options);
  add_numbers(*added, *options);
  show_first(*added, {"--data", "--ranks", "--steps", "--learning-rate", "--init-from",
                      "--save-weights", "--report", "--metrics", "--checkpoint-dir",
                      "--checkpoint-every", "--resume", "--timeout"});
  added->callback([&verb, options, added] {
    options->seed_given = added->count("--seed") > 0;
    verb = [options] { return run(*options); };
  });
}

}  // namespace shardwise::exec
