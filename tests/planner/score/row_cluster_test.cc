#include "planner/score/rows/row_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/score/rows.h"

namespace shardwise {
namespace {

using testing::Contains;
using testing::HasSubstr;

const std::vector<KnownGpu> kKnown = {
    {"a100-40gb-pcie", 39.6}, {"a100-40gb-sxm", 39.6}, {"a100-80gb-pcie", 79.3},
    {"a100-80gb-sxm", 79.3},  {"b200", 178.4},         {"gb200", 184},
    {"h100-nvl", 93},         {"h100-pcie", 79.6},     {"h100-sxm", 79.6},
    {"h100-sxm-96gb", 95},    {"h200-sxm", 140},       {"mi300x", 192},
    {"v100-16gb-sxm", 15.8},  {"v100-32gb-sxm", 31.7}};

TEST(GpuNamed, TakesFormFactorAndMemoryAsWritten) {
  EXPECT_EQ(gpu_named("A100-40GB-SXM", 40, kKnown), "a100-40gb-sxm");
  EXPECT_EQ(gpu_named("A100-80GB-PCIe", 80, kKnown), "a100-80gb-pcie");
  EXPECT_EQ(gpu_named("H100 PCIe", {}, kKnown), "h100-pcie");
  EXPECT_EQ(gpu_named("V100-16GB-SXM", {}, kKnown), "v100-16gb-sxm");
  EXPECT_EQ(gpu_named("GB200", {}, kKnown), "gb200");
  EXPECT_EQ(gpu_named("B200", 180, kKnown), "b200");
  EXPECT_EQ(gpu_named("H200-141GB-SXM", 141, kKnown), "h200-sxm");
}

TEST(GpuNamed, PrefersTheLargestSxmPartWhenNothingIsSaid) {
  EXPECT_EQ(gpu_named("A100", {}, kKnown), "a100-80gb-sxm");
  EXPECT_EQ(gpu_named("H100", {}, kKnown), "h100-sxm");
  EXPECT_EQ(gpu_named("H100-96GB-HBM2e(500W)", 96, kKnown), "h100-sxm-96gb");
}

TEST(GpuNamed, TakesExportVariantsAsWhatTheyAre) {
  EXPECT_EQ(gpu_named("A800-80GB-SXM", 80, kKnown), "a100-80gb-sxm");
  EXPECT_EQ(gpu_named("H800", {}, kKnown), "h100-sxm");
}

TEST(GpuNamed, TellsCardsFromCardsWithLongerNames) {
  const std::vector<KnownGpu> cards = {
      {"a40", 44},         {"l4", 22},          {"l40s", 44.5},
      {"rtx-3090", 23.7},  {"rtx-5090", 31.4},  {"h200", 139.8},
      {"h200-nvl", 139.8}, {"rtx-a6000", 47.5}, {"rtx-pro-6000", 95}};
  EXPECT_EQ(gpu_named("NVIDIA L4", {}, cards), "l4");
  EXPECT_EQ(gpu_named("L40S", {}, cards), "l40s");
  EXPECT_EQ(gpu_named("L40", {}, cards), "");
  EXPECT_EQ(gpu_named("A40", {}, cards), "a40");
  EXPECT_EQ(gpu_named("GeForce RTX 3090 24 GB", {}, cards), "rtx-3090");
  EXPECT_EQ(gpu_named("RTX A6000", {}, cards), "rtx-a6000");
  EXPECT_EQ(gpu_named("RTX PRO 6000 Blackwell", {}, cards), "rtx-pro-6000");
  EXPECT_EQ(gpu_named("H200", {}, cards), "h200");
  EXPECT_EQ(gpu_named("H200 NVL", {}, cards), "h200-nvl");
}

TEST(GpuNamed, KnowsNoOther) {
  EXPECT_EQ(gpu_named("Abacus 9000", {}, kKnown), "");
  EXPECT_EQ(gpu_named("", {}, kKnown), "");
}

TEST(Machines, FitsTheCatalogueToTheRow) {
  Row row = test::llama_row();
  row.hardware.gpu = "H100-64GB-SXM(custom)";
  row.hardware.gpu_mem_gb = 64;
  row.hardware.gpus = 64;
  row.hardware.gpus_per_node = 4;
  row.hardware.inter_link = "2x HDR200 IB per node";
  Machines machines;
  Notes notes;
  const auto cluster = machines.machine_of(row, 64, notes);
  ASSERT_NE(cluster, nullptr) << notes.refused;
  EXPECT_EQ(cluster->gpu.name, "h100-sxm");
  EXPECT_EQ(cluster->gpus, 64);
  EXPECT_EQ(cluster->gpus_per_node, 4);
  EXPECT_EQ(cluster->tiers.front().domain_size, 4);
  EXPECT_EQ(cluster->tiers.back().bandwidth, 25_GBps);
  EXPECT_EQ(cluster->tiers.back().gpus_per_link, 2);
  EXPECT_LT(cluster->gpu.hbm_bytes, 64_GiB);
  EXPECT_GT(cluster->gpu.hbm_bytes, 63_GiB);
  EXPECT_THAT(notes.assumed, Contains(HasSubstr("with 64 GB")));
}

TEST(Machines, DividesTheTotalOfANode) {
  Row row = test::llama_row();
  row.hardware.gpus = 16;
  row.hardware.inter_link = "1600 Gb/s per node RoCE";
  Machines machines;
  Notes notes;
  EXPECT_EQ(machines.machine_of(row, 16, notes)->tiers.back().bandwidth, 25_GBps);
}

TEST(Machines, SlowsTheNvlinkOfExportVariants) {
  Row row = test::llama_row();
  row.hardware.gpu = "H800-80GB-SXM";
  Machines machines;
  Notes notes;
  EXPECT_EQ(machines.machine_of(row, 8, notes)->tiers.front().bandwidth, 200_GBps);
}

TEST(Machines, TakesTorchaosOwnGpus) {
  Row row = test::llama_row();
  row.repository = "pytorch/ao";
  Machines machines;
  Notes notes;
  EXPECT_EQ(machines.machine_of(row, 8, notes)->gpu.name, "h100-sxm-96");
  row.hardware.gpu = "B200";
  EXPECT_EQ(machines.machine_of(row, 8, notes)->gpu.tdp_watts, 750);
  row.repository = "pytorch/torchtitan";
  EXPECT_EQ(machines.machine_of(row, 8, notes)->gpu.tdp_watts, 1000);
}

}  // namespace
}  // namespace shardwise
