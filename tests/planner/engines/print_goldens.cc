#include <cstdio>
#include <string>
#include <vector>

#include "tests/planner/engines/goldens.h"

// engine_goldens [--known] [FILE...]: prints the table of docs/engines.md and the line of each
// section; with --known what tests/golden/engines/known_differences.json must say. Of other files,
// as random_cases.py makes them, the same. Runs in the repository root.
int main(int count, char** words) {
  const std::vector<std::string> files(words + 1, words + count);
  const bool known = !files.empty() && files.front() == "--known";
  std::vector<shardwise::test::EngineGoldens> goldens;
  for (std::size_t i = known ? 1 : 0; i < files.size(); ++i) {
    goldens.push_back(shardwise::test::engine_goldens(files[i]));
  }
  if (goldens.empty()) goldens = shardwise::test::engine_goldens();
  std::fputs((known ? known_differences(goldens) : table_of(goldens)).c_str(), stdout);
  if (known) return 0;
  for (const auto& each : goldens) {
    std::printf("\n%s\n%s\n", each.engine.c_str(), line_of(each).c_str());
  }
  return 0;
}
