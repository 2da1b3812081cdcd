#include "answers/why_not_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "answers/answer_parts.h"
#include "answers/plan_words.h"
#include "planner/question/layout_words.h"
#include "planner/spec/report/memory_labels.h"
#include "planner/spec/text/format.h"
#include "planner/spec/text/signed_format.h"
#include "planner/spec/text/table.h"

namespace shardwise::sim {
namespace {

/// Parts of a step by how much they differ.
std::string difference_text(const StepReport& winner, const StepReport& other, bool colour) {
  Table table({{"", Align::left}, {"best"}, {"asked"}, {"difference"}});
  for (const TimeDifference& each : time_differences(winner, other)) {
    table.row({std::string(each.part->label), format_seconds(each.first),
               format_seconds(each.second), signed_seconds(each.more())});
  }
  table.rule();
  table.row({"step", format_seconds(winner.step_time), format_seconds(other.step_time),
             signed_seconds(other.step_time - winner.step_time)});
  return table.text(colour, 2);
}

}  // namespace

std::string why_not_text(const WhyNot& answer, const FieldValues& values, bool colour) {
  std::string line = why_not_words(answer, values);
  const std::string changed =
      "  " +
      wrap(in_words(differing_fields(answer.winner.layout, answer.other.layout)), kTextWidth - 2,
           2) +
      "\n\n";
  switch (answer.answer) {
    case WhyNot::Answer::illegal: {
      std::string text = paint(line, Tone::bad, colour) + " as a change of the best layout:\n";
      for (const Diagnostic& each : answer.reasons) {
        text += "  " + each.path + ": " + each.message +
                (each.hint.empty() ? "" : " (" + each.hint + ")") + "\n";
      }
      if (answer.reasons.empty()) {
        text += "  no valid layout of this space has these values (--space full has more)\n";
      }
      return text;
    }
    case WhyNot::Answer::does_not_fit: {
      Table table({{"", Align::left}, {"best"}, {"asked"}, {"more"}});
      const auto ledger = [](const StepReport& r) {
        return r.stages[static_cast<std::size_t>(r.verdict.worst_stage)][r.verdict.worst_phase];
      };
      for (const auto& [category, more] : memory_growth(answer.winner, answer.other)) {
        table.row({std::string(label_of(category)),
                   format_bytes(Bytes(ledger(answer.winner)[category])),
                   format_bytes(Bytes(ledger(answer.other)[category])), "+" + format_bytes(more)});
      }
      return paint(line, Tone::bad, colour) + "\n" + changed + table.text(colour, 2);
    }
    case WhyNot::Answer::slower:
      return paint(line, Tone::warning, colour) + "\n" + changed +
             difference_text(answer.winner, answer.other, colour);
    case WhyNot::Answer::best:
      return paint(line, Tone::good, colour) + "\n";
  }
  return line;
}

}  // namespace shardwise::sim
