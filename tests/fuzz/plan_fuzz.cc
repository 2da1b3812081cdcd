// A plan file is either refused or says, once written again, the same plan; and a legal plan has an
// answer whose numbers are numbers.

#include <fmt/format.h>

#include <cmath>

#include "planner/estimate/estimate.h"
#include "planner/legality/legality.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

namespace shardwise {
namespace {

Result<Plan> fuzzed_plan(const JsonValue& value) { return plan_from_json(value, "fuzz.json"); }

void check_identity(const Plan& plan) {
  const std::string text = to_json(plan);
  const Result<JsonValue> json = parse_json(text, "again.json");
  SHARDWISE_CHECK(json.ok(), to_string(json.problems()));
  const Result<Plan> again = fuzzed_plan(*json);
  SHARDWISE_CHECK(again.ok(), to_string(again.problems()));
  SHARDWISE_CHECK(to_json(*again) == text, text);
}

void check_answer(const Plan& plan) {
  const Diagnostics inexact = check_precision(plan.cluster, plan.job);
  if (!inexact.empty()) return check_messages(inexact);
  const Diagnostics illegal =
      check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  SHARDWISE_CHECK(
      illegal.empty() == is_legal(plan.model, plan.cluster, plan.job, plan.engine, plan.layout),
      to_string(illegal));
  if (!illegal.empty()) return check_messages(illegal);
  const Evaluation answer = evaluate(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  const double seconds = answer.step_time.value();
  SHARDWISE_CHECK(std::isfinite(seconds) && seconds > 0, fmt::format("{}", seconds));
  SHARDWISE_CHECK(
      answer.needed > Bytes(0) && answer.needed <= answer.point && answer.point <= answer.upper,
      fmt::format("{}, {} to {}", answer.needed.value(), answer.point.value(),
                  answer.upper.value()));
}

}  // namespace
}  // namespace shardwise

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::optional<JsonValue> value = parse_input(data, size);
  if (!value) return 0;
  const auto plan = read_input(*value, fuzzed_plan);
  if (!plan) return 0;
  check_identity(*plan);
  check_answer(*plan);
  return 0;
}
