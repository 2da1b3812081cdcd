// A report is either refused or says, written again, the same.

#include "planner/spec/report/report_json.h"
#include "planner/spec/text/check.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwise;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto from_text = [](std::string_view t) { return report_from_text(t, "fuzz.json"); };
  const auto report = read_input(text, from_text);
  if (!report) return 0;
  const std::string once = report_json(*report);
  const auto again = read_input(std::string_view(once), from_text);
  SHARDWISE_CHECK(again.has_value(), once);
  SHARDWISE_CHECK(report_json(*again) == once, once);
  return 0;
}
