#include "tests/planner/engines/goldens.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "planner/engines/engines.h"
#include "planner/legality/held_to.h"

namespace shardwise::test {
namespace {

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// What differs is listed there with the figure, so that a fix has to take it off the list:
// build/dev/bin/engine_goldens --known > tests/golden/engines/known_differences.json
TEST(EngineGoldens, AreMetButForTheDifferencesThatAreKnown) {
  EXPECT_EQ(known_differences(engine_goldens()),
            text_of("tests/golden/engines/known_differences.json"));
}

// The table is printed by build/dev/bin/engine_goldens.
TEST(EngineGoldens, AreInTheTableOfTheEnginesPage) {
  EXPECT_NE(text_of("docs/engines.md").find(table_of(engine_goldens())), std::string::npos)
      << table_of(engine_goldens());
}

TEST(EngineGoldens, HaveTheirLineInTheSectionOfTheEngine) {
  const std::string page = text_of("docs/engines.md");
  for (const EngineGoldens& each : engine_goldens()) {
    EXPECT_NE(page.find("\n\n" + line_of(each) + "\n\n"), std::string::npos) << line_of(each);
  }
}

// What `shardwise estimate` says in its assumptions.
TEST(EngineGoldens, AreOfTheVersionsThatAnEstimateNames) {
  const std::vector<EngineGoldens> goldens = engine_goldens();
  std::size_t held = 0;
  for (const std::string& name : engine_names()) held += held_to(*find_engine(name)) != nullptr;
  EXPECT_EQ(held, goldens.size());
  for (const EngineGoldens& each : goldens) {
    const HeldTo* said = held_to(*find_engine(each.engine));
    ASSERT_NE(said, nullptr) << each.engine;
    EXPECT_EQ(said->version, each.version);
    EXPECT_EQ(said->cases, static_cast<std::int64_t>(each.cases.size())) << each.engine;
  }
}

TEST(EngineGoldens, HaveEveryCaseOnce) {
  for (const EngineGoldens& goldens : engine_goldens()) {
    std::set<std::string> names;
    for (const EngineCase& golden : goldens.cases) {
      EXPECT_TRUE(names.insert(golden.name).second) << goldens.engine << " " << golden.name;
      EXPECT_GT(golden.ledger.size() + golden.lists.size(), 0U)
          << goldens.engine << " " << golden.name;
    }
  }
}

TEST(EngineGoldens, FindABucketThatIsMissingAndAByteTooMany) {
  const std::vector<EngineGoldens> goldens = engine_goldens();
  EngineCase golden = goldens.front().cases.front();
  for (const EngineGoldens& each : goldens) {
    if (each.engine == "megatron_ddp") golden = each.cases.front();
  }
  for (const EngineDifference& each : differences(golden)) EXPECT_TRUE(each.accepted);
  golden.ledger.front().second -= 1;
  golden.lists.front().second.pop_back();
  const std::vector<EngineDifference> found = differences(golden);
  EXPECT_FALSE(found.front().accepted);
  EXPECT_EQ(found.front().text, "+1 B");
  EXPECT_FALSE(found.back().accepted);
}

}  // namespace
}  // namespace shardwise::test
