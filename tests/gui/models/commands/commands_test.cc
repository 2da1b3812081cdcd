#include "gui/models/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "planner/estimate/estimate.h"
#include "tests/gui/small_plan.h"
#include "tests/support/scratch.h"

namespace shardwise::view {
namespace {

class Commands : public testing::Test {
 protected:
  Commands() { session_.settle(); }
  std::string run(const std::string& line) {
    std::string problem = run_command(session_, line);
    session_.settle();
    return problem;
  }
  const AppState& state() const { return session_.state(); }
  Session session_{test::small_plan()};
};

TEST_F(Commands, HaveUniqueNamesAndKeysAndATextEach) {
  std::set<std::string_view> names;
  std::set<std::string_view> keys;
  for (const Command& each : commands()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_TRUE(each.key.empty() || keys.insert(each.key).second) << each.name << " " << each.key;
    EXPECT_FALSE(each.text.empty()) << each.name;
    EXPECT_EQ(find_command(each.name), &each);
  }
}

TEST_F(Commands, SayWhatIsWrong) {
  EXPECT_EQ(run("table.srt step"), "table.srt is no command (did you mean table.sort?)");
  EXPECT_EQ(run("view.explore now"), "view.explore takes nothing after it");
  EXPECT_EQ(run("layout.select 0"),
            "row: 0 is not an integer from 1 to " + std::to_string(state().shown.size()));
  EXPECT_EQ(run("question.set tp"), "tp needs a value, as tp 8");
  EXPECT_THAT(run("question.set tp 3"), testing::StartsWith("tp: use one of 1, 2"));
  EXPECT_THAT(run("question.set warp 9"), testing::StartsWith("warp is no field"));
}

TEST_F(Commands, ListTheWordsThatTheyTake) {
  EXPECT_THAT(run("table.sort colour"), testing::StartsWith("colour is no column: tp, cp, pp, "));
  EXPECT_THAT(run("table.columns tp colour"), testing::StartsWith("colour is no column: tp, "));
  EXPECT_THAT(run("panel.show why-not"), testing::HasSubstr("is no panel: what_if, explorer, "));
  EXPECT_THAT(run("question.lock"), testing::StartsWith("nothing is no field of a layout: tp, "));
  EXPECT_THAT(run("nonsense"), testing::StartsWith("nonsense is no command: "));
  EXPECT_THAT(run("nonsense"), testing::HasSubstr("compare.…, "));
  EXPECT_THAT(run("memory.everything"), testing::HasSubstr("memory.buffers"));
}

TEST_F(Commands, SelectARowOfTheTable) {
  EXPECT_EQ(run("layout.select 2"), "");
  EXPECT_EQ(state().selected, state().shown[1]);
  EXPECT_EQ(state().plan.layout, state().answer.rows[state().shown[1]].layout);
  EXPECT_EQ(state().report.step_time.value(),
            estimate(state().plan.model, state().plan.cluster, state().plan.job,
                     state().plan.engine, state().plan.layout)
                .step_time.value());
  EXPECT_EQ(run("layout.next"), "");
  EXPECT_EQ(state().selected, state().shown[2]);
  EXPECT_EQ(run("layout.previous"), "");
  EXPECT_EQ(run("layout.previous"), "");
  EXPECT_EQ(run("layout.previous"), "");
  EXPECT_EQ(state().selected, state().shown[0]);
}

TEST_F(Commands, SavePlanReadsBackAsTheSelectedOne) {
  const test::Scratch scratch;
  run("layout.select 3");
  EXPECT_EQ(run("export.plan " + scratch.path("p.json")), "");
  const Result<Plan> read = read_plan(scratch.path("p.json"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_json(*read), to_json(state().plan));
}

TEST_F(Commands, SaveCsvHasALineForEveryShownRow) {
  const test::Scratch scratch;
  run("table.filter tp:2");
  ASSERT_FALSE(state().shown.empty());
  EXPECT_EQ(run("export.csv " + scratch.path("rows.csv")), "");
  const std::string csv = test::bytes_of_file(scratch.path("rows.csv"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(csv, '\n')), state().shown.size() + 1);
  EXPECT_THAT(csv, testing::StartsWith("tp,cp,pp,"));
}

TEST_F(Commands, SaveSaysWhyAFileCannotBeWritten) {
  EXPECT_THAT(run("export.csv /no/such/folder/rows.csv"), testing::HasSubstr("/no/such/folder"));
  EXPECT_EQ(run("export.png"), "name a file, as explore.png");
}

TEST_F(Commands, HaveANameReadyForAFileThatTheySave) {
  AppState shown = state();
  const auto ready = [&](const char* name) { return ready_line(shown, *find_command(name)); };
  EXPECT_EQ(ready("export.plan"), "export.plan small-8-dgx-h100.plan.json");
  EXPECT_EQ(ready("timeline.rank"), "timeline.rank ");
  shown.plan.model.name = "../a b\x1b";
  EXPECT_EQ(ready("export.png"), "export.png _.-a-b--8-dgx-h100.png");
}

TEST_F(Commands, AreFoundByLettersOfTheirNameOrText) {
  const auto found = matching_commands("tabsort");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.front()->name, "table.sort");
  EXPECT_EQ(matching_commands("undo").front()->name, "question.undo");
  EXPECT_THAT(matching_commands("pin").front()->name, testing::EndsWith(".pin"));
  EXPECT_EQ(matching_commands("ctrl+z").front()->name, "question.undo");
  EXPECT_EQ(static_cast<std::ptrdiff_t>(matching_commands("").size()),
            std::ranges::count_if(commands(), [](const Command& c) { return !c.key.empty(); }));
  EXPECT_TRUE(matching_commands("xqzj").empty());
}

TEST_F(Commands, AreFoundByOtherWordsForThem) {
  const auto first = [](const char* typed) { return matching_commands(typed).front()->name; };
  for (const char* const word : {"html", "share", "send"}) EXPECT_EQ(first(word), "export.page");
  for (const char* const word : {"nic", "faster"}) EXPECT_EQ(first(word), "mesh.bandwidth");
  EXPECT_EQ(first("theme"), "view.light");
  EXPECT_EQ(first("exit"), "app.quit");
  const std::vector<const Command*> network = matching_commands("network");
  ASSERT_GE(network.size(), 2U);
  EXPECT_TRUE(std::ranges::any_of(std::span(network).first(2), [](const Command* each) {
    return each->name == "mesh.bandwidth";
  }));
}

}  // namespace
}  // namespace shardwise::view
