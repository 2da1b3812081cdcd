#include <memory>
#include <string>

#include "gui/models/compare/metrics_follower.h"
#include "gui/models/session/session.h"

namespace shardwise::view {

void Session::follow(const std::string& path) {
  read(path, [this, path](const Worker::Task&) -> Worker::Apply {
    const auto follower = std::make_shared<MetricsFollower>(path);
    const Tried<bool> polled = try_to<bool>([&] { return follower->poll(); });
    return [this, path, follower, failure = polled.failure] {
      if (failure) return fail(path, failure);
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
  const Tried<bool> polled = try_to<bool>([&] { return follower_->poll(); });
  failure_ = polled.failure;
  if (!polled.read) return state_.metrics.problem = failure_.message;
  if (*polled.read) show_metrics();
  return "";
}

void Session::show_metrics() {
  const MetricsReader& reader = follower_->reader();
  put_steps(state_.metrics, reader.steps());
  state_.metrics.note = reader.note();
  state_.metrics.waits = reader.waits();
}

}  // namespace shardwise::view
