#pragma once

#include <string>

#include "planner/score/score.h"

namespace shardwise::sim {

struct AccuracyContent {
  const ScoreReport* report = nullptr;
  std::string command;  // that makes the page again
  std::string version;
};

/// Accuracy of predictions of published measurements, as one HTML file that loads nothing and
/// runs no script: by engine, GPU and model, in sample and left out apart, the ten worst rows of
/// each quantity, by source, by release, and what the intervals cover of sources left out.
/// Equal content gives equal bytes.
std::string accuracy_page(const AccuracyContent& content);

}  // namespace shardwise::sim
