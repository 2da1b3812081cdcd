// Texts of flags or of a form, as the job, the cluster and the engines they name.
#include "planner/question/subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/question/asked_engines.h"
#include "planner/question/field_texts.h"
#include "planner/question/flags.h"
#include "planner/spec/plan/problems_in_file.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

AskedJob llama_job() {
  AskedJob asked;
  asked.model = "llama-3.1-8b";
  asked.cluster = "dgx-h100";
  return asked;
}

std::vector<std::string> paths(const Diagnostics& problems) {
  std::vector<std::string> found;
  for (const Diagnostic& each : problems) found.push_back(each.path);
  return found;
}

TEST(Subject, TakesOneNodeTheUsualEngineAndTheGpusPrecision) {
  const Result<Subject> subject = read_subject(llama_job());
  ASSERT_TRUE(subject.ok());
  EXPECT_EQ(subject->model.name, "llama-3.1-8b");
  EXPECT_EQ(subject->cluster.gpus, 8);
  EXPECT_FALSE(subject->gpus_given);
  EXPECT_EQ(subject->engine.name, "megatron_ddp");
  EXPECT_EQ(subject->job.precision, DType::bf16);
  EXPECT_EQ(subject->job.global_batch_size, 0);
}

TEST(Subject, ReadsEveryKindOfText) {
  AskedJob asked = llama_job();
  asked.gpus = "64";
  asked.engine = "fsdp2";
  asked.texts = {{"sequence_length", "8192"},
                 {"held_back", "0.1"},
                 {"frozen_base", "true"},
                 {"precision", "fp32"},
                 {"recompute_operations", "mlp.up_proj,mlp.gate_proj"},
                 {"optimizer", ""}};
  const Result<Subject> subject = read_subject(asked);
  ASSERT_TRUE(subject.ok()) << to_string(subject.problems());
  EXPECT_EQ(subject->cluster.gpus, 64);
  EXPECT_TRUE(subject->gpus_given);
  EXPECT_EQ(subject->engine.name, "fsdp2");
  EXPECT_EQ(subject->job.sequence_length, 8192);
  EXPECT_EQ(subject->job.held_back, 0.1);
  EXPECT_TRUE(subject->job.frozen_base);
  EXPECT_EQ(subject->job.precision, DType::fp32);
  EXPECT_THAT(subject->job.recompute_operations, ElementsAre("mlp.up_proj", "mlp.gate_proj"));
}

TEST(Subject, TakesNoMoreTokensThanALearnedTableHasPositions) {
  AskedJob asked = llama_job();
  EXPECT_EQ(read_subject(asked)->job.sequence_length, 4096);
  asked.model = "gpt2";
  const Result<Subject> open = read_subject(asked);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(open->job.sequence_length, 1024);
  EXPECT_EQ(open->assumptions.front().id, "sequence.positions");
  asked.texts["sequence_length"] = "512";
  EXPECT_EQ(read_subject(asked)->job.sequence_length, 512);
  asked.texts["sequence_length"] = "1025";
  const Result<Subject> beyond = read_subject(asked);
  ASSERT_FALSE(beyond.ok());
  EXPECT_THAT(paths(beyond.problems()), ElementsAre("--sequence-length"));
}

TEST(Subject, ReportsAllProblemsAtOnce) {
  AskedJob asked = llama_job();
  asked.model = "llama-9";
  asked.gpus = "none";
  asked.engine = "fsdp9";
  asked.texts = {{"sequence_length", "-1"}, {"loss", "small"}};
  const Result<Subject> subject = read_subject(asked);
  ASSERT_FALSE(subject.ok());
  EXPECT_THAT(paths(subject.problems()),
              UnorderedElementsAre("--model", "--gpus", "--engine", "--sequence-length", "--loss"));
  for (const Diagnostic& each : subject.problems()) EXPECT_EQ(each.file, "command line");
}

// A form has fields, no flags; what is wrong with a file is said of the file.
TEST(Subject, SpeaksOfFieldsWhereAFormAsks) {
  AskedJob asked = llama_job();
  asked.texts = {{"global_batch_size", "0.5"}};
  Diagnostics problems = read_subject(asked).problems();
  problems.push_back({"mine.json", 3, 1, "/hidden_size", "is --odd", ""});
  problems.push_back(wrong_flag("--pp", "3, but --tp is 2", "use --pp=2"));
  const Diagnostics said = problems_in_form(problems, "what-if");
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[0].file, "what-if");
  EXPECT_EQ(said[0].path, "global_batch_size");
  EXPECT_EQ(to_string(said[1]), to_string(problems[1]));
  EXPECT_EQ(said[2].path, "pp");
  EXPECT_EQ(said[2].message, "3, but tp is 2");
  EXPECT_EQ(said[2].hint, "use pp 2");
}

TEST(Subject, ExpandsMegatronsModules) {
  AskedJob asked = llama_job();
  asked.texts = {{"recompute_modules", "mlp,core_attn"}};
  const Result<Subject> subject = read_subject(asked);
  ASSERT_TRUE(subject.ok()) << to_string(subject.problems());
  EXPECT_TRUE(subject->recompute_core_attention);
  const std::vector<std::string>& operations = subject->job.recompute_operations;
  EXPECT_THAT(operations, testing::IsSupersetOf({"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}));
  EXPECT_EQ(std::ranges::count(operations, "core_attn"), 0);
}

TEST(Subject, RefusesModulesThatTheModelLacks) {
  AskedJob asked = llama_job();
  asked.texts = {{"recompute_modules", "moe"}};
  const Result<Subject> subject = read_subject(asked);
  ASSERT_FALSE(subject.ok());
  EXPECT_EQ(subject.problems().front().path, "--recompute-modules");
  EXPECT_EQ(subject.problems().front().message, "llama-3.1-8b has no moe");
  EXPECT_THAT(subject.problems().front().hint, HasSubstr("mlp"));
}

TEST(AskedEngines, AreOneSeveralOrAllOfThem) {
  const auto names = [](const std::string& text) {
    std::vector<std::string> found;
    const std::vector<const EngineProfile*> engines = *read_engines(text);
    for (const EngineProfile* each : engines) found.push_back(each->name);
    return found;
  };
  EXPECT_THAT(names(""), ElementsAre("megatron_ddp"));
  EXPECT_THAT(names("fsdp2,megatron_ddp,fsdp2"), ElementsAre("fsdp2", "megatron_ddp"));
  EXPECT_EQ(names("all"), engine_names());
  const Result<std::vector<const EngineProfile*>> wrong = read_engines("fsdp22,none");
  ASSERT_FALSE(wrong.ok());
  ASSERT_EQ(wrong.problems().size(), 2U);
  EXPECT_EQ(wrong.problems().front().hint, "did you mean fsdp2?");
}

// Every field of the tables is one that the readers take.
TEST(FieldTexts, AreOfFieldsThatExist) {
  for (const FieldText& each : kJobTexts) {
    AskedJob asked = llama_job();
    asked.texts = {{each.field, "?"}};
    const Result<Subject> subject = read_subject(asked);
    ASSERT_FALSE(subject.ok()) << each.field;
    EXPECT_EQ(subject.problems().front().path, flag_of(each.field));
    EXPECT_THAT(subject.problems().front().message, testing::Not(HasSubstr("unknown")));
  }
}

}  // namespace
}  // namespace shardwise
