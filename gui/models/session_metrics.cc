#include <memory>
#include <string>

#include "gui/models/metrics_follower.h"
#include "gui/models/session.h"
#include "planner/spec/one_line.h"

namespace shardwise::view {

void Session::follow(const std::string& path) {
  read(path, [this, path](const Worker::Task&) -> Worker::Apply {
    const auto follower = std::make_shared<MetricsFollower>(path);
    const auto polled = std::make_shared<Result<bool>>(follower->poll());
    return [this, path, follower, polled] {
      if (!polled->ok()) return fail(path, {one_line(polled->problems()), false});
      done_reading(path);
      files_.read("of metrics.follow", path);
      say("following " + path);
      state_.metrics = {};
      state_.metrics.file = path;
      follower_ = follower;
      show_metrics();
    };
  });
}

void Session::follow_nothing() {
  follower_.reset();
  files_.read("of metrics.follow", "");
  state_.metrics = {};
}

std::string Session::poll_metrics() {
  if (!follower_) return "no run is followed (metrics.follow FILE)";
  if (!state_.metrics.problem.empty()) return state_.metrics.problem;
  const Result<bool> polled = follower_->poll();
  if (!polled) {
    state_.metrics.problem = one_line(polled.problems());
    return state_.metrics.problem;
  }
  if (*polled) show_metrics();
  return "";
}

void Session::show_metrics() {
  const MetricsReader& reader = follower_->reader();
  state_.metrics.steps = reader.steps();
  state_.metrics.note = reader.note();
  state_.metrics.waits = reader.waits();
}

}  // namespace shardwise::view
