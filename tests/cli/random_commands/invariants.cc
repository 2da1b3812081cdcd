#include "tests/cli/random_commands/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

namespace shardwise::cli {
namespace {

using nlohmann::json;

constexpr double kRounding = 1e-9;

bool near(double a, double b, double relative) {
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b)) + 1e-15;
}

/// Differences of two times or of two predictions, and layers that are no layer: -1.
bool may_be_negative(const std::string& path) {
  static const std::set<std::string_view> kSigned = {"anchored_s", "layer", "closed_form_s",
                                                     "simulated_s"};
  return kSigned.contains(std::string_view(path).substr(path.rfind('/') + 1));
}

void check_numbers(const json& value, const std::string& path, Violations& found) {
  if (value.is_null()) {
    // nlohmann::json prints NaN and infinity as null.
    found.push_back(path + " is null: no number, or infinite");
  } else if (value.is_number()) {
    const double number = value.get<double>();
    if (!std::isfinite(number)) found.push_back(fmt::format("{} is {}", path, number));
    if (number < 0 && !may_be_negative(path)) {
      found.push_back(fmt::format("{} is negative: {}", path, number));
    }
  } else if (value.is_structured()) {
    for (const auto& [key, member] : value.items()) {
      check_numbers(member, path + "/" + key, found);
    }
  }
}

double sum_of(const json& object) {
  double sum = 0;
  for (const auto& [key, value] : object.items()) sum += value.get<double>();
  return sum;
}

void check_memory(const json& stages, Violations& found) {
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    std::int64_t peak = 0;
    for (const json& phase : stages[stage].at("phases")) {
      const std::string where =
          fmt::format("memory of stage {}, {}", stage, phase.at("phase").get<std::string>());
      std::int64_t sum = 0;
      for (const auto& [category, bytes] : phase.at("categories").items()) {
        sum += bytes.get<std::int64_t>();
      }
      const auto allocated = phase.at("allocated_bytes").get<std::int64_t>();
      const auto reserved = phase.at("reserved_bytes").get<std::int64_t>();
      const auto total = phase.at("total_bytes").get<std::int64_t>();
      if (sum != total) {
        found.push_back(fmt::format("{}: categories add up to {}, total is {}", where, sum, total));
      }
      if (allocated > reserved || reserved > total) {
        found.push_back(fmt::format("{}: allocated {}, reserved {}, total {} do not ascend", where,
                                    allocated, reserved, total));
      }
      peak = std::max(peak, total);
    }
    const auto said = stages[stage].at("peak_total_bytes").get<std::int64_t>();
    if (said != peak) {
      found.push_back(fmt::format("stage {}: peak {} where its phases have {}", stage, said, peak));
    }
  }
}

void check_verdict(const json& report, Violations& found) {
  const json& verdict = report.at("verdict");
  const auto point = verdict.at("point_bytes").get<std::int64_t>();
  const auto upper = verdict.at("upper_bytes").get<std::int64_t>();
  const auto usable = verdict.at("usable_bytes").get<std::int64_t>();
  const auto needed = verdict.at("needed_bytes").get<std::int64_t>();
  const bool host_has_room = verdict.value("host_lacks_bytes", std::int64_t{0}) == 0;
  const std::string expected = needed > usable || !host_has_room ? "does_not_fit"
                               : upper <= usable                 ? "fits"
                                                                 : "at_risk";
  if (verdict.at("fit") != expected || upper < point || point < needed) {
    found.push_back(fmt::format("verdict {} with {} needed, point {}, upper bound {}, usable {}",
                                verdict.at("fit").get<std::string>(), needed, point, upper,
                                usable));
  }
}

void check_links(const json& report, Violations& found) {
  if (!report.contains("timeline")) return;
  const double step = report.at("step_time_s");
  for (const json& stage : report.at("timeline").at("stages")) {
    for (const json& link : stage.at("links")) {
      const double used = link.at("utilisation");
      if (used > 1 + kRounding || link.at("busy_s").get<double>() > step * (1 + kRounding)) {
        found.push_back(fmt::format("link {} of stage {} is used {:.4f} of the step",
                                    link.at("tier").get<std::string>(),
                                    stage.at("stage").get<int>(), used));
      }
    }
  }
}

std::int64_t state_bytes(const json& stage) {
  for (const json& phase : stage.at("phases")) {
    if (phase.at("phase") != "steady_forward_backward") continue;
    const json& categories = phase.at("categories");
    std::int64_t sum = 0;
    for (const char* state : {"weights_bytes", "main_weights_bytes", "gradients_bytes",
                              "main_gradients_bytes", "optimizer_moments_bytes"}) {
      sum += categories.at(state).get<std::int64_t>();
    }
    return sum;
  }
  return 0;
}

}  // namespace

Violations outcome_violations(const Outcome& outcome) {
  Violations found;
  if (outcome.exit_code < 0 || outcome.exit_code > 2) {
    found.push_back(fmt::format("exit code {}: {}", outcome.exit_code, outcome.err.substr(0, 300)));
  }
  if (outcome.exit_code == 2) {
    if (!outcome.out.empty()) found.push_back("a refusal with something on standard output");
    if (outcome.err.empty()) found.push_back("a refusal without a word");
    if (std::count(outcome.err.begin(), outcome.err.end(), '\n') > 24) {
      found.push_back("a refusal of more than 24 lines: " + outcome.err.substr(0, 300));
    }
  }
  for (const char* sign : {"std::", "terminate", "nlohmann", "CLI::", "what()"}) {
    if (outcome.err.find(sign) != std::string::npos) {
      found.push_back("words of the code: " + outcome.err.substr(0, 300));
    }
  }
  return found;
}

Violations report_violations(const json& report) {
  Violations found;
  check_numbers(report, "", found);
  const double step = report.at("step_time_s");
  if (!(step > 0)) found.push_back(fmt::format("a step of {} s", step));
  const double parts = sum_of(report.at("time"));
  if (!near(parts, step, kRounding)) {
    found.push_back(fmt::format("parts add up to {} s, the step takes {} s", parts, step));
  }
  const double mfu = report.at("mfu");
  const double hfu = report.at("hfu");
  if (!(mfu > 0) || mfu > hfu * (1 + kRounding) || hfu > 1 + kRounding) {
    found.push_back(fmt::format("MFU {} and HFU {}", mfu, hfu));
  }
  const double tokens =
      report.at("global_batch_size").get<double>() * report.at("sequence_length").get<double>();
  if (!near(report.at("tokens_per_s").get<double>() * step, tokens, kRounding)) {
    found.push_back(fmt::format("{} tokens/s in a step of {} s with {} tokens",
                                report.at("tokens_per_s").get<double>(), step, tokens));
  }
  check_memory(report.at("memory"), found);
  check_verdict(report, found);
  check_links(report, found);
  return found;
}

Violations simulation_violations(const json& estimated, const json& simulated, bool by_kernel) {
  Violations found;
  const double step = estimated.at("step_time_s");
  const json& closed = simulated.at("closed_form");
  if (!near(closed.at("step_time_s").get<double>(), step, kRounding)) {
    found.push_back(fmt::format("estimate says {} s, the same beside a simulation {} s", step,
                                closed.at("step_time_s").get<double>()));
  }
  for (const char* part : {"memory", "num_microbatches", "model_flops"}) {
    if (simulated.at(part) == estimated.at(part)) continue;
    found.push_back(fmt::format("estimate and simulate differ in {}", part));
  }
  const json& alone = closed.at("mechanisms").at(0);
  const double by_model = alone.at("closed_form_s");
  const double on_clock = alone.at("simulated_s");
  if (!near(by_model, on_clock, by_kernel ? 0.05 : 0.01)) {
    found.push_back(
        fmt::format("every operation as if alone: {} s by the model, {} s on the clock, {:+.2f} %",
                    by_model, on_clock, 100 * (by_model / on_clock - 1)));
  }
  return found;
}

Violations sharding_violations(const json& lower, const json& higher) {
  Violations found;
  for (std::size_t stage = 0; stage < lower.at("memory").size(); ++stage) {
    const auto before = static_cast<double>(state_bytes(lower.at("memory")[stage]));
    const auto after = static_cast<double>(state_bytes(higher.at("memory")[stage]));
    if (after > before * 1.01 + 1048576) {
      found.push_back(fmt::format("ZeRO-{} has {} bytes of states on stage {}, ZeRO-{} {}",
                                  higher.at("layout").at("zero_stage").get<int>(), after, stage,
                                  lower.at("layout").at("zero_stage").get<int>(), before));
    }
  }
  return found;
}

Violations batch_violations(const json& smaller, const json& larger) {
  const double before = smaller.at("step_time_s");
  const double after = larger.at("step_time_s");
  if (after >= before * (1 - kRounding)) return {};
  return {fmt::format("{} sequences take {} s, {} take {} s",
                      smaller.at("global_batch_size").get<std::int64_t>(), before,
                      larger.at("global_batch_size").get<std::int64_t>(), after)};
}

Violations search_violations(const json& estimated, const json& found_by_search) {
  Violations found;
  const json& best = found_by_search.at("best");
  if (best.empty()) return found;
  const json& row = best.at(0);
  if (row.at("layout") != estimated.at("layout")) {
    return {"a search with every field locked found " + row.at("layout").dump()};
  }
  if (!near(row.at("step_time_s").get<double>(), estimated.at("step_time_s").get<double>(),
            kRounding)) {
    found.push_back(fmt::format("plan says {} s, estimate {} s",
                                row.at("step_time_s").get<double>(),
                                estimated.at("step_time_s").get<double>()));
  }
  if (row.at("memory_bytes") != estimated.at("verdict").at("point_bytes")) {
    found.push_back(fmt::format("plan says {} bytes, estimate {}",
                                row.at("memory_bytes").get<std::int64_t>(),
                                estimated.at("verdict").at("point_bytes").get<std::int64_t>()));
  }
  return found;
}

}  // namespace shardwise::cli
