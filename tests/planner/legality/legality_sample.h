#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/legality/legality.h"
#include "planner/spec/plan/plan_fields.h"
#include "tests/support/models.h"

namespace shardwise::test {

/// Everything a rule may ask about, with the layout that is legal for it.
struct Sample {
  ModelSpec model = llama(32, 4096, 14336, 32, 8, 128256);
  ClusterSpec cluster;
  JobSpec job;
  EngineProfile engine;
  Layout layout;

  Sample() {
    cluster.gpus = 64;
    job.global_batch_size = 64;
    job.sequence_length = 8192;
    engine.name = "sample";
    engine.zero_stages = {0, 1, 3};
    engine.hybrid = true;
    layout.tp = 4;
    layout.pp = 2;
    layout.dp_shard = 8;
    layout.zero_stage = 1;
  }
  std::vector<std::string> problems() const {
    std::vector<std::string> lines;
    for (const Diagnostic& each : check_layout(model, cluster, job, engine, layout)) {
      lines.push_back(each.path + ": " + each.message +
                      (each.hint.empty() ? "" : " (" + each.hint + ")"));
    }
    EXPECT_EQ(lines.empty(), is_legal(model, cluster, job, engine, layout));
    return lines;
  }
  void set(const std::string& key, const std::string& text) {
    EXPECT_EQ(set_field(layout, key, text), "");
  }
};

}  // namespace shardwise::test
