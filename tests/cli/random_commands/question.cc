#include "tests/cli/random_commands/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

nlohmann::json listed(const std::string& kind) {
  const Outcome outcome = shardwise({"list", kind, "--json"});
  if (outcome.exit_code != 0) throw std::runtime_error("list " + kind + ": " + outcome.err);
  return nlohmann::json::parse(outcome.out).at("entries");
}

/// Draws with a generator whose numbers are the same with every standard library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : generator_(seed * 0x9E3779B97F4A7C15U + 1) {}

  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(limit));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  template <class Values>
  const auto& of(const Values& values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }
  std::string name(std::initializer_list<const char*> values) {
    return *(values.begin() + below(static_cast<std::int64_t>(values.size())));
  }

 private:
  std::mt19937_64 generator_;
};

/// What a question may use: what its engine and model have, or anything.
struct Limits {
  const KnownEngine& engine;
  bool routed;
  bool anything;

  bool may(const std::string& axis) const {
    const auto& has = engine.parallel;
    return anything || std::find(has.begin(), has.end(), axis) != has.end();
  }
};

/// A degree to take from what is left of the GPUs: 1 half of the time.
std::int64_t take(Dice& dice, bool may, std::int64_t& left,
                  std::initializer_list<std::int64_t> wanted) {
  if (!may || dice.one_in(2)) return 1;
  const std::int64_t degree = dice.of(wanted);
  if (left % degree != 0) return 1;
  left /= degree;
  return degree;
}

void draw_layout(Dice& dice, const Limits& limits, std::int64_t gpus,
                 std::map<std::string, std::string>& layout) {
  std::int64_t left = gpus;
  const std::int64_t tp = take(dice, limits.may("tp"), left, {2, 4, 8});
  const std::int64_t pp = take(dice, limits.may("pp"), left, {2, 4, 8});
  const std::int64_t cp = take(dice, limits.may("cp") && dice.one_in(2), left, {2, 4});
  const std::int64_t replicas = take(dice, dice.one_in(2), left, {2, 4});
  layout["tp"] = std::to_string(tp);
  layout["pp"] = std::to_string(pp);
  layout["cp"] = std::to_string(cp);
  layout["dp-replicate"] = std::to_string(replicas);
  layout["dp-shard"] = std::to_string(left);
  layout["micro-batch-size"] = std::to_string(dice.of({1, 1, 2, 4}));
  if (limits.anything ? dice.one_in(8) : limits.routed && limits.may("ep")) {
    layout["ep"] = std::to_string(std::min(left * tp, dice.of({2, 4, 8})));
  }
  if (limits.anything) {
    layout["zero-stage"] = std::to_string(dice.below(4));
  } else if (dice.one_in(2)) {
    layout["zero-stage"] = std::to_string(dice.of(limits.engine.zero_stages));
  }
  if (dice.one_in(3)) layout["recompute"] = dice.name({"none", "selective", "full"});
  if (pp > 1 && dice.one_in(6)) layout["vpp"] = std::to_string(dice.of({2, 4}));
  if (pp > 1 && limits.anything) {
    layout["schedule"] = dice.name(
        {"one_f_one_b", "gpipe", "looped_bfs", "zb_h1", "zb_h2", "zb_v", "dualpipe", "dualpipe_v"});
  } else if (pp > 1 && dice.one_in(2)) {
    layout["schedule"] = dice.of(limits.engine.schedules);
  }
  if (cp > 1 && dice.one_in(2)) layout["cp-kind"] = dice.name({"ring", "all_gather", "ulysses"});
  for (const char* field : {"reshard-after-forward", "reduce-every-microbatch", "fp32-gradients",
                            "overlap-grad-reduce", "overlap-param-gather"}) {
    if (dice.one_in(12)) layout[field] = dice.name({"true", "false"});
  }
  if (tp > 1 && dice.one_in(8)) layout["sequence-parallel"] = dice.name({"true", "false"});
  for (const char* field : {"offload-optimizer", "offload-activations", "double-buffer"}) {
    if (dice.one_in(24)) layout[field] = "true";
  }
  if (replicas > 1 && dice.one_in(8)) layout["outer-shards-optimizer"] = "true";
}

void draw_job(Dice& dice, std::int64_t ranks, std::int64_t micro_batch,
              std::map<std::string, std::string>& job) {
  job["sequence-length"] = std::to_string(dice.of({512, 1024, 2048, 2048, 4096, 8192, 16384}));
  job["global-batch-size"] =
      std::to_string(ranks * micro_batch * dice.of({1, 2, 4, 8, 8, 16, 17, 64}));
  if (dice.one_in(8)) job["precision"] = dice.name({"bf16", "fp16", "fp32", "fp8"});
  if (dice.one_in(8)) job["attention"] = dice.name({"flash", "flash1", "cudnn", "materialised"});
  if (dice.one_in(8)) job["loss"] = dice.name({"fused", "fused_fp32", "materialised", "chunked"});
  if (dice.one_in(8)) job["kernels"] = dice.name({"eager", "compiled", "transformer_engine"});
  if (dice.one_in(12)) job["tp-overlap"] = dice.name({"none", "backward", "pipelined"});
  if (dice.one_in(8)) job["optimizer"] = dice.name({"adamw", "sgd", "sgd_momentum"});
  if (dice.one_in(12)) job["moment-dtype"] = dice.name({"fp32", "bf16"});
  if (dice.one_in(24)) job["expert-dispatch"] = dice.name({"all_to_all", "deduplicated"});
  if (dice.one_in(24)) job["expert-imbalance"] = dice.name({"1.3", "2"});
  if (dice.one_in(12)) job["dropout"] = "0.1";
  for (const char* field : {"frozen-base", "cuda-graphs", "deterministic",
                            "reduce-scatter-with-fp32-accumulation", "calculate-per-token-loss"}) {
    if (dice.one_in(16)) job[field] = "true";
  }
  if (dice.one_in(12)) job["loss-chunk-rows"] = dice.name({"0", "1", "300", "4096"});
}

}  // namespace

Catalogue known_catalogue() {
  Catalogue known;
  for (const nlohmann::json& entry : listed("models")) {
    known.models.push_back(
        {entry.at("name"), entry.at("active_parameters") < entry.at("parameters")});
  }
  for (const nlohmann::json& entry : listed("clusters")) {
    known.clusters.push_back({entry.at("name"), entry.at("gpus_per_node")});
  }
  for (const nlohmann::json& entry : listed("engines")) {
    known.engines.push_back(
        {entry.at("name"), entry.at("zero_stages"), entry.at("parallel"), entry.at("schedules")});
  }
  return known;
}

std::vector<std::string> Question::command(const std::string& verb,
                                           const std::vector<std::string>& more) const {
  std::vector<std::string> words{verb};
  for (const auto* part : {&subject, &job, &layout}) {
    for (const auto& [flag, value] : *part) words.push_back(fmt::format("--{}={}", flag, value));
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Question draw_question(const Catalogue& catalogue, std::uint64_t seed) {
  Dice dice(seed);
  Question question;
  const KnownModel& model = dice.of(catalogue.models);
  const KnownCluster& cluster = dice.of(catalogue.clusters);
  const KnownEngine& engine = dice.of(catalogue.engines);
  const std::int64_t nodes = dice.one_in(3) ? 1 : dice.of({1, 2, 2, 4, 8, 16});
  const std::int64_t gpus = cluster.gpus_per_node * nodes;
  question.subject = {{"model", model.name},
                      {"cluster", cluster.name},
                      {"engine", engine.name},
                      {"gpus", std::to_string(gpus)}};
  draw_layout(dice, {engine, model.routed, dice.one_in(8)}, gpus, question.layout);
  const std::int64_t ranks =
      std::stoll(question.layout["dp-shard"]) * std::stoll(question.layout["dp-replicate"]);
  draw_job(dice, ranks, std::stoll(question.layout["micro-batch-size"]), question.job);
  return question;
}

}  // namespace shardwise::cli
