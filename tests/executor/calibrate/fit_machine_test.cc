// A machine that is made up is measured without error: the fit has to find what it takes.
#include "executor/calibrate/fit_machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "planner/cost/collectives/collective.h"
#include "planner/spec/json/json_writer.h"
#include "planner/spec/machine/cluster_reader.h"
#include "planner/spec/machine/cluster_writer.h"

namespace shardwise::exec {
namespace {

constexpr double kFlops = 40e9;  // of a rank
constexpr double kPacked = 3e9;  // bytes of a second operand, a second
constexpr double kBytes = 20e9;

double product_seconds(double m, double n, double k) {
  return 1e-6 + 2 * m * n * k / kFlops + 4 * n * k / kPacked;
}
// In bf16 everything takes half as long again: operands are converted.
constexpr double kNarrow = 1.5;
double attention_seconds_of(double sequence, double head_dim, Pass pass) {
  // Tiles of 128 x 128 are computed whole where the mask cuts through them.
  const double half_square = 0.5 * sequence * sequence + 64 * sequence;
  return 2e-6 + (pass == Pass::forward ? 1 : 2.5) * 4 * 4 * half_square * head_dim / (0.6 * kFlops);
}
double collective_seconds(double ranks, double bytes) {
  return 30e-6 + bytes * (ranks - 1) / ranks / 4e9;
}

Measurements made_up() {
  Measurements to;
  for (const std::int64_t m : {64, 256, 1024}) {
    for (const std::int64_t n : {128, 512, 768, 2048}) {
      for (const std::int64_t k : {128, 512, 768, 2048}) {
        const double seconds =
            product_seconds(static_cast<double>(m), static_cast<double>(n), static_cast<double>(k));
        to.products.push_back({DType::fp32, 1, m, n, k, GemmOutput::written, Seconds(seconds)});
        to.products.push_back(
            {DType::bf16, 1, m, n, k, GemmOutput::written, Seconds(kNarrow * seconds)});
      }
    }
  }
  for (const std::int64_t head_dim : {32, 64, 128}) {
    for (const std::int64_t sequence : {256, 512, 768, 1024, 2048}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const AttentionWork work = {1, 4, 4, sequence, sequence, head_dim, head_dim, 0, true};
        const double seconds = attention_seconds_of(static_cast<double>(sequence),
                                                    static_cast<double>(head_dim), pass);
        to.attention.push_back({DType::fp32, {work, pass, false, Seconds(seconds)}});
        to.attention.push_back({DType::bf16, {work, pass, false, Seconds(kNarrow * seconds)}});
      }
    }
  }
  for (std::int64_t bytes = 65'536; bytes <= 33'554'432; bytes *= 2) {
    to.copies.push_back({Bytes(bytes), Seconds(1e-6 + static_cast<double>(bytes) / kBytes)});
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const double slower = pass == Pass::forward ? 4 : 8;
      const double seconds = slower * static_cast<double>(bytes) / kBytes;
      to.kinds.push_back({MoveKind::gelu, pass, {Bytes(bytes), Seconds(seconds)}, DType::fp32});
      to.kinds.push_back(
          {MoveKind::gelu, pass, {Bytes(bytes), Seconds(kNarrow * seconds)}, DType::bf16});
    }
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      const double seconds = collective_seconds(4, static_cast<double>(bytes));
      to.collectives.push_back({kind, 4, Bytes(bytes), Seconds(seconds), DType::fp32});
    }
  }
  to.operation = Seconds(5e-6);
  return to;
}

FittedMachine fitted() {
  const Machine machine = {
      "here", "a processor", 2, 8_GiB, "2026-11-21", 0, "OpenBLAS 0.3.21 with SkylakeX kernels"};
  return fit_machine("made-up", machine, {4, 1, "threads"}, made_up());
}

TEST(FitMachine, NamesWhatMultiplied) {
  EXPECT_TRUE(std::ranges::any_of(fitted().cluster.gpu.sources, [](const std::string& source) {
    return source.find("by OpenBLAS 0.3.21 with SkylakeX kernels") != std::string::npos;
  }));
}

TEST(FitMachine, FindsWhatAMadeUpMachineTakes) {
  const ClusterSpec cluster = fitted().cluster;
  const GpuSpec& gpu = cluster.gpu;
  const auto near = [](Seconds predicted, double made, double share) {
    EXPECT_NEAR(predicted.value() / made, 1, share);
  };
  // Shapes that were not among the points.
  near(gemm_time(gpu, DType::fp32, 128, 1024, 1024), product_seconds(128, 1024, 1024), 0.05);
  near(gemm_time(gpu, DType::fp32, 512, 640, 384), product_seconds(512, 640, 384), 0.05);
  const AttentionWork work = {1, 4, 4, 1536, 1536, 64, 64, 0, true};
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    near(attention_time(gpu, DType::fp32, work, pass), attention_seconds_of(1536, 64, pass), 0.15);
  }
  near(memory_bound_time(gpu, 3_MiB), 3 * 1048576 / kBytes, 0.05);
  near(memory_bound_time(gpu, 3_MiB, MoveKind::gelu), 4 * 3 * 1048576 / kBytes, 0.05);
  near(memory_bound_time(gpu, 3_MiB, MoveKind::gelu, Pass::backward), 8 * 3 * 1048576 / kBytes,
       0.05);
  near(gemm_time(gpu, DType::bf16, 128, 1024, 1024), kNarrow * product_seconds(128, 1024, 1024),
       0.1);
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    near(attention_time(gpu, DType::bf16, work, pass),
         kNarrow * attention_seconds_of(1536, 64, pass), 0.15);
  }
  near(memory_bound_time(gpu, 3_MiB, MoveKind::gelu, Pass::backward, DType::bf16),
       kNarrow * 8 * 3 * 1048576 / kBytes, 0.05);
  const GroupShape group = packed_group(cluster, 4);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    near(collective_time(cluster, kind, 3_MiB, group), collective_seconds(4, 3 * 1048576), 0.1);
  }
  EXPECT_EQ(gpu.cores_per_rank, 0.5);
  EXPECT_EQ(cluster.gpus, 4);
}

TEST(FitMachine, WritesAClusterThatIsReadAsItWas) {
  const ClusterSpec cluster = fitted().cluster;
  JsonWriter json;
  json.begin_object();
  write_cluster(json, cluster);
  json.end_object();
  const Result<JsonValue> read = parse_json(json.text(), "made-up.json");
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  const Result<ClusterSpec> again = cluster_from_json(*read, "made-up.json");
  ASSERT_TRUE(again.ok()) << to_string(again.problems());
  EXPECT_EQ(*again, cluster);
}

}  // namespace
}  // namespace shardwise::exec
