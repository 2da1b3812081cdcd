#include "executor/launch/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardwise::exec {
namespace {

constexpr const char* kFooter =
    "Example\n"
    "  shardwise-run plan.json --ranks 4 --steps 20 --data corpus.txt \\\n"
    "      --report report.json\n"
    "  shardwise-run calibrate --ranks 4 -o laptop.json   measures this machine\n"
    "\n"
    "Exit codes\n"
    "  0 done   2 bad input or use   3 the world broke";

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
  const std::map<std::string, StoredType> dtypes = {{"fp32", StoredType::f32},
                                                    {"bf16", StoredType::bf16}};
  app.add_option("--save-weights-dtype", options.weights_dtype,
                 "Numbers of those weights: fp32, as the optimizer has them, or bf16 (fp32)")
      ->transform(CLI::CheckedTransformer(dtypes).description(""))
      ->type_name("TYPE");
  app.add_option("--max-shard-size", options.max_shard_bytes,
                 "Bytes of a file of weights, 200MB or 2GiB for example (5GB)")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("BYTES");
  app.add_option("--report", options.report, "Write what was measured here, a report.json");
  app.add_option("--trace", options.trace, "Write the step of median length here, for Perfetto");
  app.add_option("--metrics", options.metrics, "Write a line of JSON a step here");
}

void add_checkpoints(CLI::App& app, RunOptions& options) {
  const CLI::Range count(std::int64_t{0}, std::int64_t{1} << 40);
  CLI::Option* const folder = app.add_option("--checkpoint-dir", options.checkpoint_dir,
                                             "Write a checkpoint here after the last step");
  app.add_option("--checkpoint-every", options.checkpoint_every,
                 "And whenever so many steps are done")
      ->check(count)
      ->needs(folder);
  app.add_option("--keep", options.keep, "Checkpoints that stay, 0 for all (2)")
      ->check(count)
      ->needs(folder);
  app.add_option("--resume", options.resume,
                 "Go on from a checkpoint: its folder, or latest in --checkpoint-dir");
  app.add_flag("--resume-on-other-data", options.resume_on_other_data,
               "Even with other tokens, sequences, batches or another seed than before");
}

void add_numbers(CLI::App& app, RunOptions& options) {
  TrainOptions& train = options.train;
  OptimizerRules& rules = train.optimizer;
  app.add_option("--ranks", options.ranks, "Ranks, threads of this process (the plan's)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--steps", train.steps, "Steps to train, those before a checkpoint included (20)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--threads", train.threads, "Threads that compute, a rank (1)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--seed", train.seed, "Decides weights and the order of the data (1234)");
  app.add_option("--timeout", options.timeout_s,
                 "Seconds that a rank waits, or an operation takes (600)")
      ->check(CLI::Range(0.001, 1e6));
  const CLI::Range rate(0.0, 1e3);
  app.add_option("--learning-rate", rules.peak_learning_rate, "After the warm-up (0.0003)")
      ->check(rate);
  app.add_option("--min-learning-rate", rules.least_learning_rate, "Of the cosine's end (0.00003)")
      ->check(rate);
  app.add_option("--warmup-steps", rules.warmup_steps, "Steps of rising learning rate (0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--decay-steps", rules.decay_steps, "Steps until the cosine's end, 0 for no decay")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--weight-decay", rules.weight_decay, "Of matrices (0.1)")->check(rate);
  app.add_flag("--check-for-nan-in-grad", train.checks.nan,
               "Look for what is not a number in each rank's gradients before they are summed");
  app.add_flag("--check-for-large-grads", train.checks.large,
               "Look there for norms of more than 10 times the largest of the first 100");
  app.add_option("--ignored-token", train.ignored_token, "A target that does not count (none)");
  app.add_option("--clip-norm", rules.clip_norm, "Longest gradient, 0 for any (1)")->check(rate);
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv, RunOptions& options) {
  CLI::App app("Trains the transformer of a plan with the sharding of the plan", "shardwise-run");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", std::string("shardwise-run ") + SHARDWISE_VERSION);
  app.footer(kFooter);
  options.train.steps = 20;
  add_files(app, options);
  add_checkpoints(app, options);
  add_numbers(app, options);
  const CommandLine asked = parse_line(app, argc, argv);
  options.seed_given = asked == CommandLine::run && app.count("--seed") > 0;
  return asked;
}

}  // namespace shardwise::exec
