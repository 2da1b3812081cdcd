// What an export writes: nothing that a plan says can run, or add a line.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "planner/engines/engines.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/configuration/yaml_text.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/kept_of.h"
#include "planner/export/write_configuration.h"
#include "planner/model/hf_config.h"
#include "planner/spec/json/json_line.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/plan/plan.h"
#include "planner/spec/text/utf8.h"
#include "tests/support/command.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Framework framework(const std::string& name) { return *load_framework(name, "--to"); }

std::string written(const std::string& name, const std::vector<KeptSetting>& kept) {
  return configuration_text(framework(name), {}, kept);
}

/// The words that bash makes of a list of arguments, as run.sh reads it.
std::vector<std::string> words_of(const std::string& arguments, const test::Scratch& scratch) {
  scratch.write_bytes("arguments.txt", arguments);
  const std::string script = scratch.write_bytes(
      "read.sh",
      "set -euo pipefail\ncd \"$(dirname \"$0\")\"\neval \"arguments=($(<arguments.txt))\"\n"
      "printf '%s\\0' \"${arguments[@]}\"\n");
  const test::Outcome outcome = test::run_program("bash", {script});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> words;
  for (std::size_t at = 0; at < outcome.out.size();) {
    const std::size_t end = outcome.out.find('\0', at);
    words.push_back(outcome.out.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

const std::vector<std::string>& hostile() {
  static const std::vector<std::string> kWords = {"$(touch PWNED)",
                                                  "`touch PWNED`",
                                                  ")\ntouch PWNED\n(",
                                                  "'; touch PWNED #",
                                                  "\"$(touch PWNED)",
                                                  "[$(touch PWNED)]=x",
                                                  "*",
                                                  "~",
                                                  "a b",
                                                  "",
                                                  "it's",
                                                  "\\",
                                                  "{a,b}",
                                                  "!x",
                                                  "\x1b[31mred",
                                                  "a\tb",
                                                  "#",
                                                  "é\xC2\x85",
                                                  "$HOME",
                                                  "x=$(touch PWNED)",
                                                  "a\\\nb"};
  return kWords;
}

TEST(WrittenArguments, AreInertWordsForBash) {
  const test::Scratch scratch;
  for (const std::string& word : hostile()) {
    const std::string text = written("megatron-lm", {{"--x", {word, "y"}, ""}});
    EXPECT_THAT(words_of(text, scratch), ElementsAre("--x", word, "y")) << text;
    EXPECT_FALSE(has_control_character(text.substr(0, text.size() - 1))) << text;
    EXPECT_FALSE(std::filesystem::exists(scratch.path("PWNED"))) << text;
  }
}

TEST(WrittenArguments, KeepTogetherWhatLooksLikeAFlag) {
  const test::Scratch scratch;
  const std::string text =
      written("megatron-lm", {{"--y", {"--dash"}, ""}, {"--z", {"-5", "2"}, ""}});
  EXPECT_EQ(text, "--y=--dash\n--z -5 2\n");
  EXPECT_THAT(words_of(text, scratch), ElementsAre("--y=--dash", "--z", "-5", "2"));
}

TEST(WrittenEnvironment, HasNoSingleQueueForFsdp) {
  const Framework megatron = framework("megatron-lm");
  Plan plan;
  plan.model = *load_model("llama-3.1-8b");
  plan.cluster = *with_gpus(*find_cluster("dgx-h100"), 8);
  plan.layout.dp_shard = 8;
  for (const auto& [engine, stage, wanted] :
       {std::tuple("megatron_fsdp", 3, "unset CUDA_DEVICE_MAX_CONNECTIONS\n"),
        std::tuple("fsdp2_in_megatron", 3, "unset CUDA_DEVICE_MAX_CONNECTIONS\n"),
        std::tuple("megatron_ddp", 1, "")}) {
    plan.engine = *find_engine(engine);
    plan.layout.zero_stage = static_cast<std::int8_t>(stage);
    plan.layout.fp32_gradients = plan.engine.fp32_gradients_default;
    const Result<Export> made = export_plan(plan, megatron);
    ASSERT_TRUE(made.ok()) << engine << to_string(made.problems());
    EXPECT_EQ(environment_text(made->settings), wanted) << engine;
  }
}

/// Values that a file may have, as JSON.
constexpr const char* kValues[] = {"[]",
                                   "{}",
                                   "null",
                                   "true",
                                   "\"true\"",
                                   "29500",
                                   "\"29500\"",
                                   "\"1.10\"",
                                   "1.1",
                                   "1.0",
                                   "\"-5\"",
                                   "\"Off\"",
                                   "\"y\"",
                                   "\"~\"",
                                   "\"\"",
                                   "\"auto\"",
                                   "[1, \"2\", true]",
                                   "[[1, 2], [3]]",
                                   "[{\"a\": 1}]",
                                   "[\"1\", \"a,b\"]",
                                   "1.0e-05",
                                   "5.0e+20",
                                   "-0.5",
                                   "\"5e8\"",
                                   "\"1_000\"",
                                   "\"a: b\"",
                                   "\"# no comment\"",
                                   "\"two\\nlines\\n\"",
                                   "\"it's\"",
                                   "\"a\\\\b\\\"c\"",
                                   "\"\\u0085\\u2028\\u001b\"",
                                   "\"é€😀\"",
                                   "\"2026-01-01\"",
                                   "\"0x1F\"",
                                   "\"null\"",
                                   "\" blank \"",
                                   "{\"b\": {\"c\": [null, {\"d\": \"no\"}]}, \"x y\": 2}",
                                   "9007199254740993",
                                   "\"[a]\"",
                                   "\"*a\""};

TEST(WrittenKeys, ReadBackAsTheSameValuesOfTheSameTypes) {
  for (const char* value : kValues) {
    const std::vector<KeptSetting> kept = {{"top", {}, value}, {"a.b.c", {}, value}};
    const std::string yaml = written("accelerate", kept);
    const Result<JsonValue> from_yaml = parse_yaml(yaml, "a.yaml");
    ASSERT_TRUE(from_yaml.ok()) << to_string(from_yaml.problems()) << yaml;
    const std::string json = written("deepspeed", kept);
    const Result<JsonValue> from_json = parse_json(json, "a.json");
    ASSERT_TRUE(from_json.ok()) << to_string(from_json.problems()) << json;
    const std::string wanted =
        std::string("{\"top\": ") + value + ", \"a\": {\"b\": {\"c\": " + value + "}}}";
    EXPECT_EQ(json_line(*from_yaml), wanted) << yaml;
    EXPECT_EQ(json_line(*from_json), wanted) << json;
  }
}

TEST(WrittenKeys, AddNoLine) {
  const std::string yaml = written("accelerate", {{"a\nmain_training_function: evil", {}, "1"},
                                                  {"b: c", {}, "2"},
                                                  {"/x.y/z", {}, "3"},
                                                  {"no", {}, "4"}});
  EXPECT_EQ(yaml, "\"a\\nmain_training_function: evil\": 1\n'b: c': 2\n'no': 4\nx.y:\n  z: 3\n");
}

Plan plan_with(const std::string& kept) {
  std::string text = *read_file("tests/golden/plan.json");
  text.insert(text.rfind('}') - 1, ",\n  \"kept\": " + kept);
  const Result<JsonValue> json = parse_json(text, "plan.json");
  EXPECT_TRUE(json.ok()) << text;
  const Result<Plan> plan = plan_from_json(*json, "plan.json");
  EXPECT_TRUE(plan.ok()) << (plan ? "" : to_string(plan.problems()));
  return plan ? *plan : Plan();
}

std::string kept_line(const std::string& framework, const std::string& settings) {
  return "{\"framework\": \"" + framework + "\", \"settings\": [" + settings + "]}";
}

TEST(KeptSettings, GoThroughAPlanWithTheirTypes) {
  for (const char* value : kValues) {
    const Plan plan = plan_with(
        kept_line("deepspeed", std::string("{\"name\": \"a.b\", \"value\": ") + value + "}"));
    ASSERT_EQ(plan.kept.settings.size(), 1U);
    EXPECT_EQ(plan.kept.settings[0].value, value);
    const Result<JsonValue> again = parse_json(to_json(plan), "plan.json");
    ASSERT_TRUE(again.ok()) << to_string(again.problems());
    EXPECT_EQ(plan_from_json(*again, "plan.json")->kept, plan.kept);
  }
}

TEST(KeptSettings, OfEarlierPlansHadWords) {
  const Plan plan = plan_with(
      kept_line("deepspeed", R"({"name": "a", "words": ["0.9", "x"], "list": true}, {"name": "b.c",
      "words": ["true"]}, {"name": "--lr", "words": ["1"]}, {"name": "d", "words": []})"));
  const std::vector<KeptSetting> wanted = {
      {"a", {}, "[0.9, \"x\"]"}, {"b.c", {}, "true"}, {"--lr", {"1"}, ""}, {"d", {}, "{}"}};
  EXPECT_EQ(plan.kept.settings, wanted);
}

std::string refused(const std::string& name, const std::vector<KeptSetting>& kept) {
  Plan plan = plan_with(kept_line(name, ""));
  plan.kept = {name, kept};
  const Diagnostics problems = check_kept(framework(name), plan);
  return problems.empty() ? "" : problems.front().path + ": " + problems.front().message;
}

TEST(KeptSettings, AreNotWhatThePlanDecides) {
  EXPECT_EQ(refused("megatron-lm", {{"--lr", {"1"}, ""}, {"--use-megatron-fsdp", {}, ""}}),
            "/kept/settings/1/name: use-megatron-fsdp is what the plan decides");
  EXPECT_THAT(refused("megatron-lm", {{"--pipeline-model-parallel-size", {"8"}, ""}}),
              HasSubstr("is what the plan decides"));
  EXPECT_EQ(refused("megatron-lm", {{"--tokenizer-type", {"x"}, ""}}), "");
  EXPECT_THAT(refused("megatron-lm", {{"lr", {}, "1"}}), HasSubstr("lr is no flag of Megatron-LM"));
  EXPECT_THAT(refused("torchtitan", {{"--parallelism.tensor-parallel-degree", {"2"}, ""}}),
              HasSubstr("is what the plan decides"));
  EXPECT_THAT(refused("torchtitan", {{"activation-checkpoint:none", {}, ""}}),
              HasSubstr("is what the plan decides"));
  EXPECT_EQ(refused("torchtitan", {{"--training.steps", {"2"}, ""}}), "");
  EXPECT_THAT(refused("deepspeed", {{"zero_optimization", {}, "3"}}),
              HasSubstr("is what the plan decides"));
  EXPECT_THAT(refused("deepspeed", {{"/zero_optimization/stage", {}, "3"}}),
              HasSubstr("zero_optimization.stage is what the plan decides"));
  EXPECT_THAT(refused("deepspeed", {{"--x", {"1"}, ""}}), HasSubstr("no key with a value"));
  EXPECT_EQ(refused("deepspeed", {{"optimizer.params.betas", {}, "[1]"}}), "");
}

AskedImport on_dgx(const std::string& model, const std::string& gpus = "") {
  AskedImport asked;
  asked.job.model = model;
  asked.job.cluster = "dgx-h100";
  asked.job.gpus = gpus;
  return asked;
}

/// What an import of a text keeps and an export of it writes.
std::string through(const std::string& text, const std::string& file, const AskedImport& asked) {
  const Result<Configuration> configuration = read_configuration(text, file);
  if (!configuration) return to_string(configuration.problems());
  const Result<Framework> known = framework_of(*configuration, "", "--from");
  if (!known) return to_string(known.problems());
  const Result<Import> made = import_plan(*known, *configuration, asked);
  if (!made) return to_string(made.problems());
  const Result<JsonValue> json = parse_json(to_json(made->plan), "plan.json");
  const Result<Plan> plan = plan_from_json(*json, "plan.json");
  if (!plan) return to_string(plan.problems());
  const Result<Export> again = export_plan(*plan, *known);
  if (!again) return to_string(again.problems());
  const Result<std::vector<ExportedFile>> files = export_folder(*again, *known, "{}");
  return files ? files->front().text : to_string(files.problems());
}

TEST(KeptSettings, OfMegatronsYamlAreWrittenAsFlags) {
  const std::string text = through(
      "language_model:\n  num_layers: 32\n  hidden_size: 4096\n  num_attention_heads: 32\n"
      "  my_size: 7\nmodel_parallel:\n  bf16: True\nmicro_batch_size: 1\nglobal_batch_size: 64\n"
      "seq_length: 4096\nlr: 0.0003\ntrain_iters: 1000\ndata_path: [a, 'b c']\nlog_x: true\n"
      "log_y: false\nload: null\nsplit: 949,50,1\n",
      "job.yaml", on_dgx("llama-3.1-8b", "8"));
  for (const char* line : {"\n--lr 0.0003\n", "\n--train-iters 1000\n", "\n--data-path a 'b c'\n",
                           "\n--log-x\n", "\n--my-size 7\n", "\n--split 949,50,1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  for (const char* absent : {"log-y", "load", "language"})
    EXPECT_THAT(text, Not(HasSubstr(absent)));
}

TEST(KeptSettings, OfAcceleratesYamlKeepTheirTypes) {
  const std::string text = through(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
      "num_machines: 1\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_reshard_after_forward: true\n  fsdp_activation_checkpointing: true\n"
      "tpu_env: []\nmain_process_port: '29500'\nrdzv_backend: \"true\"\ngpu_ids: null\n"
      "commands: [1, \"2\", true, {a: 1}]\nfp8_config:\n  deep:\n    deeper: \"1.10\"\n"
      "command_file: |\n  one\n  two\n",
      "a.yaml", [] {
        AskedImport asked = on_dgx("llama-3.1-8b");
        asked.job.texts = {{"sequence_length", "1024"}};
        asked.layout.texts = {{"micro_batch_size", "1"}};
        return asked;
      }());
  for (const char* line :
       {"\ntpu_env: []\n", "\nmain_process_port: '29500'\n", "\nrdzv_backend: 'true'\n",
        "\ngpu_ids: null\n", "\ncommands: [1, \"2\", true, {\"a\": 1}]\n",
        "\nfp8_config:\n  deep:\n    deeper: '1.10'\n", "\ncommand_file: \"one\\ntwo\\n\"\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(KeptSettings, OfDeepSpeedKeepTheirTypes) {
  const std::string text = through(
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
          "bf16": {"enabled": true}, "zero_optimization": {"stage": 3},
          "a": [[1, 2], [3]], "b": [{"a": 1}], "c": {}, "d": ["1", "a,b"], "e": "12345",
          "f": null, "g": "auto", "h.i": {"/": 1.0}})",
      "ds_config.json", on_dgx("llama-3.1-8b", "16"));
  for (const char* line :
       {"\"a\": [[1, 2], [3]]", "\"b\": [{\"a\": 1}]", "\"c\": {}", "\"d\": [\"1\", \"a,b\"]",
        "\"e\": \"12345\"", "\"f\": null", "\"g\": \"auto\"", "\"h.i\": {\n    \"/\": 1.0"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(KeptSettings, AreRefusedAtImportWhereNoFlagHasSuchAName) {
  const std::string said = through(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --bf16 --micro-batch-size 1 \\\n"
      "  --seq-length 1024 '--x$(touch /tmp/PWNED)' 1\n",
      "run.sh", on_dgx("gpt2"));
  EXPECT_THAT(said, HasSubstr("run.sh:2:"));
  EXPECT_THAT(said, HasSubstr("\"--x$(touch /tmp/PWNED)\" is no flag"));
}

TEST(FormerExport, IsKnownByItsRunScript) {
  const std::string ours =
      "#!/bin/bash\n# Written by shardwise export: x\n# Files: run.sh notes.txt ../evil id_rsa "
      "ds_config.json\nset -e\n";
  EXPECT_THAT(files_of_former(ours), ElementsAre("run.sh", "notes.txt", "ds_config.json"));
  EXPECT_THAT(files_of_former("#!/bin/bash\n# Files: run.sh\n\n\n"), ElementsAre());
}

}  // namespace
}  // namespace shardwise
