#include "cli/questions.h"

#include <fmt/format.h>

#include "planner/spec/text/table.h"

namespace shardwise::cli {

std::string questions_text() {
  Table table({{"question", Align::left}, {"command", Align::left}});
  for (const Question& each : kQuestions) {
    table.row({std::string(each.text), fmt::format("shardwise {}", each.verb)});
  }
  return table.text(false) + "Each VERB --help has an example. shardwise --help lists all verbs.\n";
}

}  // namespace shardwise::cli
