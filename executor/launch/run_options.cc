#include "executor/launch/run_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "executor/launch/command.h"
#include "executor/launch/run.h"
#include "planner/command/command_line.h"
#include "planner/command/number_flags.h"
#include "planner/files/process_memory.h"
#include "planner/spec/text/utf8.h"

namespace shardwise::exec {
namespace {

constexpr const char* kTrainFooter =
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
  app.add_option("plan", options.plan, "plan.json to run")->type_name("PLAN")->required();
  app.add_option("--data", options.data, "Text or token file to train on [a short text]")
      ->type_name("FILE");
  const std::vector<std::string> formats(kDataFormats.begin(), kDataFormats.end());
  app.add_option("--data-format", options.data_format,
                 "detect, text (one token per byte), nanogpt, llmc or megatron [detect]")
      ->check(CLI::IsMember(formats).description(""))
      ->type_name("NAME");
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer.json that encodes the text [one token per byte]")
      ->type_name("FILE");
  app.add_option("--init-from", options.init_from, "Load weights from Hugging Face safetensors")
      ->type_name("DIR");
  app.add_option("--save-weights", options.save_weights,
                 "Write Hugging Face weights after the last step")
      ->type_name("DIR");
  const auto dtype = [&options](std::string_view typed) {
    if (typed == "fp32" || typed == "bf16") {
      options.weights_dtype = typed == "fp32" ? StoredType::f32 : StoredType::bf16;
      return std::string();
    }
    return fmt::format("{} is not fp32 or bf16", shown(typed));
  };
  add_checked(app, "--save-weights-dtype", "Type of the saved weights, fp32 or bf16 [fp32]", dtype)
      ->type_name("TYPE");
  add_size(app, "--max-shard-size", options.max_shard_size, 1_B, 1_B, kLargestShard,
           "Largest file of saved weights, for example 200MB or 2GiB [5GB]");
  app.add_option("--report", options.report, "Write the measured report.json")->type_name("FILE");
  app.add_option("--trace", options.trace,
                 "Write a trace of the median step to this file, for Perfetto")
      ->type_name("FILE");
  app.add_option("--metrics", options.metrics, "Write a line of JSON per step")->type_name("FILE");
}

void add_checkpoints(CLI::App& app, RunOptions& options) {
  CLI::Option* const folder =
      app.add_option("--checkpoint-dir", options.checkpoint_dir, "Write checkpoints to this folder")
          ->type_name("DIR");
  add_integer(app, "--checkpoint-every", options.checkpoint_every, 0, kMostSteps,
              "And one every N steps, not only after the last")
      ->needs(folder);
  add_integer(app, "--keep", options.keep, 0, kMostSteps, "Checkpoints to keep; 0 keeps all [2]")
      ->needs(folder);
  app.add_option("--resume", options.resume,
                 "A checkpoint's folder; latest of --checkpoint-dir; auto: latest, or start anew")
      ->type_name("DIR|WORD");
  app.add_flag("--replace-checkpoints", options.replace_checkpoints,
               "Remove checkpoints of other runs from --checkpoint-dir, and those later than "
               "the resumed one")
      ->needs(folder);
  app.add_flag("--resume-on-other-data", options.resume_on_other_data,
               "Resume even if tokens, sequence length, batch size or seed differ");
}

void add_devices(CLI::App& app, DeviceOptions& options) {
  const auto device = [&options](std::string_view typed) {
    if (typed != "cpu" && typed != "cuda")
      return fmt::format("{} is not cpu or cuda", shown(typed));
    options.kind = typed == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
    return std::string();
  };
  add_checked(app, "--device", "What computes, cpu or cuda [what the plan's cluster has]", device)
      ->type_name("NAME");
  app.add_flag("--share-gpu", options.share_gpu,
               "Ranks of a host share its first GPU; timings mean nothing");
  app.add_flag("!--no-graph", options.gpus.graphs, "Issue every step anew, without a CUDA graph");
  const auto nccl = [&options](std::string_view typed) {
    const Result<NcclPolicy> policy = parse_nccl_policy(std::string(typed));
    if (!policy) {
      const Diagnostic& first = policy.problems().front();
      return fmt::format("{}; {}", first.message, first.hint);
    }
    options.gpus.nccl = *policy;
    return std::string();
  };
  add_checked(app, "--nccl",
              "How NCCL is used, for example max_ctas=16,algorithm=ring [its own choice]", nccl)
      ->type_name("FIELD=VALUE,…");
  const auto libraries = [&options](std::string_view typed) {
    std::error_code none;
    options.gpus.libraries = std::filesystem::canonical(typed, none).string();
    if (std::filesystem::is_directory(options.gpus.libraries, none)) return std::string();
    return fmt::format("{} is not a folder", shown(typed));
  };
  add_checked(app, "--libraries",
              "Python environment or folder that has NVIDIA's libraries [the usual places]",
              libraries)
      ->type_name("DIR");
}

void add_numbers(CLI::App& app, RunOptions& options) {
  TrainOptions& train = options.train;
  OptimizerRules& rules = train.optimizer;
  add_integer(app, "--ranks", options.ranks, 1, 1024, "Ranks on this machine [from the plan]");
  const auto ranks_as = [&options](std::string_view typed) {
    if (typed != "threads" && typed != "processes") {
      return fmt::format("{} is not threads or processes", shown(typed));
    }
    options.ranks_as = typed == "threads" ? RanksAs::threads : RanksAs::processes;
    return std::string();
  };
  add_checked(app, "--ranks-as",
              "What ranks are, threads or processes [processes where NCCL moves tensors]", ranks_as)
      ->type_name("NAME");
  add_integer(app, "--steps", train.steps, 1, kMostSteps,
              "Steps to train, those before a checkpoint too [20]");
  add_integer(app, "--threads", train.threads, 1, 1024, "Compute threads per rank [1]");
  add_integer(app, "--seed", train.seed, 0, std::numeric_limits<std::uint64_t>::max(),
              "Seed of the initial weights and of the data order [1234]");
  add_number(app, "--timeout", options.timeout_s, 0.001, 1e6,
             "Longest wait or operation of a rank [600]")
      ->type_name("SECONDS");
  add_size(app, kMemoryLimitFlag, options.memory_limit, 1_GiB, 1_MiB, kMostMemoryLimit,
           "Memory that reading data and tokenizer may take [a quarter of the machine]")
      ->type_name("SIZE");
  add_integer(app, "--compare-replicas", options.compare_replicas, 0, kMostSteps,
              "Compare weights and optimizer states that ranks have in copies, every N steps; "
              "0: never [100]");
  const auto rate = [&app](const char* flag, double& value, const char* text) {
    add_number(app, flag, value, 0, 1e3, text)->type_name("X");
  };
  rate("--learning-rate", rules.peak_learning_rate, "Learning rate after the warm-up [0.0003]");
  rate("--min-learning-rate", rules.least_learning_rate,
       "Learning rate at the end of the cosine decay [0.00003]");
  add_integer(app, "--warmup-steps", rules.warmup_steps, 0, kMostSteps,
              "Steps of linear warm-up [0]");
  add_integer(app, "--decay-steps", rules.decay_steps, 0, kMostSteps,
              "Step at which the cosine decay ends; 0: no decay [0]");
  rate("--weight-decay", rules.weight_decay, "Weight decay of matrices [0.1]");
  app.add_flag("--check-for-nan-in-grad", train.checks.nan,
               "Check each rank's gradients for NaN and infinity before the reduction");
  app.add_flag("--check-for-large-grads", train.checks.large,
               "Check each rank's gradients for norms above 10 times the largest of the first 100");
  // Tokens have at most 32 bits, with a sign or without.
  add_integer(app, "--ignored-token", train.ignored_token, std::numeric_limits<std::int32_t>::min(),
              std::numeric_limits<std::uint32_t>::max(),
              "Target token that does not count in the loss [none]");
  rate("--clip-norm", rules.clip_norm,
       "Largest gradient norm; longer gradients are clipped; 0: no clipping [1]");
}

}  // namespace

void add_train(CLI::App& app, Verb& verb, const std::vector<std::string>& command) {
  CLI::App* const added =
      app.add_subcommand("train", "Train the transformer of a plan as the plan shards it");
  auto options = std::make_shared<RunOptions>();
  options->train.steps = 20;
  options->command = command;
  added->footer(kTrainFooter);
  add_files(*added, *options);
  add_checkpoints(*added, *options);
  add_numbers(*added, *options);
  add_devices(*added, options->device);
  show_first(*added,
             {"--data", "--ranks", "--steps", "--init-from", "--save-weights", "--report",
              "--metrics", "--checkpoint-dir", "--checkpoint-every", "--resume", "--timeout"});
  added->callback([&verb, options, added] {
    options->seed_given = added->count("--seed") > 0;
    verb = [options] { return run(*options); };
  });
}

}  // namespace shardwise::exec
