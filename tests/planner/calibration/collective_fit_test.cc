#include "planner/calibration/collective_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/calibration/collective_measurements.h"
#include "planner/spec/machine/cluster_reader.h"

namespace shardwise {
namespace {

ClusterSpec machine_without_curve() {
  Result<ClusterSpec> cluster = find_cluster("dgx-h100");
  EXPECT_TRUE(cluster.ok());
  cluster->tiers[0].collectives = CollectiveCurve{};
  return *cluster;
}

CollectiveCoefficients truth() {
  CollectiveCoefficients c;
  c.launch_us = 5;
  c.ll_step = 0.6;
  c.ll128_step = 1.1;
  c.simple_step = 5;
  c.ll_share = 0.05;
  c.ll128_share = 0.5;
  c.copy_all_gather = 0.3;
  c.in_network_us = 60;
  return c;
}

/// What nccl-tests would print on a machine with the coefficients `c`.
std::vector<CollectiveMeasurement> timed_with(const CollectiveCoefficients& c) {
  ClusterSpec cluster = machine_without_curve();
  cluster.tiers[0].collectives.coefficients = c;
  std::vector<CollectiveMeasurement> measurements;
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    for (const std::int32_t ranks : {2, 4, 8}) {
      for (int bits = 9; bits <= 30; ++bits) {
        const GroupShape group = packed_group(cluster, ranks);
        const Bytes bytes(std::int64_t{1} << bits);
        measurements.push_back({kind, group, bytes, collective_time(cluster, kind, bytes, group)});
      }
    }
  }
  return measurements;
}

TEST(FitCollectives, FindsWhatTheMachineWasMadeOf) {
  const CollectiveFit fit = fit_collectives(machine_without_curve(), 0, timed_with(truth()));
  ASSERT_FALSE(fit.residuals.empty());
  EXPECT_EQ(fit.residuals.front().what, "all");
  EXPECT_LT(fit.residuals.front().median_error, 0.01);
  EXPECT_LT(fit.residuals.front().p95_error, 0.05);
  EXPECT_NEAR(fit.coefficients.launch_us, 5, 0.2);
  EXPECT_NEAR(fit.coefficients.simple_step, 5, 0.5);
  EXPECT_NEAR(fit.coefficients.in_network_us, 60, 3);
}

TEST(FitCollectives, LeavesOneInFiveOutAndNeverLooksAtThem) {
  const std::vector<CollectiveMeasurement> measurements = timed_with(truth());
  const CollectiveFit fit = fit_collectives(machine_without_curve(), 0, measurements);
  EXPECT_EQ(fit.points, static_cast<int>(measurements.size()));
  EXPECT_NEAR(fit.left_out, fit.points / 5.0, fit.points / 20.0);
  std::vector<CollectiveMeasurement> spoilt = measurements;
  int left_out = 0;
  for (CollectiveMeasurement& each : spoilt) {
    if (!is_left_out(each)) continue;
    each.time = each.time * 1.7;
    ++left_out;
  }
  EXPECT_EQ(left_out, fit.left_out);
  const CollectiveFit again = fit_collectives(machine_without_curve(), 0, spoilt);
  EXPECT_EQ(again.coefficients, fit.coefficients);
  EXPECT_NEAR(again.residuals.front().median_error, 1 - 1 / 1.7, 0.05);
}

TEST(FitCollectives, LeavesAloneWhatIsFixedAndWhatNoPointDependsOn) {
  const CollectiveFit fit = fit_collectives(machine_without_curve(), 0, timed_with(truth()),
                                            {"launch_us", "simple_share"});
  const CollectiveCoefficients before;
  EXPECT_EQ(fit.coefficients.launch_us, before.launch_us);
  EXPECT_EQ(fit.coefficients.simple_share, before.simple_share);
  EXPECT_EQ(fit.coefficients.tree_simple_step, before.tree_simple_step);
  EXPECT_EQ(fit.coefficients.in_network_ranks, before.in_network_ranks);
}

TEST(FitCollectives, KeepsAProtocolOffThatIsOff) {
  ClusterSpec cluster = machine_without_curve();
  cluster.tiers[0].collectives.coefficients.ll128_share = 0;
  EXPECT_EQ(fit_collectives(cluster, 0, timed_with(truth())).coefficients.ll128_share, 0);
}

TEST(FitCollectives, FindsTheNetworkBehindTheNodes) {
  ClusterSpec cluster = machine_without_curve();
  CollectiveCoefficients& network = cluster.tiers[1].collectives.coefficients;
  network = CollectiveCoefficients{};
  network.tree_simple_step = 6;
  network.tree_share = 0.8;
  std::vector<CollectiveMeasurement> measurements;
  for (const std::int32_t ranks : {16, 32, 128, 1024}) {
    for (int bits = 20; bits <= 34; ++bits) {
      const GroupShape group = packed_group(cluster, ranks);
      const Bytes bytes(std::int64_t{1} << bits);
      measurements.push_back({CollectiveKind::all_reduce, group, bytes,
                              collective_time(cluster, CollectiveKind::all_reduce, bytes, group)});
    }
  }
  const CollectiveFit fit = fit_collectives(cluster, 1, measurements);
  EXPECT_LT(fit.residuals.front().median_error, 0.01);
  EXPECT_NEAR(fit.coefficients.tree_simple_step, 6, 0.5);
}

CsvTable csv_table(const std::string& text) {
  Result<CsvTable> table = parse_csv(text, "t.csv");
  EXPECT_TRUE(table.ok());
  return *table;
}

TEST(MeasurementsFromCsv, TakesTimesOrBusBandwidthOfTheRowsAskedFor) {
  const ClusterSpec cluster = machine_without_curve();
  const auto read = measurements_from_csv(csv_table("gpu,op,gpus,nodes,bytes,time_us,busbw_GBps\n"
                                                    "a,all_gather,8,1,1024,12.5,\n"
                                                    "b,all_gather,8,1,1024,99,\n"
                                                    "a,all_reduce,16,2,1000000000,,100\n"
                                                    "a,alltoall,4,1,,,50\n"),
                                          cluster, {{"gpu", {"a"}}, {"elsewhere", {"x"}}});
  ASSERT_TRUE(read.ok()) << to_string(read.problems());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].kind, CollectiveKind::all_gather);
  EXPECT_DOUBLE_EQ((*read)[0].time.value(), 12.5e-6);
  EXPECT_EQ((*read)[0].group.ranks, 8);
  EXPECT_EQ((*read)[1].group.domains[0], 2);
  EXPECT_DOUBLE_EQ((*read)[1].time.value(), 2.0 * 15 / 16 * 1e9 / 100e9);
}

TEST(MeasurementsFromCsv, SaysWhichRowsItCannotRead) {
  const auto read = measurements_from_csv(csv_table("op,gpus,nodes,bytes,time_us\n"
                                                    "all_sum,8,1,1024,1\n"
                                                    "all_reduce,eight,1,1024,1\n"
                                                    "all_reduce,16,1,1024,1\n"
                                                    "all_reduce,1,1,1024,1\n"),
                                          machine_without_curve(), {});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(to_string(read.problems()),
            "t.csv:2: op all_sum is not a collective\n"
            "    use all_reduce, all_gather, reduce_scatter, alltoall, broadcast or sendrecv\n"
            "t.csv:3: gpus eight is not a number\n"
            "t.csv:4: 16 GPUs on 1 nodes, but a node of dgx-h100 has 8\n"
            "t.csv:5: 1024 bytes among 1 GPUs\n"
            "4 problems, nothing was run\n");
  const auto columns = measurements_from_csv(csv_table("op,bytes\n"), machine_without_curve(), {});
  ASSERT_FALSE(columns.ok());
  EXPECT_EQ(to_string(columns.problems()),
            "t.csv:1: no column gpus\n"
            "    the columns are op, bytes\n"
            "t.csv:1: no column busbw_GBps\n"
            "    the columns are op, bytes\n"
            "2 problems, nothing was run\n");
}

TEST(PackedGroup, FillsNodesWithTheRestIdle) {
  const ClusterSpec cluster = machine_without_curve();
  EXPECT_EQ(packed_group(cluster, 4).concurrent[0], 1);
  const GroupShape two_nodes = packed_group(cluster, 16);
  EXPECT_EQ(two_nodes.span[0], 8);
  EXPECT_EQ(two_nodes.domains[0], 2);
  EXPECT_EQ(two_nodes.concurrent[1], 1);
}

}  // namespace
}  // namespace shardwise
