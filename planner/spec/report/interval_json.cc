#include "planner/spec/report/memory_numbers.h"
#include "planner/spec/report/report_json.h"

namespace shardwise {
namespace {

/// \param ends  writes the ends of the interval
template <class Ends>
void write_interval(JsonWriter& json, std::string_view key, const ErrorInterval& each, Ends ends) {
  if (!each.known()) return;
  json.begin_object(key);
  ends(each);
  json.member("low_factor", each.low);
  json.member("high_factor", each.high);
  json.member("rows", each.rows);
  json.member("sources", each.sources);
  json.member("family", each.family);
  json.member("architecture", each.architecture);
  json.end_object();
}

}  // namespace

void write_intervals(JsonWriter& json, const StepReport& report, const ReportIntervals& known) {
  if (!known.any()) return;
  const auto of_memory = [&json](Bytes amount) {
    return [&json, amount](const ErrorInterval& each) {
      json.member("low_bytes", times(amount, each.low).value());
      json.member("high_bytes", times(amount, each.high).value());
    };
  };
  const auto of_time = [&](const ErrorInterval& each) {
    json.member("low_s", report.step_time.value() * each.low);
    json.member("high_s", report.step_time.value() * each.high);
  };
  const MemoryNumbers numbers = memory_numbers(report);
  json.begin_object("intervals");
  json.member("level", kIntervalLevel);
  write_interval(json, "step_time", known.step, of_time);
  write_interval(json, "allocated", known.allocated, of_memory(numbers.allocated));
  write_interval(json, "reserved", known.reserved, of_memory(numbers.reserved));
  write_interval(json, "nvidia_smi", known.nvidia_smi, of_memory(numbers.nvidia_smi));
  json.end_object();
}

}  // namespace shardwise
