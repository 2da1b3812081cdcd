#include "planner/cost/layer/adapter_time.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/cost/layer/adapters.h"
#include "planner/cost/layer/operation_sizes.h"
#include "planner/spec/json/reader.h"
#include "tests/planner/cost/step/time_fixture.h"

namespace shardwise {
namespace {

using test::Priced;

/// Bytes that a block moves outside matrix products, forward and backward.
struct Moved {
  double forward = 0;
  double backward = 0;
};
Moved moved(const Priced& p, const ModelSpec& model) {
  std::vector<LayerItem> items;
  for (const LayerSpec& layer : model.kinds) {
    if (layer.role != LayerRole::embedding && layer.role != LayerRole::head) {
      layer_time(model, layer, p.job, p.engine, p.cluster, p.layout, nullptr, &items);
    }
  }
  Moved all;
  for (const LayerItem& item : items) {
    if (item.moves || item.kernel.kind == KernelKind::gemm) continue;
    (item.pass == Pass::forward ? all.forward : all.backward) +=
        item.kernel.bytes * item.kernel.times;
  }
  return all;
}

/// Bytes of a token for an element that a matrix reads and for one that it makes, from two matrices
/// of the golden file.
struct PerElement {
  double in = 0;
  double out = 0;
};
PerElement per_element(const JsonValue& cases, const std::string& dtype, const char* pass) {
  double square = 0;
  double narrow = 0;
  double inputs = 0;
  double outputs = 0;
  for (const JsonValue& each : cases.elements) {
    const bool same = each.find("dtype")->string == dtype && !each.find("autocast")->boolean &&
                      each.find("dropout")->number == 0;
    const double in = each.find("inputs")->number;
    const double out = each.find("outputs")->number;
    if (!same || in < out) continue;
    const double bytes = each.find(pass)->number / each.find("tokens")->number;
    (in == out ? square : narrow) = bytes;
    if (in != out) {
      inputs = in;
      outputs = out;
    }
  }
  const double out = (square - narrow) / (inputs - outputs);
  return {square / inputs - out, out};
}

// tests/golden/eager_traffic.py has the operators of PEFT's own layers without dropout, whose mask
// and result CUDA writes in one kernel.
TEST(AdapterTime, MovesWhatPeftsOperatorsMove) {
  const Result<JsonValue> golden = read_json("tests/golden/eager_traffic.json");
  ASSERT_TRUE(golden.ok());
  Priced p;
  p.engine = fsdp1();
  p.job.frozen_base = true;
  p.layout = {.zero_stage = 0};
  p.size(1);
  ModelSpec adapted = p.model;
  ASSERT_TRUE(add_adapters(adapted, {.targets = {"k_proj"}, .rank = 8}).empty());
  const double in = 4096.0 * static_cast<double>(p.job.sequence_length);
  const double out = 1024.0 * static_cast<double>(p.job.sequence_length);
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const std::string name = dtype == DType::fp32 ? "float32" : "bfloat16";
    SCOPED_TRACE(name);
    p.job.main_dtype = dtype;
    EXPECT_EQ(multiplies_adapters_wide(p.job, p.engine), dtype == DType::fp32);
    const Moved with = moved(p, adapted);
    const Moved without = moved(p, p.model);
    const double dropout = (2.0 * bytes_of(dtype) + 1) * in;
    const JsonValue& cases = *golden->find("adapters");
    const PerElement forward = per_element(cases, name, "forward_bytes");
    const PerElement backward = per_element(cases, name, "backward_bytes");
    // Products in fp32 read or write the larger operand, two of them forward and four backward.
    const double products = dtype == DType::fp32 ? 4.0 * (in + out) : 0;
    EXPECT_NEAR(with.forward - without.forward,
                forward.in * in + forward.out * out + dropout + products, 100);
    EXPECT_NEAR(with.backward - without.backward,
                backward.in * in + backward.out * out + dropout + 2 * products, 100);
  }
}

}  // namespace
}  // namespace shardwise
