#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/questions.h"
#include "planner/command/command_words.h"
#include "planner/engines/engines.h"
#include "planner/spec/text/flag_names.h"
#include "planner/spec/text/table.h"
#include "tests/cli/command.h"
#include "tests/cli/names_of_verbs.h"

namespace shardwise::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Command, PrintsItsVersion) {
  const Outcome outcome = shardwise({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("shardwise [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Command, HelpHasExamplesAndExitCodes) {
  const Outcome outcome = shardwise({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("shardwise plan --model"));
  EXPECT_THAT(outcome.out, HasSubstr("2 bad input or use"));
}

/// Lines that begin with a flag.
int flags_in(const std::string& help) {
  int flags = 0;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) flags += line.starts_with("  -") ? 1 : 0;
  return flags;
}

TEST(Command, HelpOfEveryVerbFitsATerminal) {
  for (const std::string& verb : names_of_verbs()) {
    for (const char* help : {"--help", "--help-all"}) {
      const Outcome outcome = shardwise({verb, help});
      if (outcome.exit_code == 2 && help == std::string("--help-all")) continue;  // has few flags
      EXPECT_EQ(outcome.exit_code, 0) << verb;
      std::istringstream lines(outcome.out);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(display_width(line), kHelpWidth) << verb << ": " << line;
      }
    }
  }
}

TEST(Command, HelpShowsTheFlagsPeopleUseAndHelpAllTheRest) {
  for (const std::string verb : {"estimate", "plan", "simulate", "size", "fit"}) {
    const std::string help = shardwise({verb, "--help"}).out;
    EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 40) << verb;
    EXPECT_LE(flags_in(help), 12) << verb;
    EXPECT_THAT(help, HasSubstr("Examples\n  shardwise ")) << verb;
    const std::string all = shardwise({verb, "--help-all"}).out;
    EXPECT_THAT(help, HasSubstr("All " + std::to_string(flags_in(all)) + " flags: shardwise " +
                                verb + " --help-all"));
    if (verb == "fit") continue;  // has no job
    for (const char* group : {"\nJob:\n", "\nKernels and numbers:\n", "\nExperts:\n"}) {
      EXPECT_THAT(all, HasSubstr(group)) << verb;
    }
  }
}

// Who types nothing else wants to know what there is to ask.
TEST(Command, AloneListsItsQuestions) {
  const Outcome outcome = shardwise({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), kHelpWidth);
  const std::vector<std::string> verbs = names_of_verbs();
  for (const Question& each : kQuestions) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string(each.text)));
    const std::string verb(each.verb.substr(0, each.verb.find(' ')));
    EXPECT_TRUE(verb == "view" || std::ranges::find(verbs, verb) != verbs.end()) << verb;
  }
}

TEST(Command, TakesHelpAsAVerb) {
  EXPECT_EQ(shardwise({"help"}).out, shardwise({"--help"}).out);
  EXPECT_EQ(shardwise({"help", "plan"}).out, shardwise({"plan", "--help"}).out);
}

// A suggestion that no verb takes would send people in circles.
TEST(Command, SuggestsOnlyFlagsThatSomeProgramHas) {
  std::string all;
  for (const std::string& verb : names_of_verbs()) {
    all += shardwise({verb, "--help"}).out + shardwise({verb, "--help-all"}).out;
  }
  // Of shardwise-run.
  for (const char* file : {"executor/launch/run_options.cc", "executor/launch/command.cc"}) {
    std::ifstream source(file);
    all += std::string(std::istreambuf_iterator<char>(source), {});
  }
  for (const FlagName& name : kFlagNames) {
    std::string_view ours = name.ours;
    while (!ours.empty()) {
      const std::string flag(ours.substr(0, ours.find_first_of(" =")));
      if (flag != "--version") {
        EXPECT_THAT(all, ContainsRegex(flag + "[^a-z-]")) << name.theirs;
      }
      const std::size_t next = ours.find(" or ");
      ours = next == std::string_view::npos ? "" : ours.substr(next + 4);
    }
  }
}

// By verb, what people type for a flag of another program, and what is suggested.
TEST(Command, SuggestsAFlagForTheNamesOfOtherPrograms) {
  const struct {
    const char* verb;
    const char* typed;
    const char* meant;
  } names[] = {{"estimate", "--dp-size", "did you mean --dp-shard or --dp-replicate?"},
               {"plan", "--dp-size", "did you mean --lock dp_shard=4 or --lock dp_replicate=4?"},
               {"simulate", "--tensor_model_parallel_world_size", "did you mean --tp?"},
               {"estimate", "--context_parallel_degree", "did you mean --cp?"},
               {"plan", "--expert-model-parallel-size", "did you mean --lock ep=4?"},
               {"plan", "--pipeline_parallel_degree", "did you mean --lock pp=4?"},
               {"size", "--per_device_train_batch_size", "have --micro-batch-size)"},
               {"size", "--train_batch_size", "did you mean --global-batch-size?"},
               {"size", "--max-seqlen", "did you mean --sequence-length?"},
               {"estimate", "--output-file", "have --output)"},
               {"plan", "--output-file", "did you mean --output?"},
               {"simulate", "--ds-config", "did you mean --engine deepspeed?"}};
  for (const auto& name : names) {
    const Outcome outcome = shardwise({name.verb, "--model", "gpt2", name.typed, "4"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(name.meant)) << name.verb << ' ' << name.typed;
  }
}

// A script whose variable is not set.
TEST(Command, RefusesAnEmptyValueOfAnyFlag) {
  for (const char* flag :
       {"--output", "--trace", "--svg", "--chakra", "--import", "--tp", "--gpus", "--engine"}) {
    const Outcome outcome =
        shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100", flag, ""});
    EXPECT_EQ(outcome.exit_code, 2) << flag;
    EXPECT_EQ(outcome.err, "shardwise: " + std::string(flag) +
                               " needs a value (see shardwise simulate --help)\n");
  }
}

TEST(Command, SaysWhichSchedulesHaveChunksOfTheirOwn) {
  const std::string help = shardwise({"simulate", "--help-all"}).out;
  EXPECT_THAT(help, HasSubstr("zb_v and dualpipe_v have"));
  const Outcome outcome =
      shardwise({"simulate", "--model", "gpt2", "--cluster", "dgx-h100", "--engine", "shardwise",
                 "--pp", "2", "--vpp", "2", "--schedule", "zb_v", "--global-batch-size", "16"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the schedule is zb_v, which has two of its own"));
}

TEST(List, NamesEveryKindOfTheCatalogue) {
  for (const auto& [kind, entry] :
       std::map<std::string, std::string>{{"models", "llama-3.1-8b"},
                                          {"clusters", "dgx-h100"},
                                          {"gpus", "mi300x"},
                                          {"collectives", "nvlink4-h100"},
                                          {"engines", "fsdp2"}}) {
    const Outcome text = shardwise({"list", kind});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.out, HasSubstr("\n" + entry + " "));
    const auto json = nlohmann::json::parse(shardwise({"list", kind, "--json"}).out);
    EXPECT_EQ(json["schema"], "shardwise.list/1");
    const std::string table = text.out.substr(0, text.out.find("\n\n"));  // the first
    const auto lines = std::ranges::count(table, '\n') + (table == text.out ? 0 : 1);
    EXPECT_EQ(json["entries"].size(), static_cast<std::size_t>(lines - 2));  // without the heading
  }
}

TEST(Command, SaysWhichModelAVariantIsOfAndNamesNoOtherArchitecture) {
  const auto refused = [](const char* model) {
    const Outcome outcome = shardwise({"estimate", "--model", model, "--cluster", "dgx-h100"});
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  for (const char* const model : {"google/gemma-3-27b-it", "gemma-3-27b-it"}) {
    EXPECT_THAT(refused(model),
                HasSubstr("did you mean gemma-3-27b? its variants have the same architecture\n"));
  }
  for (const char* const model : {"llama4", "llama-4-scout", "meta-llama/Llama-4-Scout"}) {
    EXPECT_THAT(refused(model), testing::Not(HasSubstr("did you mean")));
    EXPECT_THAT(refused(model), HasSubstr("give its config.json\n"));
  }
  EXPECT_THAT(refused("no/such/file.json"), HasSubstr("no/such/file.json: no such file"));
}

TEST(List, SaysWhatShardwiseRunExecutes) {
  const Outcome text = shardwise({"list", "engines"});
  EXPECT_THAT(text.out, testing::ContainsRegex("\nshardwise +0 1 2 3 +tp cp pp ep +data parallel"));
  EXPECT_THAT(text.out,
              HasSubstr("\nshardwise run trains on CPUs, and on NVIDIA GPUs (tried on one), with"));
  const auto json = nlohmann::json::parse(shardwise({"list", "engines", "--json"}).out);
  for (const auto& engine : json["entries"]) {
    EXPECT_EQ(engine["executed"].get<bool>(), engine.contains("executed_only_with"));
    if (engine["name"] == "fsdp2") {
      EXPECT_EQ(engine["executed_only_with"]["pp"], "1");
      EXPECT_EQ(engine["executed_only_with"]["tp"], "1");
    }
    if (engine["name"] != "shardwise") continue;
    EXPECT_EQ(engine["executed_only_with"]["cp"], "1");
    EXPECT_FALSE(engine["executed_only_with"].contains("tp"));
    EXPECT_FALSE(engine["executed_only_with"].contains("pp"));
  }
}

TEST(List, SaysWhichEnginesRunASchedule) {
  const Outcome text = shardwise({"list", "engines"});
  EXPECT_THAT(text.out, testing::ContainsRegex("\none_f_one_b +--vpp +every engine with pp\n"));
  std::string names;
  for (const std::string& name : engine_names()) {
    const EngineProfile& engine = *find_engine(name);
    const bool runs = std::ranges::count(engine.schedules, PipelineSchedule::zb_v) > 0;
    if (engine.pipeline && runs) names += " " + name;
  }
  EXPECT_THAT(text.out, testing::ContainsRegex("\nzb_v +2 +" + names.substr(1) + "\n"));
  const auto json = nlohmann::json::parse(shardwise({"list", "engines", "--json"}).out);
  for (const auto& engine : json["entries"]) {
    // As each engine is refused what it does not run.
    const bool runs = std::ranges::count(engine["schedules"], "zb_h2") > 0;
    const Outcome asked = shardwise({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100",
                                     "--pp", "2", "--schedule", "zb_h2", "--global-batch-size",
                                     "16", "--engine", engine["name"].get<std::string>()});
    EXPECT_EQ(asked.exit_code != 2, runs) << engine["name"] << asked.err;
  }
}

TEST(List, RefusesAnotherKind) {
  const Outcome outcome = shardwise({"list", "planets"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("planets"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

}  // namespace
}  // namespace shardwise::cli
