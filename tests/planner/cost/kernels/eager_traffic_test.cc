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
};

constexpr Case kCases[] = {
    {.name = "rms_norm", .kind = OpKind::norm, .rms = true},
    {.name = "rms_norm_frozen", .kind = OpKind::norm, .rms = true, .frozen = true},
    {.name = "layer_norm", .kind = OpKind::norm},
    {.name = "rope_halves", .kind = OpKind::rope},
    {.name = "rope_complex", .kind = OpKind::rope, .norms = RmsNormKernel::fused},
    {.name = "gated_activation", .kind = OpKind::activation, .gated = true},
    {.name = "activation", .kind = OpKind::activation},
    {.name = "loss_materialised", .kind = OpKind::loss},
};

double number(const JsonValue& of, const char* key) {
  const JsonValue* const value = of.find(key);
  return value == nullptr ? NAN : value->number;
}

// tests/golden/eager_traffic.py has the operators that PyTorch's autograd calls. What it counts
// besides are tables of angles, gains and labels: at most 5 %.
TEST(EagerTraffic, IsWhatPyTorchsOperatorsReadAndWrite) {
  const Result<JsonValue> golden = read_json("tests/golden/eager_traffic.json");
  ASSERT_TRUE(golden.ok());
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.name);
    const JsonValue* const counted = golden->find("pointwise")->find(each.name);
    ASSERT_NE(counted, nullptr);
    OperationSpec op;
    op.kind = each.kind;
    op.rms = each.rms;
    op.gated = each.gated;
    JobSpec job;
    job.loss = LossKernel::materialised;
    job.rms_norm = each.norms;
    job.frozen_base = each.frozen;
    const Traffic traffic = traffic_of(op, job, Kernels::eager, {}, kBf16);
    const double forward = number(*counted, "forward_bytes");
    const double backward = number(*counted, "backward_bytes");
    EXPECT_NEAR(traffic.forward, forward, 0.05 * forward);
    EXPECT_NEAR(traffic.backward, backward, 0.05 * backward);
    EXPECT_LE(traffic.forward, forward);
    EXPECT_LE(traffic.backward, backward);
    EXPECT_NEAR(traffic.forward_kernels, number(*counted, "forward_kernels"), 2);
    EXPECT_NEAR(traffic.backward_kernels, number(*counted, "backward_kernels"), 2);
  }
}

}  // namespace
}  // namespace shardwise
