#include "planner/estimate/anchor.h"

#include <fmt/format.h>

#include "planner/spec/text/check.h"
#include "planner/spec/text/format.h"

namespace shardwise {

void anchor(StepReport& report, const StepReport& measured, Seconds predicted) {
  SHARDWISE_CHECK(predicted > Seconds(0), measured.model);
  const double share = measured.step_time / predicted - 1;
  const Seconds before = report.step_time;
  report.time.anchored = before * share;
  report.step_time = report.time.total();

  const double slower = report.step_time / before;
  report.mfu /= slower;
  report.mfu_non_causal /= slower;
  report.hfu /= slower;
  report.tokens_per_s /= slower;
  report.tokens_per_s_per_gpu /= slower;
  report.dollars_per_1e9_tokens *= slower;
  report.joules_per_token *= slower;

  const Layout& l = measured.layout;
  report.explanations.push_back(
      {"time.anchored", "predicted step x (measured / predicted - 1) of the anchor",
       fmt::format("{} x ({} / {} - 1) = {}", format_seconds(before),
                   format_seconds(measured.step_time), format_seconds(predicted),
                   format_seconds(report.time.anchored)),
       fmt::format("measured: {} on {} GPUs of {}, tp {} pp {} dp {}", measured.model, l.world(),
                   measured.cluster, l.tp, l.pp, l.dp())});
  report.assumptions.push_back(
      {"time.anchored",
       fmt::format("{:+.1f} % carried over from a measured step of another configuration",
                   share * 100),
       "docs/time.md, Step time"});
}

}  // namespace shardwise
