// What Megatron-LM is told of models whose blocks or routers are not its defaults.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/model/hf_config.h"
#include "planner/question/asked_layout.h"
#include "planner/question/subject.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/plan/plan.h"
#include "tests/support/scratch.h"

namespace shardwise {
namespace {

using testing::HasSubstr;
using testing::Not;

const Framework& megatron_table() {
  static const Framework made = *load_framework("megatron-lm", "--to");
  return made;
}

/// \param change  of the model
template <class Change>
Result<Export> told(const std::string& name, const Change& change) {
  const Result<ModelSpec> model = load_model(name);
  if (!model) return model.problems();
  const bool has_experts = model->num_experts > 0;
  Result<Subject> subject = read_subject({name, "dgx-h100", "64", "megatron_ddp", {}});
  if (!subject) return subject.problems();
  const Result<Layout> layout = read_layout({{{"ep", has_experts ? "4" : "1"}}}, *subject);
  if (!layout) return layout.problems();
  Plan plan{subject->model, subject->cluster, subject->job, subject->engine, *layout};
  change(plan.model);
  return export_plan(plan, megatron_table());
}

std::string arguments_of(const Result<Export>& made) {
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  if (!made) return "";
  const auto files = export_folder(*made, megatron_table(), "");
  EXPECT_TRUE(files.ok()) << to_string(files.problems());
  return files ? "\n" + files->front().text : "";
}

std::string told(const std::string& name) {
  return arguments_of(told(name, [](ModelSpec&) {}));
}

// Source: megatron/core/models/gpt/gpt_layer_specs.py:246, where --qk-layernorm makes the norms of
// latent attention too; norm_topk_prob, scoring_func, n_group, topk_group and routed_scaling_factor
// of the models' config.json.
TEST(MegatronExports, TellHowAModelOfDeepseekNormsAndRoutes) {
  const std::string lite = told("deepseek-v2-lite");
  EXPECT_THAT(lite, HasSubstr("\n--qk-layernorm\n"));
  EXPECT_THAT(lite, HasSubstr("\n--moe-router-pre-softmax\n"));
  EXPECT_THAT(lite, Not(HasSubstr("--moe-router-num-groups")));  // greedy, whatever n_group says
  EXPECT_THAT(told("qwen1.5-moe-a2.7b"), HasSubstr("\n--moe-router-pre-softmax\n"));
  const std::string third = told("deepseek-v3");
  EXPECT_THAT(third, HasSubstr("\n--moe-router-score-function sigmoid\n"));
  EXPECT_THAT(third, HasSubstr("\n--moe-router-enable-expert-bias\n"));
  EXPECT_THAT(third, HasSubstr("\n--moe-router-num-groups 8\n"));
  EXPECT_THAT(third, HasSubstr("\n--moe-router-group-topk 4\n"));
  EXPECT_THAT(third, HasSubstr("\n--moe-router-topk-scaling-factor 2.5\n"));
  EXPECT_THAT(third, Not(HasSubstr("--moe-router-pre-softmax")));
  const std::string second = told("deepseek-v2");
  EXPECT_THAT(second, HasSubstr("\n--moe-router-num-groups 8\n"));
  EXPECT_THAT(second, HasSubstr("\n--moe-router-group-topk 3\n"));
  EXPECT_THAT(second, HasSubstr("\n--moe-router-topk-scaling-factor 16\n"));
  EXPECT_THAT(told("mixtral-8x7b"), Not(HasSubstr("--moe-router-pre")));
  EXPECT_THAT(told("qwen3-30b-a3b"), Not(HasSubstr("--moe-router-pre")));
}

// The key says it, and not the family.
TEST(MegatronExports, RouteAsTheConfigurationOfTheModelSays) {
  const auto read = [](const std::string& name, const std::string& from, const std::string& to) {
    std::string text = test::bytes_of_file("configs/models/" + name + ".json");
    EXPECT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    const Result<ModelSpec> model = read_model(*parse_json(text, name), name, name);
    EXPECT_TRUE(model.ok()) << to_string(model.problems());
    return model ? model->router : RouterNumerics();
  };
  const std::string no = "\"norm_topk_prob\": false";
  const std::string yes = "\"norm_topk_prob\": true";
  EXPECT_TRUE(read("qwen1.5-moe-a2.7b", no, yes).norm_topk_prob);
  EXPECT_FALSE(read("qwen3-30b-a3b", yes, no).norm_topk_prob);
  EXPECT_FALSE(read("qwen3-30b-a3b", yes, "\"norm_topk_prob\": null").norm_topk_prob);
  const RouterNumerics flat = read("deepseek-v3", "\"n_group\": 8", "\"n_group\": 1");
  EXPECT_EQ(flat.n_group, 1);
  EXPECT_TRUE(flat.sigmoid);
  EXPECT_EQ(flat.routed_scaling_factor, 2.5);
  EXPECT_THAT(arguments_of(told("qwen3-30b-a3b",
                                [](ModelSpec& model) { model.router.norm_topk_prob = false; })),
              HasSubstr("\n--moe-router-pre-softmax\n"));
  const Result<Export> refused =
      told("deepseek-v3", [](ModelSpec& model) { model.router.norm_topk_prob = false; });
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(to_string(refused.problems()), HasSubstr("divides scores by sigmoid by their sum"));
}

TEST(MegatronExports, AreReadAsTheSamePlan) {
  for (const char* name : {"deepseek-v3", "deepseek-v2", "mistral-7b-v0.1"}) {
    const Result<Export> made = told(name, [](ModelSpec&) {});
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    const std::string text =
        "torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py " + arguments_of(made).substr(1);
    std::string line = text;
    for (char& each : line) each = each == '\n' ? ' ' : each;
    const Result<Configuration> job = read_configuration(line, "run.sh");
    ASSERT_TRUE(job.ok()) << to_string(job.problems());
    AskedImport asked;
    asked.job.cluster = "dgx-h100";
    asked.job.model = name;
    const Result<Import> again = import_plan(megatron_table(), *job, std::move(asked));
    ASSERT_TRUE(again.ok()) << to_string(again.problems());
    EXPECT_EQ(again->plan.layout, made->plan.layout) << name;
    EXPECT_TRUE(again->plan.model == made->plan.model) << name;
    for (const KeptSetting& each : again->plan.kept.settings) ADD_FAILURE() << each.name;
  }
}

// A window of 4,096 tokens is a token and 4,095 before it: transformers' sliding_window_overlay
// has q - window < k, Transformer Engine k >= q - window_size[0].
TEST(MegatronExports, TellTheWindowOfAttention) {
  EXPECT_THAT(told("mistral-7b-v0.1"), HasSubstr("\n--window-size 4095,0\n"));
  EXPECT_THAT(told("llama-3.1-8b"), Not(HasSubstr("--window-size")));
  for (const char* name : {"gpt-oss-20b", "gemma-2-9b"}) {
    const Result<Export> made = told(name, [](ModelSpec&) {});
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_THAT(to_string(made.problems()), HasSubstr("layers attend to a window")) << name;
  }
}

/// What export says of a command that has only these of what a job needs.
std::string missing(const std::string& flags) {
  const Result<Configuration> job = read_configuration(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --micro-batch-size 1 --global-batch-size 64 "
      "--seq-length 2048 --bf16 --use-distributed-optimizer " +
          flags,
      "run.sh");
  EXPECT_TRUE(job.ok());
  AskedImport asked;
  asked.job.model = "llama-3-8b";
  asked.job.cluster = "dgx-h100";
  const Framework& framework = megatron_table();
  const Result<Import> made = import_plan(framework, *job, std::move(asked));
  EXPECT_TRUE(made.ok()) << to_string(made.problems());
  const Result<Export> again = export_plan(made->plan, framework);
  EXPECT_TRUE(again.ok()) << to_string(again.problems());
  for (const std::string& note : export_notes(*again, framework)) {
    const std::size_t at = note.find(" is told no ");
    if (at != std::string::npos) return note.substr(at, note.find(':') - at);
  }
  return "";
}

// --train-iters beside --train-samples, or data beside --mock-data, is refused.
TEST(MegatronExports, AskForNothingThatTheCommandSaysOtherwise) {
  EXPECT_EQ(missing("--lr 1e-4 --save x --save-interval 10"),
            " is told no --tokenizer-type, --tokenizer-model, --data-path, --train-iters");
  EXPECT_EQ(missing("--lr 1e-4 --save x --save-interval 10 --train-samples 1000 --mock-data"),
            " is told no --tokenizer-type, --tokenizer-model");
  EXPECT_EQ(missing("--lr 1e-4 --save x --save-interval 10 --train-samples 1000 --mock-data "
                    "--tokenizer-type NullTokenizer"),
            "");
  EXPECT_EQ(missing("--lr 1e-4 --save x --save-interval 10 --train-iters 10 --data-args-path d "
                    "--tokenizer-type NullTokenizer"),
            "");
}

}  // namespace
}  // namespace shardwise
