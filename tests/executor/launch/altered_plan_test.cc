// A plan.json is a file that people edit. Kernels take the shapes of tensors from the model's sizes
// and memory from its lists: a plan where those disagree is refused before anything is allocated.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "executor/launch/executable.h"
#include "planner/legality/legality.h"
#include "planner/model/hf_config.h"
#include "tests/executor/launch/plans.h"
#include "tests/support/command.h"
#include "tests/support/models.h"

namespace shardwise::exec::test {
namespace {

using shardwise::test::Outcome;
using shardwise::test::shardwise_run;
using testing::HasSubstr;
using testing::StartsWith;

Plan plan_of(const std::string& model) {
  Plan plan = tiny_plan("shardwise", 3, 2, 1);
  plan.model = *load_model(model);
  return plan;
}

/// Runs `use` with every number below `value` doubled, halved and zeroed, and every member and
/// element taken out, one change at a time.
void alter(JsonValue& value, const std::string& path,
           const std::function<void(const std::string&)>& use) {
  if (value.kind == JsonValue::Kind::integer) {
    const std::int64_t was = value.integer;
    for (const std::int64_t other : {2 * was, was / 2, std::int64_t{0}}) {
      if (other == was) continue;
      value.integer = other;
      value.number = static_cast<double>(other);
      use(path);
    }
    value.integer = was;
    value.number = static_cast<double>(was);
  }
  const auto without_each = [&](auto& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto whole = parts;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      use(path + "/" + std::to_string(i));
      parts = whole;
    }
  };
  without_each(value.members);
  without_each(value.elements);
  for (JsonMember& member : value.members) alter(member.value, path + "/" + member.key, use);
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    alter(value.elements[i], path + "/" + std::to_string(i), use);
  }
}

/// What the program asks before it runs a plan.
Diagnostics problems_of(const Plan& plan) {
  const Diagnostics problems =
      check_layout(plan.model, plan.cluster, plan.job, plan.engine, plan.layout);
  return problems.empty() ? cannot_execute(plan) : problems;
}

class AlteredPlan : public testing::TestWithParam<const char*> {};

TEST_P(AlteredPlan, IsRefusedWhereTheModelIsNoLongerTheOneOfItsSizes) {
  const Plan plan = plan_of(GetParam());
  ASSERT_EQ(to_string(problems_of(plan)), to_string(Diagnostics{}));
  JsonValue root = *parse_json(to_json(plan), "plan.json");
  int refused = 0;
  for (JsonMember& member : root.members) {
    if (member.key != "model") continue;
    alter(member.value, "", [&](const std::string& path) {
      const Result<Plan> read = plan_from_json(root, "plan.json");
      if (!read || !problems_of(*read).empty()) {
        ++refused;
        return;
      }
      // What it may still be: the same model, one with other numbers in its formulas, or one whose
      // positions, that no tensor has, end elsewhere.
      ModelSpec model = read->model;
      model.numerics = plan.model.numerics;
      model.source = plan.model.source;
      if (plan.model.model_type != "gpt2") {
        model.max_position_embeddings = plan.model.max_position_embeddings;
      }
      EXPECT_EQ(model, plan.model) << path;
    });
  }
  EXPECT_GT(refused, 200);
}

INSTANTIATE_TEST_SUITE_P(Models, AlteredPlan,
                         testing::Values("llama-tiny", "gpt2-tiny", "qwen3-tiny"));

// The edits that once ended the program by a signal, or trained on memory of other tensors.
TEST(AlteredPlan, EndsTheProgramAsBadInputThatNamesTheKey) {
  using Edit = std::function<void(ModelSpec&)>;
  const std::pair<Edit, const char*> edits[] = {
      {[](ModelSpec& m) { m.vocab_size = 65536; },
       "/model/kinds/0/parameters/0/shape/0: 256 contradicts vocab_size, which is 65536"},
      {[](ModelSpec& m) { m.kinds[0].parameters.clear(); }, "/model/kinds/0/parameters: is 0"},
      {[](ModelSpec& m) { m.kinds[1].parameters.erase(m.kinds[1].parameters.begin() + 5); },
       "/model/kinds/1/parameters"},
      {[](ModelSpec& m) { m.kinds[1].operations.erase(m.kinds[1].operations.begin() + 5); },
       "/model/kinds/1/operations/5/name: is "},
      {[](ModelSpec& m) { m.kinds[1].parameters[0].shape[0] *= 2; },
       "/model/kinds/1/parameters/0/shape/0: is 64, and the model that this family and these "
       "sizes give has 32"},
      {[](ModelSpec& m) {
         m.kinds[1].parameters[0].shape[0] *= 2;
         m.kinds[1].parameters[5].shape[0] /= 2;
       },
       "/model/kinds/1/parameters"}};
  const Scratch scratch;
  for (const auto& [edit, said] : edits) {
    Plan plan = tiny_plan("shardwise", 3, 2, 1);
    edit(plan.model);
    const std::string path = scratch.write(plan);
    const Outcome ended = shardwise_run({path, "--steps", "1"});
    EXPECT_EQ(ended.exit_code, 2) << said;
    EXPECT_THAT(ended.err, StartsWith(path + ":")) << said;
    EXPECT_THAT(ended.err, HasSubstr(said));
  }
}

}  // namespace
}  // namespace shardwise::exec::test
