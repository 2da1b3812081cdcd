#include <memory>
#include <string>
#include <utility>

#include "gui/models/compare/compared.h"
#include "gui/models/compare/file_kind.h"
#include "gui/models/question/open_question.h"
#include "gui/models/session/session.h"
#include "gui/models/window/left_view.h"
#include "planner/legality/legality.h"

namespace shardwise::view {

void Session::fail(const std::string& path, Failure failure) {
  done_reading(path);
  failure_ = std::move(failure);
  say(failure_.message);
}

void Session::read(const std::string& path, Worker::Job job) {
  reading_.push_back(path);
  state_.compare.reading = reading_.front();
  state_.compare.read = {};
  reader_.post(path, std::move(job));  // files are read one after the other
}

void Session::done_reading(const std::string& path) {
  std::erase(reading_, path);
  state_.compare.reading = reading_.empty() ? "" : reading_.front();
  state_.compare.read = {};
}

void Session::stop_reading() {
  if (reading_.empty()) return;
  const std::string path = reading_.front();
  reader_.drop(path);
  done_reading(path);
  say("stopped reading " + path);
}

void Session::finish_files() {
  while (!reading_.empty()) stop_reading();
  while (reader_.busy()) {
    reader_.finish();
    reader_.collect();
  }
}

void Session::save_view(const std::string& path, const LeftView& view) {
  const std::string problem = save(path, to_json(view));
  if (!problem.empty()) say(problem);
}

std::string Session::load_view(const std::string& path) {
  const Tried<LeftView> view = try_to<LeftView>([&] { return read_view(path); });
  failure_ = view.failure;
  if (!view.read) return failure_.message;
  files_.read("of view.load", path);
  state_.panels = view.read->panels;
  say("panels as in " + path);
  return "";
}

void Session::open_compared(const std::string& path) {
  read(path, [this, path](const Worker::Task& task) -> Worker::Apply {
    ReadListener listening;
    listening.stop = task.stop;
    listening.say = [&](ReadSoFar read) {
      task.publish([this, read] { state_.compare.read = read; });
    };
    const auto tried = std::make_shared<Tried<Compared>>(
        try_to<Compared>([&] { return read_compared(path, listening); }));
    return [this, path, tried] {
      if (!tried->read) return fail(path, tried->failure);
      done_reading(path);
      say("comparing with " + path);
      compare_with(std::make_shared<const Compared>(*std::move(tried->read)));
    };
  });
}

void Session::open_file(const std::string& path) {
  state_.start_open = false;
  const auto now = std::make_shared<const Plan>(state_.plan);
  read(path, [this, path, now](const Worker::Task&) -> Worker::Apply {
    const Tried<FileKind> kind = try_to<FileKind>([&] { return kind_of_file(path); });
    if (!kind.read) return [this, path, failure = kind.failure] { fail(path, failure); };
    if (*kind.read == FileKind::report || *kind.read == FileKind::trace) {
      return [this, path] {
        done_reading(path);
        open_compared(path);
      };
    }
    if (*kind.read == FileKind::metrics) {
      return [this, path] {
        done_reading(path);
        follow(path);
      };
    }
    const auto plan = std::make_shared<Tried<Plan>>(try_to<Plan>([&]() -> Result<Plan> {
      if (*kind.read == FileKind::model) return with_model(*now, path);
      if (*kind.read == FileKind::cluster) return with_cluster(*now, path);
      return read_plan(path, check_plan);
    }));
    const bool of_plan = *kind.read == FileKind::plan;
    return [this, path, plan, of_plan] {
      if (!plan->read) return fail(path, plan->failure);
      files_.read("of file.open", path);
      if (of_plan) files_.has_plan(path, *plan->read);
      done_reading(path);
      say("opened " + path);
      take_subject(*std::move(plan->read));
      follows_ = 0;  // the file has a layout
    };
  });
}

}  // namespace shardwise::view
