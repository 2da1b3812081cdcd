#include "planner/export/facts/stage_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shardwise {
namespace {

using testing::HasSubstr;

std::string said_layout(const char* text, std::int64_t pp, std::int64_t layers) {
  const StageLayout made = read_stage_layout(text, pp, layers);
  if (!made.problem.empty()) return made.problem;
  return "vpp " + std::to_string(made.vpp) + " first " + std::to_string(made.first_stage_layers) +
         " last " + std::to_string(made.last_stage_layers);
}

TEST(StageLayout, GivesChunksWhereAllAreEqual) {
  EXPECT_EQ(said_layout("Et*8|t*8|t*8|t*8L", 2, 32), "vpp 2 first 0 last 0");
  EXPECT_EQ(said_layout("Et*8|t*8|t*8|t*8L", 4, 32), "vpp 1 first 0 last 0");
  EXPECT_EQ(said_layout("E,t,t|(tt|)*2,ttL", 4, 8), "vpp 1 first 0 last 0");
  EXPECT_EQ(said_layout("EttL", 1, 2), "vpp 1 first 0 last 0");
}

TEST(StageLayout, GivesLayersOfTheFirstAndTheLastStage) {
  EXPECT_EQ(said_layout("Et*4|t*28L", 2, 32), "vpp 1 first 4 last 0");
  EXPECT_EQ(said_layout("Et*7|(t*9|)*2t*7L", 4, 32), "vpp 1 first 7 last 7");
  EXPECT_EQ(said_layout("Et*8|(t*8|)*2t*6L", 4, 30), "vpp 1 first 0 last 6");
  // Chunks of stage 0 have one layer each, those of the others two.
  EXPECT_EQ(said_layout("Et|tt|tt|t|tt|ttL", 3, 10), "vpp 2 first 2 last 0");
}

TEST(StageLayout, GivesTheEvenSharesThatDoNotDivide) {
  EXPECT_EQ(said_layout("Et|tt|t|tL", 4, 5), "vpp 1 first 0 last 0");
  EXPECT_EQ(said_layout("E|(t|)*126L", 32, 126), "vpp 4 first 0 last 0");
  EXPECT_EQ(said_layout("Et*6|(t*9|)*2t*8L", 4, 32), "vpp 1 first 6 last 0");
}

TEST(StageLayout, TakesMultiTokenPredictionInTheLastChunk) {
  EXPECT_EQ(said_layout("Ett|ttmL", 2, 4), "vpp 1 first 0 last 0");
  EXPECT_THAT(said_layout("Ett|ttm|L", 3, 4), HasSubstr("in the last chunk"));
}

TEST(StageLayout, SaysWhyNoPlanHasIt) {
  EXPECT_EQ(said_layout("Et*4|t*9|t*10|t*9L", 2, 32),
            "chunks of stage 0 have 4 and 10 layers; a plan has equal chunks on a stage");
  EXPECT_EQ(said_layout("Et*2|t*2L", 2, 8), "4 layers, the model has 8");
  EXPECT_EQ(said_layout("Et|t|tL", 2, 3), "3 chunks are no multiple of 2 stages");
  EXPECT_THAT(said_layout("E|t*8L", 2, 8), HasSubstr("a plan has layers on each stage"));
  EXPECT_THAT(said_layout("Et|ttt|t|tL", 4, 6), HasSubstr("a plan has layers on each stage"));
  EXPECT_THAT(said_layout("tt|ttL", 2, 4), HasSubstr("an embedding (E) stands first"));
  EXPECT_EQ(said_layout("Ettx|ttL", 2, 4), "x is none of E, t, m and L");
  EXPECT_EQ(said_layout("Et*999999999999|tL", 2, 4), "more than 100000 layers");
  EXPECT_THAT(said_layout("", 1, 4), HasSubstr("an embedding (E) stands first"));
}

}  // namespace
}  // namespace shardwise
