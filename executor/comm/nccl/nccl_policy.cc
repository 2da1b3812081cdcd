#include "executor/comm/nccl/nccl_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

namespace shardwise::exec {
namespace {

constexpr int kMostCtas = 64;  // of ncclConfig_t's CTAs. Source: NCCL user guide, ncclConfig_t
constexpr int kSharedGpuCtas = 2;
// Source: NCCL user guide, ncclConfig_t (CTAPolicy), NCCL_ALGO and NCCL_PROTO.
constexpr std::array<const char*, 3> kCtaPolicies = {"default", "efficiency", "zero"};
constexpr std::array<const char*, 7> kAlgorithms = {
    "ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
constexpr std::array<const char*, 3> kProtocols = {"simple", "ll", "ll128"};

bool read(const std::string& text, int& number) {
  const auto [end, broken] = std::from_chars(text.data(), text.data() + text.size(), number);
  return broken == std::errc() && end == text.data() + text.size() && number >= 0 &&
         number <= kMostCtas;
}

bool read(const std::string& text, bool& on) {
  on = text == "on";
  return on || text == "off";
}

/// \returns what would be right, empty when the value was read
std::string read_field(const std::string& name, const std::string& value, NcclPolicy& policy) {
  const auto number = [&](int& field) {
    return read(value, field) ? std::string() : fmt::format("0 (NCCL's choice) to {}", kMostCtas);
  };
  const auto flag = [&](bool& field) {
    return read(value, field) ? std::string() : std::string("on or off");
  };
  if (name == "min_ctas") return number(policy.min_ctas);
  if (name == "max_ctas") return number(policy.max_ctas);
  if (name == "separate_all_gather") return flag(policy.separate_all_gather);
  if (name == "register_buffers") return flag(policy.register_buffers);
  if (name == "symmetric_windows") return flag(policy.symmetric_windows);
  const auto word = [&](std::string& field, std::span<const char* const> words) {
    const bool known = std::ranges::find(words, value) != words.end();
    if (known) field = value;
    return known ? std::string() : fmt::format("{}", fmt::join(words, ", "));
  };
  if (name == "cta_policy") return word(policy.cta_policy, kCtaPolicies);
  if (name == "algorithm") return word(policy.algorithm, kAlgorithms);
  if (name == "protocol") return word(policy.protocol, kProtocols);
  return "min_ctas, max_ctas, separate_all_gather, register_buffers, symmetric_windows, "
         "cta_policy, "
         "algorithm, protocol";
}

const char* word(bool on) { return on ? "on" : "off"; }

}  // namespace

Result<NcclPolicy> parse_nccl_policy(const std::string& text) {
  NcclPolicy policy;
  Diagnostics problems;
  std::istringstream fields(text);
  for (std::string field; std::getline(fields, field, ',');) {
    const std::size_t equals = std::min(field.find('='), field.size());
    const std::string name = field.substr(0, equals);
    const std::string value = equals < field.size() ? field.substr(equals + 1) : "";
    const std::string hint = read_field(name, value, policy);
    if (!hint.empty()) {
      problems.push_back(
          {"command line", 0, 0, "--nccl", fmt::format("{} is not known", field), "use " + hint});
    }
  }
  if (policy.max_ctas > 0 && policy.min_ctas > policy.max_ctas) {
    problems.push_back(
        {"command line", 0, 0, "--nccl",
         fmt::format("min_ctas {} is more than max_ctas {}", policy.min_ctas, policy.max_ctas),
         "lower min_ctas or raise max_ctas"});
  }
  if (!problems.empty()) return problems;
  return policy;
}

std::string to_string(const NcclPolicy& policy) {
  std::string text = fmt::format(
      "min_ctas={},max_ctas={},separate_all_gather={},register_buffers={},symmetric_windows={}",
      policy.min_ctas, policy.max_ctas, word(policy.separate_all_gather),
      word(policy.register_buffers), word(policy.symmetric_windows));
  if (!policy.cta_policy.empty()) text += ",cta_policy=" + policy.cta_policy;
  if (!policy.algorithm.empty()) text += ",algorithm=" + policy.algorithm;
  if (!policy.protocol.empty()) text += ",protocol=" + policy.protocol;
  return text;
}

namespace {

/// What apply_environment() sets: graphs with collectives and collectives outside of graphs never
/// run at once. Source: NCCL user guide, NCCL_GRAPH_MIXING_SUPPORT.
constexpr const char* kMixing = "NCCL_GRAPH_MIXING_SUPPORT";
constexpr const char* kUnmixed = "NCCL_GRAPH_MIXING_SUPPORT=0";

/// Held by whoever reads or sets variables: setenv moves the list that another thread walks.
std::mutex& environment_turn() {
  static std::mutex turn;
  return turn;
}

}  // namespace

std::string nccl_environment() {
  const std::lock_guard lock(environment_turn());
  std::vector<std::string_view> found;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    if (text.starts_with("NCCL_") && text != kUnmixed) found.push_back(text);
  }
  std::ranges::sort(found);
  return fmt::format("{}", fmt::join(found, " "));
}

void apply_environment(const NcclPolicy& policy) {
  const std::lock_guard lock(environment_turn());
  setenv(kMixing, "0", 0);
  if (!policy.algorithm.empty()) setenv("NCCL_ALGO", policy.algorithm.c_str(), 1);
  if (!policy.protocol.empty()) setenv("NCCL_PROTO", policy.protocol.c_str(), 1);
}

void apply_shared_gpu(int rank, bool one_host) {
  const std::lock_guard lock(environment_turn());
  setenv("NCCL_HOSTID", fmt::format("shardwise-rank-{}", rank).c_str(), 1);
  setenv("NCCL_MNNVL_ENABLE", "0", 0);
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  if (one_host) setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

NcclPolicy policy_of_shared_gpu(const NcclPolicy& policy) {
  NcclPolicy few = policy;
  if (few.max_ctas == 0) few.max_ctas = std::max(kSharedGpuCtas, few.min_ctas);
  return few;
}

}  // namespace shardwise::exec
