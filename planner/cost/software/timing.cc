#include "planner/cost/software/timing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "planner/cost/software/engine_configs.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/check.h"

namespace shardwise {
namespace {

constexpr double kMostMicroseconds = 1e6;
constexpr double kMostSlowdown = 100;
constexpr double kMostInstructions = 1000;
// A normal distribution has half of its mass within this many standard deviations.
constexpr double kQuartile = 0.6744897501960817;

std::vector<std::string> words(ObjectReader& reader, std::string_view key) {
  std::vector<std::string> result;
  const JsonValue* list = reader.array(key);
  if (list == nullptr) return result;
  for (const JsonValue& each : list->elements) result.push_back(each.string);
  return result;
}

TimingFacts::Issue read_issue(ObjectReader& entry, ObjectReader& sources) {
  TimingFacts::Issue issue;
  issue.modules = entry.string("modules");
  issue.x86 = Seconds(entry.number("x86_us", 0, kMostMicroseconds) * 1e-6);
  issue.grace = Seconds(entry.number("grace_us", 0, kMostMicroseconds) * 1e-6);
  issue.assumed = entry.boolean("assumed");
  issue.source = sources.string("issue." + issue.modules);
  entry.reject_unknown();
  return issue;
}

void read_attention(ObjectReader attention, TimingFacts& facts) {
  facts.second_flash_on_hopper = attention.number("second_on_hopper", 1, kMostSlowdown);
  facts.first_flash_forward = attention.number("first_forward", 1, kMostSlowdown);
  facts.first_flash_backward = attention.number("first_backward", 1, kMostSlowdown);
  facts.deterministic_backward = attention.number("deterministic_backward", 1, kMostSlowdown);
  facts.dropout_forward = attention.number("dropout_forward_instructions", 0, kMostInstructions);
  facts.dropout_backward = attention.number("dropout_backward_instructions", 0, kMostInstructions);
  attention.reject_unknown();
}

TimingFacts::MemoryPasses read_memory_passes(ObjectReader passes) {
  const auto times = [&passes](std::string_view key) { return passes.number(key, 0, 100); };
  TimingFacts::MemoryPasses read;
  read.ring = times("ring");
  read.registered_gather = times("registered_gather");
  read.pairs = times("pairs");
  read.registered_pairs = times("registered_pairs");
  read.message = times("message");
  read.in_switch = times("in_switch");
  read.registered_in_switch = times("registered_in_switch");
  read.network_buffer = times("network_buffer");
  passes.reject_unknown();
  return read;
}

TimingFacts read_facts(ObjectReader& root) {
  TimingFacts facts;
  const auto nested = [&](std::string_view key) { return root.nested(key, *root.object(key)); };
  root.require_schema("shardwise.timing/1");
  ObjectReader sources = nested("sources");
  ObjectReader speed = nested("gpu_speed");
  const double ranges = speed.number("interquartile_ranges", 1, 10);
  facts.gpu_speed_deviation = speed.number("variation", 0, 1) / (ranges * 2 * kQuartile);
  facts.gpu_speed_source = sources.string("gpu_speed");
  facts.deterministic_source = sources.string("attention.deterministic_backward");
  facts.dropout_source = sources.string("attention.dropout");
  ObjectReader beside = nested("beside_compute");
  facts.sms_within_node = beside.number("sms_within_node", 0, 1000);
  facts.sms_across_nodes = beside.number("sms_across_nodes", 0, 1000);
  facts.persistent_architectures = words(beside, "persistent_architectures");
  facts.persistent_slowdown = beside.number("persistent_slowdown", 1, kMostSlowdown);
  ObjectReader registered = nested("registered_buffers");
  facts.registered_sms_within_node = registered.number("sms_within_node", 0, 1000);
  facts.registered_sms_across_nodes = registered.number("sms_across_nodes", 0, 1000);
  facts.registered_sms_in_network = registered.number("sms_in_network", 0, 1000);
  registered.reject_unknown();
  facts.memory_passes = read_memory_passes(nested("memory_passes"));
  const JsonValue* issue = root.array("issue");
  for (std::size_t i = 0; i < issue->elements.size(); ++i) {
    ObjectReader entry = root.nested("issue", i, issue->elements[i]);
    facts.issue.push_back(read_issue(entry, sources));
  }
  ObjectReader call = nested("collective");
  const auto host_time = [&](std::string_view key) {
    return Seconds(call.number(key, 0, kMostMicroseconds) * 1e-6);
  };
  facts.all_reduce_call = host_time("all_reduce_us");
  facts.all_gather_call = host_time("all_gather_us");
  facts.reduce_scatter_call = host_time("reduce_scatter_us");
  ObjectReader waits = nested("host_waits");
  facts.waits_for_messages = words(waits, "for_messages");
  facts.waits_for_norm = words(waits, "for_norm");
  waits.reject_unknown();
  facts.megatron_engines = words(root, "megatron_engines");
  facts.grace_gpus = words(root, "grace_gpus");
  read_attention(nested("attention"), facts);
  facts.host_adam_elements_per_s = root.number("host_adam_elements_per_s", 1, 1e15);
  root.reject_unknown();
  return facts;
}

TimingFacts built_in() {
  constexpr const char* kName = "timing.json";
  const Result<JsonValue> json = parse_json(timing_config(), kName);
  SHARDWISE_CHECK(json.ok(), kName);
  Diagnostics problems;
  ObjectReader root(*json, kName, "", problems);
  TimingFacts facts = read_facts(root);
  SHARDWISE_CHECK(problems.empty(), to_string(problems));
  return facts;
}

/// Quantile of the standard normal distribution for 0.5 <= p < 1, by Newton's method.
double normal_quantile(double p) {
  double x = 0;
  for (int i = 0; i < 60; ++i) {
    const double above = 0.5 * std::erfc(x / std::numbers::sqrt2) - (1 - p);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    const double step = above / density;
    x += std::min(step, 1.0);
    if (std::abs(step) < 1e-12) break;
  }
  return x;
}

}  // namespace

const TimingFacts& timing_facts() {
  static const TimingFacts kFacts = built_in();
  return kFacts;
}

bool has_megatron_modules(const EngineProfile& engine) {
  const std::vector<std::string>& engines = timing_facts().megatron_engines;
  return std::ranges::find(engines, engine.known_as()) != engines.end();
}

const TimingFacts::Issue& issue_facts(const EngineProfile& engine, Kernels kernels) {
  const bool megatron = kernels == Kernels::transformer_engine || has_megatron_modules(engine);
  const std::string_view modules = kernels == Kernels::compiled  ? "compiled"
                                   : kernels == Kernels::planned ? "planned"
                                   : megatron                    ? "megatron"
                                                                 : "torch";
  const std::vector<TimingFacts::Issue>& all = timing_facts().issue;
  const auto found = std::ranges::find(all, modules, &TimingFacts::Issue::modules);
  SHARDWISE_CHECK(found != all.end(), std::string(modules));
  return *found;
}

Seconds issue_time(const TimingFacts::Issue& facts, const GpuSpec& gpu) {
  const std::vector<std::string>& grace = timing_facts().grace_gpus;
  const bool on_grace = std::ranges::any_of(
      grace, [&](const std::string& begin) { return gpu.name.starts_with(begin); });
  return on_grace ? facts.grace : facts.x86;
}

double kernels_a_collective(CollectiveKind kind, const TimingFacts::Issue& facts) {
  if (facts.modules != "torch" && facts.modules != "megatron") return 1;
  const TimingFacts& all = timing_facts();
  const Seconds call = kind == CollectiveKind::all_reduce       ? all.all_reduce_call
                       : kind == CollectiveKind::all_gather     ? all.all_gather_call
                       : kind == CollectiveKind::reduce_scatter ? all.reduce_scatter_call
                                                                : facts.x86;
  return std::max(1.0, call / facts.x86);
}

double slowest_gpu_excess(std::int64_t gpus) {
  return timing_facts().gpu_speed_deviation * expected_maximum_of_normals(gpus);
}

double expected_maximum_of_normals(std::int64_t count) {
  if (count <= 1) return 0;
  const auto n = static_cast<double>(count);
  return normal_quantile((n - 0.375) / (n + 0.25));
}

}  // namespace shardwise
