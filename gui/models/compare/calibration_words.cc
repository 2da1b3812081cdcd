#include "gui/models/compare/calibration_words.h"

#include <fmt/format.h>

#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"

namespace shardwise::view {

std::string remains_text(const CompareView& view, const Correction& correction) {
  if (view.origin != "simulated") return "";
  const Seconds simulated = view.predicted_step / (1 + correction.share());
  return fmt::format(
      "The factor is the run's {} over the step-time model's {}. It multiplies the simulated {} "
      "too, so {} remains. Operations and kinds below are not calibrated.",
      format_seconds(correction.measured.step_time), format_seconds(correction.predicted),
      format_seconds(simulated), signed_percent(view.relative()));
}

}  // namespace shardwise::view
