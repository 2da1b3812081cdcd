#include "executor/status/rank_status.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/spec/json/reader.h"

namespace shardwise::exec {
namespace {

RankStatus some_rank() {
  RankStatus rank;
  rank.rank = 2;
  rank.host = "node\x1b[2J\"7";
  rank.process = 4711;
  rank.answer = Answer::silent;
  rank.heard_s = 12.25;
  rank.phase = Phase::training;
  rank.step = 7;
  rank.steps = 20;
  rank.since_s = 0.5;
  rank.streams = {{"compute", "fwd.layer1.mb0", "", "", "gather.layer1.mb0 (all_gather)", 1.5},
                  {"all_gather", "gather.layer1.mb0", "all_gather", "dp_shard", "", 1.25}};
  return rank;
}

JobStatus some_job() {
  JobStatus job;
  job.job = "00000000000000ab";
  job.user = 1000;
  job.process = 17;
  job.verb = "train";
  job.plan = "plan.json";
  job.folder = "/run1";
  job.launcher = 16;
  job.age_s = 3;
  job.ranks = {some_rank(), RankStatus()};
  return job;
}

TEST(RankStatus, ReadsWhatItWrote) {
  const std::string rank = json_of(some_rank());
  const auto read = read_rank_status(rank);
  ASSERT_TRUE(read);
  EXPECT_EQ(json_of(*read), rank);
  EXPECT_EQ(read->streams.at(1).axis, "dp_shard");
  EXPECT_EQ(read->host, some_rank().host);
  const std::string job = json_of(some_job());
  const auto read_job = read_job_status(job);
  ASSERT_TRUE(read_job);
  EXPECT_EQ(json_of(*read_job), job);
}

// A compromised rank, or a process that passes for one, may say anything.
TEST(RankStatus, RefusesTextsThatAreNone) {
  const std::string good = json_of(some_rank());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[]"), std::string(1000, '['),
        good.substr(0, good.size() / 2), with("\"step\": 7", "\"step\": -7"),
        with("\"step\": 7", "\"step\": 1e300"), with("\"training\"", "\"other\""),
        with("\"heard_s\": 12.25", "\"heard_s\": 1e999"), with("\"steps\"", "\"stepz\""),
        with("\"dp_shard\"", "\"\xff\"")}) {
    EXPECT_FALSE(read_rank_status(bad)) << bad;
    EXPECT_FALSE(read_job_status(bad)) << bad;
  }
  RankStatus many = some_rank();
  many.streams.resize(1000);
  EXPECT_FALSE(read_rank_status(json_of(many)));
}

TEST(JobStatus, AnswersWhereItsRanksDoOrHaveEnded) {
  JobStatus job = some_job();
  EXPECT_FALSE(job.all_answer());
  job.ranks[0].answer = Answer::over;
  EXPECT_TRUE(job.all_answer());
  job.ranks[0].answer = Answer::gone;
  EXPECT_FALSE(job.all_answer());
  job.ranks.clear();
  EXPECT_TRUE(job.all_answer());
  job.answers = false;
  EXPECT_FALSE(job.all_answer());
}

TEST(JobStatus, IsListedUnderItsSchema) {
  const Result<JsonValue> json = parse_json(json_of(std::vector{some_job()}), "test");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("schema")->string, "shardwise.status/1");
  EXPECT_EQ(json->find("jobs")->elements.at(0).find("ranks")->elements.size(), 2U);
}

}  // namespace
}  // namespace shardwise::exec
