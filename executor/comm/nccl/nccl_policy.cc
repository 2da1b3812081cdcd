#include "executor/comm/nccl/nccl_policy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace shardwise::exec {
namespace {

constexpr int kMostCtas = 64;  // of ncclConfig_t's CTAs. Source: NCCL user guide, ncclConfig_t

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
  if (name == "algorithm") {
    policy.algorithm = value;
    return {};
  }
  return "min_ctas, max_ctas, separate_all_gather, register_buffers, symmetric_windows, algorithm";
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
  if (!policy.algorithm.empty()) text += ",algorithm=" + policy.algorithm;
  return text;
}

void apply_environment(const NcclPolicy& policy) {
  if (!policy.algorithm.empty()) setenv("NCCL_ALGO", policy.algorithm.c_str(), 1);
}

void apply_shared_gpu(int rank) {
  setenv("NCCL_HOSTID", fmt::format("shardwise-rank-{}", rank).c_str(), 1);
}

}  // namespace shardwise::exec
