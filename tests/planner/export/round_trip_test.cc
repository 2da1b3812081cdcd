// Export, then import, is the identity on what a framework can be told.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "planner/cost/layer/recompute_modules.h"
#include "planner/engines/engines.h"
#include "planner/export/check_configuration.h"
#include "planner/export/configuration/configuration.h"
#include "planner/export/export_folder.h"
#include "planner/export/export_plan.h"
#include "planner/export/facts/plan_facts.h"
#include "planner/export/framework/framework_reader.h"
#include "planner/export/import_plan.h"
#include "planner/export/write_configuration.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "planner/question/plan_texts.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/support/sanitized.h"
#include "tests/support/seed.h"

namespace shardwise {
namespace {

/// Fields that no framework has: assumptions of the planner.
const std::vector<std::string> kPlanning = {"tokens_total",          "held_back",
                                            "bytes_per_token_input", "expert_imbalance",
                                            "expert_skew",           "loss_chunk_rows"};

bool is_planning(const std::string& field) {
  return std::ranges::find(kPlanning, field) != kPlanning.end();
}

Result<Plan> asked_plan(const std::string& model, const std::string& engine, const Texts& job,
                        const Texts& layout, const std::string& gpus = "32") {
  const AskedJob asked{model, "dgx-h100", gpus, engine, job};
  Result<Subject> subject = read_subject(asked);
  if (!subject) return subject.problems();
  const Result<Layout> read = read_layout({layout}, *subject);
  if (!read) return read.problems();
  return Plan{subject->model, subject->cluster, subject->job, subject->engine, *read};
}

/// Draws what a plan may have; much of it is not legal.
class Drawn {
 public:
  explicit Drawn(std::uint32_t seed) : random_(seed) {}

  std::string one_of(const std::vector<std::string>& values) {
    return values[random_() % values.size()];
  }
  void maybe(Texts& texts, const char* field, const std::vector<std::string>& values) {
    if (random_() % one_in_ == 0) texts[field] = one_of(values);
  }
  /// What few frameworks have: drawn so often, each plan would have one of them.
  void rarely(Texts& texts, const char* field, const std::vector<std::string>& values) {
    if (random_() % (4 * one_in_) == 0) texts[field] = one_of(values);
  }
  /// Of every few fields one is drawn.
  void set_density(unsigned one_in) { one_in_ = one_in; }

  Texts job() {
    Texts texts = {{"global_batch_size", one_of({"64", "128", "256"})},
                   {"sequence_length", one_of({"1024", "4096"})}};
    maybe(texts, "precision", {"bf16", "fp32", "fp16", "fp8"});
    maybe(texts, "optimizer", {"adamw", "sgd", "sgd_momentum"});
    maybe(texts, "attention", {"flash", "cudnn", "materialised", "flash1"});
    texts["loss"] = one_of({"fused", "fused_fp32", "materialised", "chunked"});
    maybe(texts, "kernels", {"by_engine", "eager", "compiled", "transformer_engine"});
    maybe(texts, "moment_dtype", {"bf16", "fp32"});
    maybe(texts, "fused_gradient_accumulation", {"true", "false"});
    maybe(texts, "calculate_per_token_loss", {"true", "false"});
    maybe(texts, "deterministic", {"true", "false"});
    maybe(texts, "cuda_graphs", {"true", "false"});
    maybe(texts, "attention_mask_in_batch", {"true", "false"});
    maybe(texts, "dropout", {"0", "0.1"});
    maybe(texts, "tp_overlap", {"by_engine", "none", "pipelined"});
    maybe(texts, "adamw", {"fused", "fused", "foreach", "for_loop"});
    texts["rms_norm"] = one_of({"by_engine", "fused", "composite"});
    maybe(texts, "repeat_key_values", {"true", "false", "false"});
    maybe(texts, "fp8_recipe", {"delayed", "tensorwise", "block", "rowwise"});
    maybe(texts, "fp8_parameter_gather", {"true", "false"});
    rarely(texts, "main_dtype", {"bf16", "fp32"});
    rarely(texts, "reduce_scatter_with_fp32_accumulation", {"true", "false"});
    rarely(texts, "expert_dispatch", {"all_to_all", "deduplicated"});
    rarely(texts, "expert_overlap", {"true", "false"});
    rarely(texts, "grouped_gemm", {"true", "false"});
    rarely(texts, "saved_linear_inputs", {"as_computed", "fp8"});
    rarely(texts, "saved_activation_inputs", {"as_computed", "fp8"});
    rarely(texts, "saved_attention_outputs", {"as_computed", "fp8"});
    rarely(texts, "recompute_stops_early", {"true", "false"});
    rarely(texts, "frozen_base", {"true", "false"});
    return texts;
  }
  /// Modules of `model` that Megatron-Core runs again, as the operations that they are.
  void modules(Texts& texts, const std::string& model) {
    if (random_() % (4 * one_in_) != 0) return;
    std::vector<std::string> operations;
    for (const std::string& module : recompute_modules()) {
      if (random_() % 3 != 0) continue;
      for (std::string& each : operations_of_module(*load_model(model), module)) {
        operations.push_back(std::move(each));
      }
    }
    texts["recompute_operations"] = fmt::format("{}", fmt::join(operations, ","));
  }
  Texts layout() {
    Texts texts;
    maybe(texts, "tp", {"2", "4", "8"});
    maybe(texts, "pp", {"2", "4", "8"});
    maybe(texts, "cp", {"2"});
    maybe(texts, "ep", {"2", "4"});
    maybe(texts, "vpp", {"2", "3", "4"});
    maybe(texts, "dp_replicate", {"2"});
    maybe(texts, "zero_stage", {"0", "1", "2", "3"});
    maybe(texts, "micro_batch_size", {"1", "2"});
    maybe(texts, "recompute", {"none", "selective", "full"});
    maybe(texts, "recompute_interval", {"1", "2"});
    maybe(texts, "reshard_after_forward", {"true", "false"});
    maybe(texts, "reduce_every_microbatch", {"true", "false"});
    maybe(texts, "overlap_grad_reduce", {"true", "false"});
    maybe(texts, "overlap_param_gather", {"true", "false"});
    maybe(texts, "ddp_bucket_size", {"0", "0", "10000000"});
    maybe(texts, "ddp_pad_buckets_for_high_nccl_busbw", {"true", "false", "false"});
    maybe(texts, "double_buffer", {"true", "false"});
    maybe(texts, "fp32_gradients", {"true", "false"});
    maybe(texts, "sequence_parallel", {"true", "false"});
    maybe(texts, "outer_shards_optimizer", {"true", "false"});
    maybe(texts, "offload_optimizer", {"true", "false"});
    maybe(texts, "store_param_remainders", {"true", "false"});
    maybe(texts, "schedule", {"gpipe", "zb_v", "looped_bfs", "one_f_one_b"});
    maybe(texts, "cp_kind", {"ring", "all_gather", "ulysses"});
    rarely(texts, "etp", {"1", "2"});
    rarely(texts, "first_stage_layers", {"0", "2", "3"});
    rarely(texts, "last_stage_layers", {"0", "2", "3"});
    rarely(texts, "offload_activations", {"true", "false"});
    rarely(texts, "order",
           {"tp-cp-ep-dp_shard-dp_replicate-pp", "tp-cp-ep-pp-dp_shard-dp_replicate"});
    return texts;
  }

 private:
  std::mt19937 random_;
  unsigned one_in_ = 3;
};

/// The configuration and the environment of an export, as they are read.
Result<Configuration> read_again(const Export& made, const Framework& framework) {
  const Result<std::vector<ExportedFile>> files = export_folder(made, framework, "{}");
  if (!files) return files.problems();
  std::vector<Configuration> all;
  for (const ExportedFile& each : *files) {
    if (each.name != framework.file && each.name != "environment.sh") continue;
    Result<Configuration> read = read_configuration(each.text, each.name);
    if (!read) return read.problems();
    all.push_back(*std::move(read));
  }
  return joined(std::move(all));
}

/// What check says is refused of them.
std::string refused_of(const Export& made, const Framework& framework) {
  const Result<Configuration> configuration = read_again(made, framework);
  if (!configuration) return to_string(configuration.problems());
  const Result<std::vector<Finding>> findings =
      check_configuration(framework, *configuration, made.plan.layout.world(), made.plan.cluster);
  if (!findings) return to_string(findings.problems());
  std::string text;
  for (const Finding& each : *findings) {
    if (each.kind == CheckRule::Kind::refused) text += to_string(each.what) + "\n";
  }
  return text;
}

/// Imports the configuration and the environment of an export; what the script decides is stated.
Result<Import> import_again(const Export& made, const Framework& framework) {
  const Result<Configuration> configuration = read_again(made, framework);
  if (!configuration) return configuration.problems();
  const Result<Framework> known = framework_of(*configuration, "", "--from");
  if (!known) return known.problems();
  EXPECT_EQ(known->name, framework.name);
  AskedImport asked;
  const std::string gpus = std::to_string(made.plan.cluster.gpus);
  asked.job = {made.plan.model.name, "dgx-h100", gpus, "", {}};
  const Values facts = facts_of(made.plan);
  const Texts job = texts_of(made.plan.job);
  for (const ScriptField& each : framework.by_script) {
    Texts& texts = job.contains(each.field) ? asked.job.texts : asked.layout.texts;
    texts[each.field] = facts.at(each.field);
  }
  return import_plan(framework, *configuration, asked);
}

Texts all_fields(const Plan& plan) {
  Texts all = texts_of(plan.layout);
  for (const auto& [field, text] : texts_of(plan.job)) {
    if (!is_planning(field)) all[field] = text;
  }
  all["engine"] = plan.engine.name;
  return all;
}

/// "tp 2 instead of 4" for each field.
std::string differing(const Texts& found, const Texts& wanted) {
  std::string text;
  for (const auto& [field, value] : wanted) {
    if (found.at(field) != value) {
      text += fmt::format("{} {} instead of {}\n", field, found.at(field), value);
    }
  }
  return text;
}

class RoundTrip : public testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, IsTheIdentityOnWhatTheFrameworkCanBeTold) {
  const Result<Framework> framework = load_framework(GetParam(), "--to");
  ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
  Drawn drawn(test::seed_of(7, GetParam()));
  int exported = 0;
  int plain = 0;
  const int most = test::kSanitized ? 20 : 150;
  for (int i = 0; i < 4000 && exported < most; ++i) {
    const std::string model =
        drawn.one_of({"llama-3.1-8b", "llama-3.1-8b", "qwen3-0.6b", "gpt2", "qwen3-30b-a3b"});
    const std::string engine =
        i % 4 == 0 ? drawn.one_of(engine_names())
                   : framework->engines[static_cast<std::size_t>(i) % framework->engines.size()];
    drawn.set_density(std::array{3U, 16U, 64U}[static_cast<std::size_t>(i) % 3]);
    Texts job = drawn.job();
    drawn.modules(job, model);
    const Result<Plan> plan = asked_plan(model, engine, job, drawn.layout());
    if (!plan) continue;
    const Result<Export> made = export_plan(*plan, *framework);
    if (!made) continue;
    ++exported;
    const Result<Import> back = import_again(*made, *framework);
    const std::string text = configuration_text(*framework, made->settings, {});
    EXPECT_EQ(refused_of(*made, *framework), "") << text;
    ASSERT_TRUE(back.ok()) << to_string(back.problems()) << text;
    EXPECT_EQ(differing(all_fields(back->plan), all_fields(made->plan)), "") << text;
    if (made->substitutions.empty()) {
      ++plain;
      Texts own = all_fields(*plan);
      for (const auto& [field, value] : all_fields(made->plan)) {
        // Another word for the same thing, which Limit::because leaves empty.
        const bool silent =
            std::ranges::any_of(framework->limits, [&name = field](const Limit& limit) {
              return limit.field == name && limit.because.empty();
            });
        if (silent) continue;
        EXPECT_EQ(own[field], value) << field << "\n" << text;
      }
    }
  }
  if (test::kSanitized) return;
  EXPECT_GE(exported, 80);
  EXPECT_GE(plain, 1);
}

INSTANTIATE_TEST_SUITE_P(Frameworks, RoundTrip, testing::ValuesIn(framework_names()),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// In fp32 there is one type of gradients, and one word for it.
TEST(RoundTripInFp32, LeavesTheGradientsAsThePlanHasThem) {
  for (const auto& [name, engine] : std::map<std::string, std::string>{
           {"deepspeed", "deepspeed"}, {"accelerate", "fsdp2"}, {"megatron-lm", "megatron_ddp"}}) {
    const Result<Framework> framework = load_framework(name, "--to");
    ASSERT_TRUE(framework.ok()) << to_string(framework.problems());
    const Result<Plan> plan =
        asked_plan("gpt2", engine, {{"precision", "fp32"}, {"global_batch_size", "64"}}, {});
    ASSERT_TRUE(plan.ok()) << to_string(plan.problems());
    const Result<Export> made = export_plan(*plan, *framework);
    ASSERT_TRUE(made.ok()) << to_string(made.problems());
    EXPECT_EQ(made->plan.layout.fp32_gradients, plan->layout.fp32_gradients) << name;
    const Result<Import> back = import_again(*made, *framework);
    ASSERT_TRUE(back.ok()) << to_string(back.problems());
    EXPECT_EQ(back->plan.layout.fp32_gradients, plan->layout.fp32_gradients) << name;
  }
}

/// What Megatron-LM is told of the stages of a plan, and that the plan follows from it again.
std::string stages_told(const std::string& model, const std::string& gpus, const Texts& layout) {
  const Result<Framework> framework = load_framework("megatron-lm", "--to");
  if (!framework) return to_string(framework.problems());
  const Result<Plan> plan =
      asked_plan(model, "megatron_ddp", {{"global_batch_size", "1536"}}, layout, gpus);
  if (!plan) return to_string(plan.problems());
  const Result<Export> made = export_plan(*plan, *framework);
  if (!made) return to_string(made.problems());
  std::string told = refused_of(*made, *framework);
  for (const WrittenSetting& each : made->settings) {
    const std::string& name = each.spec->name;
    const bool is_of_stages = name == "--num-virtual-stages-per-pipeline-rank" ||
                              name.find("-pipeline-num-layers") != std::string::npos ||
                              name == "--pipeline-model-parallel-layout";
    if (is_of_stages) told += (told.empty() ? "" : " ") + name + " " + each.value;
  }
  const Result<Import> back = import_again(*made, *framework);
  if (!back) return told + to_string(back.problems());
  return told + differing(all_fields(back->plan), all_fields(made->plan));
}

TEST(StagesOfMegatron, AreALayoutWhereLayersDoNotDivide) {
  const std::string layout = "--pipeline-model-parallel-layout ";
  // Of 128 chunks for 126 layers the first and the last have none.
  EXPECT_EQ(stages_told("llama-3.1-405b", "1024",
                        {{"tp", "8"}, {"pp", "32"}, {"vpp", "4"}, {"recompute", "full"}}),
            layout + "E|(t|)*126L");
  EXPECT_EQ(stages_told("deepseek-v2-lite", "64", {{"pp", "2"}}), layout + "Et*14|t*13L");
  EXPECT_EQ(stages_told("llama-3.1-70b", "96", {{"tp", "8"}, {"pp", "3"}}),
            layout + "Et*27|t*27|t*26L");
}

TEST(StagesOfMegatron, AreFlagsWhereTheySuffice) {
  EXPECT_EQ(stages_told("llama-3.1-8b", "32", {{"pp", "4"}}), "");
  EXPECT_EQ(stages_told("llama-3.1-8b", "32", {{"pp", "4"}, {"vpp", "2"}}),
            "--num-virtual-stages-per-pipeline-rank 2");
  EXPECT_EQ(stages_told("llama-3.1-8b", "32", {{"pp", "4"}, {"first_stage_layers", "5"}}),
            "--decoder-first-pipeline-num-layers 5");
  EXPECT_EQ(stages_told("llama-3.1-8b", "32", {{"pp", "4"}, {"first_stage_layers", "6"}}),
            "--pipeline-model-parallel-layout Et*6|(t*9|)*2t*8L");
}

/// The fields that a framework's file has a word for.
TEST_P(RoundTrip, AccountsForEveryFieldOfAPlan) {
  const Result<Framework> framework = load_framework(GetParam(), "--to");
  ASSERT_TRUE(framework.ok());
  std::map<std::string, bool> known;
  for (const SettingSpec& spec : framework->settings) known[spec.field] = true;
  for (const Limit& limit : framework->limits) known[limit.field] = true;
  for (const ScriptField& each : framework->by_script) known[each.field] = true;
  for (const Refusal& refusal : framework->refusals) {
    for (const Clause& clause : refusal.when) known[clause.name] = true;
  }
  for (const Choice& choice : framework->choices) {
    for (const Option& option : choice.options) {
      for (const Clause& clause : option.plan) known[clause.name] = true;
    }
  }
  // Said by others: modules, the batch of a rank, what is left of the GPUs.
  for (const char* field : {"dp_shard", "global_batch_size", "micro_batch_size"}) {
    known[field] = true;
  }
  Texts fields = texts_of(JobSpec());
  fields.merge(texts_of(Layout()));
  for (const auto& [field, text] : fields) {
    EXPECT_TRUE(is_planning(field) || known.contains(field)) << field;
  }
}

}  // namespace
}  // namespace shardwise
