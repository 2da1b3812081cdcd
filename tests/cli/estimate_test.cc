#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "planner/spec/report/report_json.h"
#include "planner/spec/text/table.h"
#include "tests/cli/command.h"

namespace shardwise::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> llama_on_a_node(std::initializer_list<std::string> more) {
  std::vector<std::string> arguments = {
      "estimate",     "--model", "llama-3.1-8b",      "--cluster", "dgx-h100", "--engine", "fsdp2",
      "--zero-stage", "3",       "--sequence-length", "8192"};
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(Estimate, SaysFirstWhetherItFits) {
  const Outcome fits = shardwise(llama_on_a_node({"--recompute", "full"}));
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_THAT(fits.out.substr(0, fits.out.find('\n')),
              MatchesRegex("(Fits|At risk): [0-9.]+ GiB of 79.2 GiB .* a step"));
  const Outcome not_at_all = shardwise(llama_on_a_node({"--micro-batch-size", "16"}));
  EXPECT_EQ(not_at_all.exit_code, 1);
  EXPECT_THAT(not_at_all.out, testing::StartsWith("Does not fit: "));
}

TEST(Estimate, FitsEightyColumnsAndHasNoColourInAFile) {
  const Outcome outcome = shardwise(llama_on_a_node({"--recompute", "full", "--explain"}));
  std::istringstream lines(outcome.out);
  std::string line;
  while (std::getline(lines, line)) {
    EXPECT_LE(display_width(line), 80U) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("\x1b")));
}

// The activations of a micro-batch cross the link while a pass runs: what they need is their bytes
// over the shorter pass, whatever the link has.
TEST(Estimate, OffloadStatesTheBandwidthItRequires) {
  const Outcome text = shardwise(llama_on_a_node({"--offload-activations", "--explain"}));
  EXPECT_THAT(text.out, HasSubstr("offloaded activations are hidden at"));
  const Outcome outcome = shardwise(llama_on_a_node({"--offload-activations", "--json"}));
  const Result<StepReport> report = report_from_text(outcome.out, "stdout");
  ASSERT_TRUE(report.ok()) << to_string(report.problems());
  const bool stated = std::ranges::any_of(report->assumptions, [](const Assumption& each) {
    return each.id == "offload.bandwidth" && each.text.find("GB/s a GPU") != std::string::npos;
  });
  EXPECT_TRUE(stated);
  EXPECT_THAT(shardwise(llama_on_a_node({"--explain"})).out,
              Not(HasSubstr("offloaded activations are hidden at")));
}

TEST(Estimate, JsonIsAReportWithTheLedgerByPhaseAndCategory) {
  const Outcome outcome = shardwise(llama_on_a_node({"--micro-batch-size", "2", "--json"}));
  const Result<StepReport> report = report_from_text(outcome.out, "stdout");
  ASSERT_TRUE(report.ok()) << to_string(report.problems());
  EXPECT_EQ(report->model, "llama-3.1-8b");
  EXPECT_EQ(report->layout.dp_shard, 8);
  EXPECT_EQ(report->global_batch_size, 512);  // 4 Mi tokens, as plan and simulate take
  ASSERT_EQ(report->stages.size(), 1U);
  EXPECT_GT(report->stages[0][MemoryPhase::steady_forward_backward][MemoryCategory::activations],
            0);
  EXPECT_DOUBLE_EQ(report->step_time.value(), report->time.total().value());
}

// (D14) Copies to the host have an axis of their own, what is lost to pipeline messages is part of
// them, and the fullest GPU is that of the stage with the largest peak.
TEST(Estimate, PutsEachLossAndPeakInItsPlace) {
  const auto report_of = [](const std::vector<std::string>& words) {
    const Outcome outcome = shardwise(words);
    Result<StepReport> report = report_from_text(outcome.out, "stdout");
    EXPECT_TRUE(report.ok()) << outcome.err;
    return report ? *std::move(report) : StepReport{};
  };
  const auto exposed = [](const StepReport& report, std::string_view axis) {
    const auto at = std::ranges::find(report.by_axis, axis, &AxisTime::axis);
    return at == report.by_axis.end() ? Seconds(0) : at->exposed;
  };
  std::vector<std::string> words = {"estimate",
                                    "--model",
                                    "t5-base",
                                    "--cluster",
                                    "dgx-a100",
                                    "--gpus",
                                    "16",
                                    "--engine",
                                    "internevo",
                                    "--pp",
                                    "8",
                                    "--dp-shard",
                                    "2",
                                    "--zero-stage",
                                    "1",
                                    "--json",
                                    "--global-batch-size",
                                    "4"};
  const StepReport plain = report_of(words);
  words.emplace_back("--offload-activations");
  const StepReport offloaded = report_of(words);
  EXPECT_LT(exposed(offloaded, "dp"), 2 * exposed(plain, "dp"));  // was 48 times as much
  EXPECT_GT(exposed(offloaded, "offload").value(), 0.01);
  for (const AxisTime& axis : offloaded.by_axis) {
    EXPECT_TRUE(axis.axis != "pp" || axis.exposed <= axis.total);
  }
  const StepReport stages = report_of({"estimate",   "--model",
                                       "gemma-2-2b", "--cluster",
                                       "laptop",     "--gpus",
                                       "64",         "--engine",
                                       "deepspeed",  "--tp",
                                       "2",          "--pp",
                                       "8",          "--dp-shard",
                                       "4",          "--zero-stage",
                                       "1",          "--global-batch-size",
                                       "16",         "--sequence-length",
                                       "8192",       "--json"});
  Bytes most;
  for (const StageMemory& stage : stages.stages) most = std::max(most, stage.peak_total());
  EXPECT_EQ(stages.verdict.point, most);
  EXPECT_EQ(stages.stages[static_cast<std::size_t>(stages.verdict.worst_stage)].peak_total(), most);
}

TEST(Estimate, DerivesWhatIsNotGiven) {
  const auto layout = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"estimate",  "--model",  "llama-3.1-70b",
                                          "--cluster", "dgx-h100", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = shardwise(arguments);
    const Result<StepReport> report = report_from_text(outcome.out, "stdout");
    EXPECT_TRUE(report.ok()) << outcome.err;
    return report.ok() ? report->layout : Layout{};
  };
  EXPECT_EQ(layout({}).dp_shard, 8);  // one node
  EXPECT_EQ(layout({"--gpus", "64", "--tp", "8"}).dp_shard, 8);
  EXPECT_TRUE(layout({"--tp", "8"}).sequence_parallel);
  EXPECT_FALSE(layout({"--tp", "8", "--sequence-parallel", "false"}).sequence_parallel);
  EXPECT_EQ(layout({"--tp", "8", "--pp", "4"}).world(), 32);  // more than a node
  EXPECT_EQ(layout({"--dp-shard", "2"}).world(), 2);
}

// DeepSeek-V3 sends a token to 8 of 256 experts, which lie on 8 nodes here: 8 copies without, one a
// node that has any with deduplication (arXiv:2412.19437, section 3.2.2).
TEST(Estimate, SendsATokenOfDeepSeekToANodeOnceWhenAsked) {
  const auto exchange = [](const char* dispatch) {
    const Outcome outcome =
        shardwise({"estimate", "--model", "deepseek-v3", "--cluster", "dgx-h100", "--gpus", "128",
                   "--pp", "2", "--ep", "64", "--expert-dispatch", dispatch, "--json"});
    const Result<StepReport> report = report_from_text(outcome.out, "stdout");
    EXPECT_TRUE(report.ok()) << outcome.err;
    return report.ok() ? report->time : TimeParts{};
  };
  const TimeParts copies = exchange("all_to_all");
  const TimeParts once = exchange("deduplicated");
  EXPECT_LT(once.ep_exposed, copies.ep_exposed);
  EXPECT_GT(once.ep_exposed, 0.3 * copies.ep_exposed);
  EXPECT_EQ(once.forward, copies.forward);
}

TEST(Estimate, ExplainsEveryNumberAndListsProductsByWhatWasMeasured) {
  const Outcome outcome = shardwise(llama_on_a_node({"--explain"}));
  for (const char* words :
       {"steady_forward_backward.gathered_weights",
        "elements of the running layer x bytes of a weight", "docs/memory.md, Activations",
        "upper_bound", "time.forward", "time.dp_exposed", "mlp.gate ", "d input",
        "time.gemm.longest", "GEMM shapes found in measured tables", "GEMM shapes interpolated"}) {
    EXPECT_THAT(outcome.out, HasSubstr(words));
  }
}

TEST(Estimate, ReportsAllThatIsWrongAndRunsNothing) {
  const Outcome outcome = shardwise({"estimate", "--model", "lama-3.1-8b", "--cluster", "dgx-h100",
                                     "--engine", "fsdp3", "--precision", "bf61"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("did you mean llama-3.1-8b, "));
  EXPECT_THAT(outcome.err,
              HasSubstr("--engine: 'fsdp3' is not an engine\n    did you mean fsdp2?"));
  EXPECT_THAT(outcome.err, HasSubstr("command line: --precision: "));
  EXPECT_THAT(outcome.err, HasSubstr("3 problems, nothing was run"));
}

TEST(Estimate, RefusesAPrecisionThatTheGpuDoesNotComputeIn) {
  const auto on = [](const char* cluster, const char* precision) {
    return shardwise(
        {"estimate", "--model", "gpt2", "--cluster", cluster, "--precision", precision});
  };
  const Outcome volta = on("dgx-1-v100", "bf16");
  EXPECT_EQ(volta.exit_code, 2);
  EXPECT_THAT(
      volta.err,
      HasSubstr("--precision: v100-16-sxm has no arithmetic in bf16\n    use fp16 or fp32"));
  const Outcome ampere = on("dgx-a100", "fp8");
  EXPECT_EQ(ampere.exit_code, 2);
  EXPECT_THAT(ampere.err, HasSubstr("has no arithmetic in fp8\n    use bf16 or fp16 or fp32"));
}

TEST(Estimate, TakesFp16WhereTheGpuHasNoBf16) {
  const std::vector<std::string> words = {"estimate",  "--model",    "gpt2",
                                          "--cluster", "dgx-1-v100", "--json"};
  std::vector<std::string> asked = words;
  asked.insert(asked.end(), {"--precision", "fp16"});
  const Outcome usual = shardwise(words);
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  EXPECT_EQ(usual.out, shardwise(asked).out);
}

TEST(Estimate, RefusesNumbersThatAreNone) {
  for (const char* bad : {"-1", "0", "1e3x", "99999999999999999999", "ten"}) {
    const Outcome outcome = shardwise(llama_on_a_node({"--tp", bad}));
    EXPECT_EQ(outcome.exit_code, 2) << bad;
    EXPECT_THAT(outcome.err, HasSubstr("tp")) << bad;
    const Outcome gpus = shardwise(llama_on_a_node({"--gpus", bad}));
    EXPECT_EQ(gpus.exit_code, 2) << bad;
    EXPECT_THAT(gpus.err, HasSubstr("--gpus")) << bad;
  }
  EXPECT_EQ(shardwise(llama_on_a_node({"--gpus", "1000000000"})).exit_code, 2);
}

TEST(Estimate, AnchorsToAMeasuredRun) {
  const std::string file = testing::TempDir() + "measured.json";
  const Outcome plain = shardwise(llama_on_a_node({"--json"}));
  Result<StepReport> measured = report_from_text(plain.out, "stdout");
  ASSERT_TRUE(measured.ok());
  const Seconds predicted = measured->step_time;
  const auto anchored = [&](const StepReport& report) {
    std::ofstream(file) << report_json(report);
    return shardwise(llama_on_a_node({"--json", "--anchor", file}));
  };
  EXPECT_THAT(anchored(*measured).err, HasSubstr("/origin: is a prediction"));
  measured->origin = "measured";
  measured->step_time = 1.5 * predicted;
  measured->time.bubble += 0.5 * predicted;
  measured->timeline.emplace().stages.emplace_back();
  const Result<StepReport> report = report_from_text(anchored(*measured).out, "stdout");
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(report->step_time / predicted, 1.5, 1e-9);
  EXPECT_NEAR(report->time.anchored / predicted, 0.5, 1e-9);
  measured->model = "gpt2";
  EXPECT_THAT(anchored(*measured).err, HasSubstr("but the estimate is of llama-3.1-8b"));
  EXPECT_EQ(shardwise(llama_on_a_node({"--anchor", "no/such.json"})).exit_code, 2);
}

// It was "cp 1 -> 2", which nobody can type.
TEST(Estimate, NamesTheCheapestChangeByFlagsThatDoWhatItSays) {
  const Outcome misfit = shardwise(llama_on_a_node({"--micro-batch-size", "2"}));
  EXPECT_EQ(misfit.exit_code, 1);
  EXPECT_THAT(misfit.out, ContainsRegex("\nWith enough memory: [^ ]+ s a step\n"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      misfit.out, found, std::regex("Cheapest change: (--[^:]+): ([0-9.]+ GiB), ([^ ]+ s) ")))
      << misfit.out;
  std::vector<std::string> arguments = llama_on_a_node({"--micro-batch-size", "2"});
  std::istringstream flags(found[1]);
  for (std::string flag; flags >> flag;) arguments.push_back(flag);
  const Outcome fits = shardwise(arguments);
  EXPECT_EQ(fits.exit_code, 0) << fits.out << fits.err;
  EXPECT_THAT(fits.out, StartsWith("Fits: " + found[2].str()));
  EXPECT_THAT(fits.out, HasSubstr(found[3].str() + " a step\n"));
}

// A flag that changes nothing would otherwise pass for one that does.
TEST(Estimate, NamesFlagsWithoutEffect) {
  const auto named = [](const Outcome& outcome) {
    const std::size_t at = outcome.out.find("no effect here: ");
    if (at == std::string::npos) return std::string();
    return outcome.out.substr(at, outcome.out.find('\n', at) - at);
  };
  const auto said = [&](std::initializer_list<std::string> more) {
    return named(shardwise(llama_on_a_node(more)));
  };
  EXPECT_EQ(said({"--recompute", "selective"}), "no effect here: --recompute selective");
  EXPECT_EQ(said({"--expert-skew", "1"}), "no effect here: --expert-skew 1");
  EXPECT_EQ(said({"--recompute-interval", "2"}), "no effect here: --recompute-interval 2");
  EXPECT_EQ(said({"--cp-kind", "ulysses", "--fp8-recipe", "delayed"}),
            "no effect here: --fp8-recipe delayed, --cp-kind ulysses");
  EXPECT_EQ(said({"--recompute", "full", "--recompute-interval", "2"}), "");
  EXPECT_EQ(said({"--expert-overlap", "--grouped-gemm=false"}),
            "no effect here: --expert-overlap, --grouped-gemm=false");
  // Transformer Engine saves inputs of 8-bit products in 8 bits whatever is asked.
  const auto saved = [&](const char* engine, std::initializer_list<std::string> more) {
    std::vector<std::string> ask = {"estimate", "--model",  "llama-3.1-8b", "--cluster",
                                    "dgx-h100", "--engine", engine,         "--saved-linear-inputs",
                                    "fp8"};
    ask.insert(ask.end(), more.begin(), more.end());
    return named(shardwise(ask));
  };
  const std::string none = "no effect here: --saved-linear-inputs fp8";
  EXPECT_EQ(saved("megatron_ddp", {}), "");
  EXPECT_EQ(saved("megatron_ddp", {"--precision", "fp8"}), none);
  EXPECT_EQ(saved("fsdp2", {"--precision", "fp8"}), "");
  EXPECT_EQ(saved("megatron_ddp", {"--recompute", "full", "--saved-activation-inputs", "fp8"}),
            "no effect here: --saved-activation-inputs fp8, --saved-linear-inputs fp8");
  // A default that is spelt out is none.
  EXPECT_EQ(said({"--recompute", "none", "--tp", "1"}), "");
  const Outcome json = shardwise(llama_on_a_node({"--recompute", "selective", "--json"}));
  EXPECT_THAT(json.out, HasSubstr("\"id\": \"no_effect\""));
}

TEST(Estimate, HelpHasAnExample) {
  const Outcome outcome = shardwise({"estimate", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Examples\n  shardwise estimate --model llama-3.1-8b"));
  EXPECT_THAT(shardwise({"estimate", "--help-all"}).out, HasSubstr("--dp-shard"));
}

// Without --gpus, degrees that a node does not hold and degrees that do not divide it are treated
// alike: the fewest whole nodes that they divide, said on the screen.
TEST(Estimate, SaysHowManyGpusTheDegreesTake) {
  const auto said = [](std::vector<std::string> degrees) {
    std::vector<std::string> ask = {"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100"};
    ask.insert(ask.end(), degrees.begin(), degrees.end());
    return shardwise(ask).out;
  };
  const char* nodes = "GPUs, the fewest whole nodes that the degrees divide (--gpus)\n";
  EXPECT_THAT(said({"--pp", "16"}), HasSubstr(std::string("assumed: 16 ") + nodes));
  EXPECT_THAT(said({"--pp", "3"}), HasSubstr(std::string("assumed: 24 ") + nodes));
  EXPECT_THAT(said({"--dp-shard", "4"}),
              HasSubstr("assumed: 4 GPUs, the product of the degrees (--gpus)\n"));
  EXPECT_THAT(said({"--tp", "4"}), testing::Not(HasSubstr("--gpus")));
  EXPECT_THAT(said({"--pp", "3", "--gpus", "24"}), testing::Not(HasSubstr("--gpus")));
}

TEST(Estimate, NamesTheFlagThatWasTypedForModules) {
  const auto refused = [](const char* flag, const char* value) {
    return shardwise({"estimate", "--model", "llama-3.1-8b", "--cluster", "dgx-h100", flag, value})
        .err;
  };
  EXPECT_THAT(refused("--recompute-modules", "4"),
              StartsWith("command line: --recompute-modules: llama-3.1-8b has no operation '4'\n"
                         "    modules are core_attn, "));
  EXPECT_THAT(refused("--recompute-operations", "4"),
              StartsWith("command line: --recompute-operations: llama-3.1-8b has no operation"));
}

}  // namespace
}  // namespace shardwise::cli
