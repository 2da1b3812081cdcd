#include <gtest/gtest.h>

#include <cmath>

#include "planner/cost/kernels/traffic.h"
#include "planner/spec/json/reader.h"

namespace shardwise {
namespace {

constexpr double kBf16 = 2;

struct Case {
  const char* name;  // in the golden file
  OpKind kind;
  bool rms = false;
  bool gated = false;
  bool frozen = false;
  RmsNormKernel norms = RmsNormKernel::composite;
  EagerModules modules = {};
};

constexpr Case kCases[] = {
    {.name = "rms_norm", .kind = OpKind::norm, .rms = true},
    {.name = "rms_norm_frozen", .kind = OpKind::norm, .rms = true, .frozen = true},
    {.name = "layer_norm", .kind = OpKind::norm},
    {.name = "rope_halves", .kind = OpKind::rope},
    {.name = "rope_complex", .kind = OpKind::rope, .norms = RmsNormKernel::fused},
    {.name = "gated_activation", .kind = OpKind::activation, .gated = true},
    {.name = "activation", .kind = OpKind::activation},
    {.name = "activation_composed",
     .kind = OpKind::activation,
     .modules = {.composed_activation = true}},
    {.name = "loss_materialised", .kind = OpKind::loss},
};

constexpr Case kAutocast[] = {
    {.name = "layer_norm", .kind = OpKind::norm, .modules = {.autocast = true}},
    {.name = "activation_composed",
     .kind = OpKind::activation,
     .modules = {.composed_activation = true, .autocast = true}},
};

double number(const JsonValue& of, const char* key) {
  const JsonValue* const value = of.find(key);
  return value == nullptr ? NAN : value->number;
}

Traffic traffic_of_case(const Case& of) {
  OperationSpec op;
  op.kind = of.kind;
  op.rms = of.rms;
  op.gated = of.gated;
  JobSpec job;
  job.loss = LossKernel::materialised;
  job.rms_norm = of.norms;
  job.frozen_base = of.frozen;
  return traffic_of(op, job, Kernels::eager, {}, kBf16, of.modules);
}

void expect_counted(const Case& of, const JsonValue& all) {
  SCOPED_TRACE(of.name);
  const JsonValue* const counted = all.find(of.name);
  ASSERT_NE(counted, nullptr);
  const Traffic traffic = traffic_of_case(of);
  const double forward = number(*counted, "forward_bytes");
  const double backward = number(*counted, "backward_bytes");
  EXPECT_NEAR(traffic.forward, forward, 0.05 * forward);
  EXPECT_NEAR(traffic.backward, backward, 0.05 * backward);
  EXPECT_LE(traffic.forward, forward);
  EXPECT_LE(traffic.backward, backward);
  EXPECT_NEAR(traffic.forward_kernels, number(*counted, "forward_kernels"), 2);
  EXPECT_NEAR(traffic.backward_kernels, number(*counted, "backward_kernels"), 2);
}

// tests/golden/eager_traffic.py has the operators that PyTorch's autograd calls. What it counts
// besides are tables of angles, gains and labels: at most 5 %.
TEST(EagerTraffic, IsWhatPyTorchsOperatorsReadAndWrite) {
  const Result<JsonValue> golden = read_json("tests/golden/eager_traffic.json");
  ASSERT_TRUE(golden.ok());
  for (const Case& each : kCases) expect_counted(each, *golden->find("pointwise"));
  for (const Case& each : kAutocast) expect_counted(each, *golden->find("autocast"));
}

// Backward of the residual has the golden's cast for the branch, and adds two fp32 gradients.
TEST(EagerTraffic, OfTheResidualStreamIsWideUnderAutocast) {
  const Result<JsonValue> golden = read_json("tests/golden/eager_traffic.json");
  ASSERT_TRUE(golden.ok());
  const JsonValue& counted = *golden->find("autocast")->find("residual");
  const Traffic wide = traffic_of_case(
      {.name = "residual", .kind = OpKind::residual, .modules = {.autocast = true}});
  EXPECT_EQ(wide.forward, number(counted, "forward_bytes"));
  EXPECT_EQ(wide.backward, number(counted, "backward_bytes") + 3 * 4);
}

}  // namespace
}  // namespace shardwise
