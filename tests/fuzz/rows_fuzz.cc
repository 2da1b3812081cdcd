// Rows of measurements are either refused or come out in the order and with the lines of the file;
// each is then scored or skipped with a reason.

#include <fmt/format.h>

#include <cmath>

#include "planner/score/rows/row.h"
#include "planner/score/score.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rows = read_input(text, [](std::string_view t) { return read_rows(t, "fuzz.jsonl"); });
  if (!rows || rows->size() > 8) return 0;
  int line = 0;
  for (const Row& row : *rows) {
    SHARDWISE_CHECK(row.line > line, row.id);
    line = row.line;
  }
  const ScoreReport report = score(*rows);
  for (const ScoredFigure& figure : report.figures) {
    SHARDWISE_CHECK(std::isfinite(figure.predicted) && figure.predicted > 0,
                    fmt::format("{} of {}", figure.predicted, figure.id));
  }
  for (const SkippedRow& skipped : report.skipped) {
    SHARDWISE_CHECK(!skipped.reason.empty(), skipped.id);
  }
  return 0;
}
