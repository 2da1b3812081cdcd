#include "planner/cost/layer/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/cost/layer/layer_parameters.h"
#include "planner/cost/layer/operation_memory.h"
#include "planner/engines/engines.h"
#include "planner/model/hf_config.h"
#include "planner/model/parameter_counts.h"
#include "planner/spec/json/reader.h"
#include "planner/spec/text/split.h"

namespace shardwise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const JsonValue& adapters_golden() {
  static const Result<JsonValue> file = read_json("tests/golden/adapters.json");
  EXPECT_TRUE(file.ok());
  return *file;
}

JobSpec frozen_job() {
  JobSpec job;
  job.frozen_base = true;
  return job;
}

/// Trained elements and tensors of all layers on one rank.
struct Trained {
  std::int64_t elements = 0;
  std::int64_t tensors = 0;
};
Trained trained(const ModelSpec& model) {
  Trained sum;
  for (const int kind : model.layers) {
    const LayerParameters p = layer_parameters(model.kinds[static_cast<std::size_t>(kind)],
                                               frozen_job(), *find_engine("fsdp1"), Layout());
    sum.elements += p.dense + p.routed;
    sum.tensors += p.tensors;
  }
  return sum;
}

TEST(Adapters, AreTheTensorsThatPeftAdds) {
  for (const JsonValue& row : adapters_golden().find("adapters")->elements) {
    ModelSpec model = *load_model(row.find("model")->string);
    AdapterChoice choice;
    choice.targets = split_at(row.find("targets")->string, ',');
    choice.rank = row.find("rank")->integer;
    EXPECT_THAT(add_adapters(model, choice), IsEmpty());
    const Trained sum = trained(model);
    EXPECT_EQ(sum.elements, row.find("elements")->integer) << model.name;
    EXPECT_EQ(sum.tensors, row.find("tensors")->integer) << model.name;
  }
}

TEST(Adapters, OfNarrowMatricesAreBesideTheBytesOfBitsandbytes) {
  for (const JsonValue& row : adapters_golden().find("packed")->elements) {
    const std::int64_t n = row.find("shape")->elements[0].integer;
    const std::int64_t k = row.find("shape")->elements[1].integer;
    ModelSpec model;
    LayerSpec& layer = model.kinds.emplace_back();
    layer.parameters.push_back({.name = "linear.weight", .shape = {n, k}});
    layer.operations.push_back({.name = "linear", .width = n, .k = k});
    AdapterChoice choice;
    choice.targets = {"linear"};
    const std::string& format = row.find("format")->string;
    choice.base = format == "int8"         ? BaseFormat::int8
                  : format == "nf4_double" ? BaseFormat::nf4_double
                                           : BaseFormat::nf4;
    add_adapters(model, choice);
    FrozenBytes bytes;
    for (const ParameterSpec& p : layer.parameters) {
      if (is_adapter(p)) continue;
      const FrozenBytes each = frozen_bytes(layer, p, p.elements(), 2);
      bytes.placed += each.placed;
      bytes.whole += each.whole;
    }
    EXPECT_EQ(bytes.placed, row.find("matrix_bytes")->integer);
    EXPECT_EQ(bytes.whole, row.find("beside_bytes")->integer);
  }
}

// Llama-3.1-8B's linear layers have 6,979,321,856 elements, embedding, head and norms
// 1,050,939,392.
TEST(Adapters, LeaveScalesWholeAndWhatIsNotInFourBitsInFp32UnlessItIsSharded) {
  ModelSpec model = *load_model("llama-3.1-8b");
  AdapterChoice choice;
  choice.targets = {"q_proj"};
  choice.base = BaseFormat::nf4;
  add_adapters(model, choice);
  const auto frozen = [&](Layout layout) {
    std::int64_t sum = 0;
    for (const int kind : model.layers) {
      sum += layer_parameters(model.kinds[static_cast<std::size_t>(kind)], frozen_job(),
                              *find_engine("fsdp1"), layout)
                 .frozen;
    }
    return sum;
  };
  constexpr std::int64_t kPacked = 6'979'321'856 / 4;  // in elements of two bytes
  constexpr std::int64_t kOthers = 1'050'939'392;
  EXPECT_EQ(frozen({}), kPacked + 2 * kOthers);
  EXPECT_EQ(frozen({.zero_stage = 3}), kPacked + kOthers);
}

TEST(Adapters, AreParametersAndWhatIsBesideAMatrixIsNot) {
  ModelSpec model = *load_model("llama-3.1-8b");
  AdapterChoice choice = {{"all-linear"}, 16, BaseFormat::nf4_double};
  add_adapters(model, choice);
  EXPECT_EQ(count_parameters(model).total, 8'030'261'248 + 41'943'040);
}

TEST(Adapters, AreReadBackFromTheModel) {
  const ModelSpec bare = *load_model("llama-3.1-8b");
  EXPECT_EQ(adapters_of(bare), std::nullopt);
  for (const BaseFormat base :
       {BaseFormat::as_computed, BaseFormat::nf4, BaseFormat::nf4_double, BaseFormat::int8}) {
    for (const auto& targets : {std::vector<std::string>{"all-linear"}, {"k_proj", "up_proj"}}) {
      ModelSpec model = bare;
      const AdapterChoice choice = {targets, 24, base};
      add_adapters(model, choice);
      EXPECT_EQ(adapters_of(model), choice);
      EXPECT_EQ(without_adapters(model), bare);
    }
  }
}

TEST(Adapters, OfNamesThatNoLinearLayerHasAreReturned) {
  ModelSpec model = *load_model("llama-3.1-8b");
  AdapterChoice choice;
  choice.targets = {"q_proj", "c_attn", "embed_tokens"};
  EXPECT_THAT(add_adapters(model, choice), ElementsAre("c_attn", "embed_tokens"));
}

// What autograd keeps of peft 0.21.2's Linear with dropout, by saved_tensors_hooks: the input after
// dropout, [tokens, in], and what lora_A makes, [tokens, rank], besides a mask, in the adapter's
// type.
TEST(Adapters, KeepTheirInputAfterDropoutAndWhatTheFirstMatrixMakes) {
  ModelSpec model = *load_model("llama-3.1-8b");
  AdapterChoice choice;
  choice.targets = {"down_proj"};
  choice.rank = 16;
  add_adapters(model, choice);
  JobSpec job = frozen_job();
  job.sequence_length = 1024;
  const LayerSpec& block = model.kinds[static_cast<std::size_t>(model.layers[1])];
  for (const DType dtype : {DType::bf16, DType::fp32}) {
    job.main_dtype = dtype;
    const std::int64_t bytes = bytes_of(dtype);
    for (const OperationMemory& m :
         operation_memories(model, block, job, *find_engine("fsdp1"), Layout())) {
      if (m.operation->kind != OpKind::gemm) continue;
      const bool down = m.operation->name == "mlp.down_proj";
      EXPECT_EQ(m.copies, down ? 1024 * (14336 * (bytes + 1) + 16 * bytes) : 0)
          << m.operation->name;
    }
  }
}

// bitsandbytes@0.50.2:bitsandbytes/autograd/_functions.py, MatMul8bitLt: ctx.tensors has the input
// though the matrix is frozen, and backward multiplies by a wide copy of the matrix.
TEST(Adapters, BesideMatricesOfInt8KeepTheInputsOfProductsAndWidenTheMatrices) {
  const auto products = [](BaseFormat base) {
    ModelSpec model = *load_model("llama-3.1-8b");
    AdapterChoice choice = {{"q_proj"}, 8, base};
    add_adapters(model, choice);
    JobSpec job = frozen_job();
    job.sequence_length = 1024;
    const LayerSpec& block = model.kinds[static_cast<std::size_t>(model.layers[1])];
    std::vector<OperationMemory> all;
    for (OperationMemory& m :
         operation_memories(model, block, job, *find_engine("fsdp1"), Layout())) {
      if (m.operation->kind != OpKind::gemm) continue;
      m.operation = nullptr;  // of a model that ends here
      all.push_back(m);
    }
    return all;
  };
  const std::vector<OperationMemory> wide = products(BaseFormat::as_computed);
  const std::vector<OperationMemory> int8 = products(BaseFormat::int8);
  ASSERT_EQ(wide.size(), 7U);
  for (std::size_t i = 0; i < wide.size(); ++i) {
    EXPECT_FALSE(wide[i].keeps_read[0]);
    EXPECT_TRUE(int8[i].keeps_read[0]);
    const std::int64_t input = 1024 * int8[i].weight_columns;
    const std::int64_t output = 1024 * int8[i].weight_rows;
    EXPECT_EQ(int8[i].backward_extra - wide[i].backward_extra,
              2 * int8[i].weight_rows * int8[i].weight_columns);
    // Eight bits of the input beside int32 and fp16, or beside the fp16 that they are made of.
    EXPECT_EQ(int8[i].forward_extra - wide[i].forward_extra,
              input + std::max(2 * input, 6 * output));
  }
}

}  // namespace
}  // namespace shardwise
