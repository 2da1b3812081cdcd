#include <fmt/format.h>

#include <string>
#include <string_view>

#include "gui/models/question/layout_text.h"
#include "gui/models/scaling/scaling_model.h"
#include "planner/spec/report/memory_fit.h"

namespace shardwise::view {
namespace {

/// In quotes, those inside doubled.
std::string in_quotes(std::string_view text) {
  std::string made = "\"";
  for (const char letter : text) {
    if (letter == '"') made += letter;
    made += letter;
  }
  made += '"';
  return made;
}

}  // namespace

std::string scaling_csv(const ScalingMap& map) {
  std::string csv =
      "model,sequence_length,global_batch_size,gpus,fit,step_s,mfu,tokens_per_s,"
      "cost_usd_per_1e9_tokens,memory_bytes,headroom,layout\n";
  for (std::size_t cell = 0; cell < map.cells.size(); ++cell) {
    const ScalingPoint& point = map.cells[cell];
    if (!point.known) continue;
    const ScalingRow& row = map.rows[cell / map.gpus.size()];
    csv += fmt::format("{},{},{},{}", in_quotes(row.model->name), row.job.sequence_length,
                       row.job.global_batch_size, point.gpus);
    if (point.layout) {
      csv += fmt::format(
          ",{},{},{},{},{},{},{},{}\n", name_of(point.at_risk ? Fit::at_risk : Fit::fits),
          point.time.value(), point.mfu, point.tokens_per_s, point.dollars_per_1e9_tokens,
          point.memory.value(), point.headroom, in_quotes(layout_text(*point.layout)));
    } else {
      csv += fmt::format(",{},,,,,,,{}\n", name_of(Fit::does_not_fit), in_quotes(point.why_none));
    }
  }
  return csv;
}

}  // namespace shardwise::view
